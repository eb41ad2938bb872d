"""Telling people: new verdicts, contradictions, held blocks, failed syncs. Addresses and programs are the user's alone.

A webhook gets one JSON document by POST; a program, which must be on the user's allow-list, gets it on its standard
input. Neither can fail a sync: what went wrong is a note of the report.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kb.config import UserSettings
from kb.sync.planned import Change
from kb.sync.queue import HELD, Waiting

TIMEOUT_S = 20


def verdict_events(changes: Iterable[Change], before: dict[str, bytes]) -> list[dict[str, Any]]:
    """Verdicts that a batch made public: ``new-verdict``, or ``contradiction`` where that is what it says.

    Args:
        changes: What was pushed.
        before: Blob id → content, of the versions on the branch before.
    """
    events = []
    for change in changes:
        if not change.path.startswith("verdicts/") or change.action == "delete":
            continue
        old, new = _outcomes(before.get(change.old, b"")), _outcomes(change.data)
        for claim, outcome in sorted(new.items()):
            if old.get(claim) != outcome and outcome != "untested":
                name = "contradiction" if outcome == "contradicted" else "new-verdict"
                events.append({"event": name, "claim": claim, "verdict": outcome, "was": old.get(claim, "")})
    return events


def queue_events(items: Iterable[Waiting]) -> list[dict[str, Any]]:
    """Items that came to wait in this run."""
    return [
        {
            "event": "held-block" if i.state == HELD else "set-aside",
            "path": i.path,
            "block": i.block,
            "reason": i.reason,
        }
        for i in items
    ]


def notify(user: UserSettings, events: list[dict[str, Any]], *, branch: str) -> list[str]:
    """Send events to the user's webhook and program; returns what went wrong."""
    if not events:
        return []
    document = {"kb": "sync", "branch": branch, "events": events}
    return [*_post(user, document), *_call(user, document)]


def _post(user: UserSettings, document: dict[str, Any]) -> list[str]:
    if not user.webhook or user.offline:
        return []
    from kb.http import Client, NoAnswer

    try:
        with Client(user) as client:
            client.post_json(user.webhook, document)
    except NoAnswer as error:
        return [f"webhook not told: {error.status}"]
    return []


def _call(user: UserSettings, document: dict[str, Any]) -> list[str]:
    if not user.notify:
        return []
    program = shutil.which(user.notify)
    if program is None or not {user.notify, program, str(Path(program).resolve())} & set(user.allow):
        return [f"{user.notify} not called: add it to ~/.config/kb/allow"]
    try:
        done = subprocess.run(
            [program], input=json.dumps(document, ensure_ascii=False).encode(), capture_output=True,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"{user.notify} failed: {error}"]
    return [f"{user.notify} ended with {done.returncode}"] if done.returncode else []


def _outcomes(data: bytes) -> dict[str, str]:
    try:
        verdicts = json.loads(data)["verdicts"]
        return {str(verdict["claim"]): str(verdict["verdict"]) for verdict in verdicts}
    except (ValueError, KeyError, TypeError):
        return {}
