"""When sync last ran here and when the scheduled job last reported: read from the cache, no network.

A job that stopped says nothing, so it is the *absence* of a report that raises the alarm.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

from kb import clock
from kb.model import Record
from kb.store import Base

OVERDUE = dt.timedelta(hours=26)
"""A daily job that was not heard of for this long is late."""


class SyncState(Record):
    """What is known of sync in this clone."""

    at: str = ""
    """When the last sync here ended, UTC; empty for never."""
    exit: int | None = None
    """Its exit code."""
    problem: str = ""
    """Why it failed, where it did."""
    scheduled_at: str = ""
    """When the scheduled job last reported to the remote, as far as this clone has heard."""
    held: int = 0
    """Changes that wait for a person."""
    set_aside: int = 0
    """Changes that cannot be applied as they are."""
    waiting: int = 0
    """Changes that were not pushed yet."""
    alarm: str = ""
    """Why somebody should look; empty if nothing is overdue."""


def sync_folder(base: Base) -> Path:
    """Sync's own files in the cache."""
    return base.cache / "sync"


def read_sync_state(base: Base) -> SyncState:
    """Read what the last sync left; absent or damaged files read as never."""
    last = _read(sync_folder(base) / "last.json")
    beat = _read(sync_folder(base) / "heartbeat.json")
    states = [item.get("state") for item in _read(sync_folder(base) / "queue.json").get("items", [])]
    scheduled = str(beat.get("scheduled_at", ""))
    code = last.get("exit")
    return SyncState(
        at=str(last.get("at", "")),
        exit=code if isinstance(code, int) else None,
        problem=str(last.get("problem", "")),
        scheduled_at=scheduled,
        held=states.count("held"),
        set_aside=states.count("set-aside"),
        waiting=states.count("waiting"),
        alarm=alarm(scheduled, clock.now()),
    )


def alarm(scheduled_at: str, now: dt.datetime) -> str:
    """Say that the scheduled job is overdue; ``""`` where it is not, or none was ever heard of."""
    if not scheduled_at:
        return ""
    try:
        heard = dt.datetime.fromisoformat(scheduled_at)
    except ValueError:
        return f"its last report {scheduled_at!r} is no moment"
    if heard.tzinfo is None or now - heard <= OVERDUE:
        return ""
    hours = int((now - heard).total_seconds() // 3600)
    return f"the scheduled job was last heard of {hours} h ago"


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
