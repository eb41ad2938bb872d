"""What a source's address says of itself over several runs: moved for good, or gone for good.

Nothing is changed in ``sources/``: a redirect may be a mistake or a hijack, so a person is told how often the same new
address was given and decides. An address that answered 410 is not asked again by scheduled runs; `kb sources test` asks it.
Remembered in the index under ``.kb/``, which is safe to delete.
"""

from __future__ import annotations

import json

from kb.clock import stamp
from kb.ingest.contract import Task
from kb.ingest.known import Known

ANSWERED = frozenset({"ok", "no-news", "not-modified"})


def stopped(known: Known, task: Task) -> str:
    """Why a source is not asked; empty where it is."""
    url, _, day = known.note(f"gone:{task.config.name}").partition(" ")
    if not url or url != task.config.url:
        return ""
    return (
        f"it said on {day} that it is gone for good and is not asked any more; kb sources test {task.config.name} asks again, "
        f"else set enabled = false or another url in sources/{task.config.name}.toml"
    )


def remember(known: Known, task: Task) -> None:
    """Remember a permanent redirect or a 410 and tell of it; forget both where the source answers at its address."""
    name, report = task.config.name, task.report
    if report.moved_to:
        before = _read(known.note(f"moved:{name}"))
        times = int(before.get("times", 0)) + 1 if before.get("to") == report.moved_to else 1
        known.set_note(f"moved:{name}", json.dumps({"to": report.moved_to, "times": times}))
        often = f" ({times} runs in a row)" if times > 1 else ""
        report.note(f"moved for good to {report.moved_to}{often}; change url in sources/{name}.toml")
        if report.status in ANSWERED:
            report.status = "moved"
    elif report.status in ANSWERED and known.note(f"moved:{name}"):
        known.set_note(f"moved:{name}", "")
    if report.status == "gone" and report.tally.requests:
        known.set_note(f"gone:{name}", f"{task.config.url} {stamp(task.window.now)[:10]}")
    elif report.status in ANSWERED | {"moved"} and known.note(f"gone:{name}"):
        known.set_note(f"gone:{name}", "")


def _read(text: str) -> dict[str, str]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
