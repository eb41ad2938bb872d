"""What ``kb status`` says of a base: counts, what is held, who writes. Cheap: no database, no network, no torch."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

from kb import clock
from kb.draft import list_drafts
from kb.heartbeat import SyncState, read_sync_state
from kb.lock import is_held, read_owner
from kb.model import Outcome, Record
from kb.store import Base
from kb.vocab import STAGES


class GitState(Record):
    """Where the clone stands; nothing is fetched."""

    branch: str = ""
    commit: str = ""
    ahead: int = 0
    """Commits the remote-tracking branch lacks."""
    behind: int = 0
    """Commits of the remote-tracking branch that this branch lacks."""


class LockState(Record):
    """One lock."""

    name: str
    held: bool
    what: str = ""
    """Command that holds it."""
    pid: int | None = None
    since: str = ""


class Status(Record):
    """The state of a base."""

    root: str
    zone: str
    language: str
    git: GitState | None
    """Null outside git."""
    stages: dict[str, int]
    """Drafts per stage."""
    oldest_review_days: int | None
    """Age of the oldest draft in review by the date in its name; null where there is none."""
    items: int
    pages: int
    claims: int
    verdicts: dict[str, int]
    """Claims per verdict; claims nothing was run for count as untested."""
    stale: dict[str, int]
    """Cause of staleness → verdicts; one verdict may have several."""
    held: tuple[str, ...]
    """Blocks whose new text waits for a person."""
    locks: tuple[LockState, ...]
    sync: SyncState = SyncState()
    """What the last sync here left, and whether the scheduled job is overdue."""
    problems: tuple[str, ...]
    """Lines and files that cannot be read: ``file:line: why``."""


def summarise(base: Base, *, stale: Iterable[str] = ()) -> Status:
    """Count everything `kb status` shows.

    Args:
        base: The knowledge base.
        stale: One cause per stale verdict and cause, as the stage that judges knows them.

    Raises:
        BadConfig: ``kb.toml`` or a claims file cannot be read.
    """
    drafts = list_drafts(base)
    claims, verdicts = base.claims(), base.verdicts()
    outcomes = Counter(v.verdict for name, v in verdicts.items() if name in claims)
    outcomes[Outcome.UNTESTED] += len(claims.keys() - verdicts.keys())
    items = len(base.latest_items())
    published = base.root / "published"
    return Status(
        root=str(base.root),
        zone=base.settings.zone,
        language=base.settings.language,
        git=git_state(base),
        stages={stage: sum(1 for d in drafts if d.stage == stage) for stage in STAGES},
        oldest_review_days=_oldest(d.id for d in drafts if d.stage == "review"),
        items=items,
        pages=sum(1 for p in published.glob("**/*.md") if _is_page(p.relative_to(published).parts)),
        claims=len(claims),
        verdicts={outcome.value: outcomes[outcome] for outcome in Outcome},
        stale=dict(sorted(Counter(stale).items())),
        held=held_blocks(base),
        locks=tuple(_lock(base, name) for name in ("write", "long")),
        sync=read_sync_state(base),
        problems=tuple(
            dict.fromkeys(f"{base.relative(bad.path)}:{bad.line}: {bad.why}" for bad in base.problems)
        ),
    )


def held_blocks(base: Base) -> tuple[str, ...]:
    """Blocks whose new text clashed with an edit and waits beside the page."""
    folder = base.root / "published/.blocks"
    found = (p.relative_to(folder).as_posix() for p in folder.glob("**/*.proposal.md"))
    return tuple(sorted(name.removesuffix(".proposal.md") for name in found))


def git_state(base: Base) -> GitState | None:
    """Branch, commit and distance to the remote-tracking branch; None outside git."""
    commit = _git(base, "rev-parse", "--short", "HEAD")
    if not commit:
        return None
    apart = _git(base, "rev-list", "--left-right", "--count", "HEAD...@{upstream}").split()
    ahead, behind = (int(apart[0]), int(apart[1])) if len(apart) == 2 else (0, 0)  # noqa: PLR2004  two counts
    return GitState(
        branch=_git(base, "branch", "--show-current") or "(detached)",
        commit=commit,
        ahead=ahead,
        behind=behind,
    )


def _git(base: Base, *args: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(base.root), *args], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _is_page(parts: tuple[str, ...]) -> bool:
    return parts[0] not in {".blocks", "drafts"}


def _oldest(ids: Any) -> int | None:
    days = [found.group() for name in ids if (found := re.search(r"\d{4}-\d{2}-\d{2}", name))]
    ages = []
    for day in days:
        try:
            ages.append((clock.now().date() - dt.date.fromisoformat(day)).days)
        except ValueError:
            continue  # 2026-13-40 in a file name is a name, no date
    return max(ages, default=None)


def _lock(base: Base, name: str) -> LockState:
    if not is_held(base.root, name):
        return LockState(name=name, held=False)
    owner = read_owner(base.root, name)
    if owner is None:
        return LockState(name=name, held=True)
    return LockState(name=name, held=True, what=owner.what, pid=owner.pid, since=owner.start)
