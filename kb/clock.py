"""The one clock whose readings reach a file; ``KB_NOW`` fixes it, so that reruns can be compared byte for byte."""

from __future__ import annotations

import datetime as dt
import os

from kb.errors import WrongUse


def now() -> dt.datetime:
    """Return the present moment in UTC to the second, or ``KB_NOW`` where it is set.

    Raises:
        WrongUse: ``KB_NOW`` is no ISO 8601 moment with a zone.
    """
    fixed = os.environ.get("KB_NOW")
    if not fixed:
        return dt.datetime.now(dt.UTC).replace(microsecond=0)
    try:
        moment = dt.datetime.fromisoformat(fixed)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise WrongUse(
            f"KB_NOW={fixed!r} is no moment",
            cause="it must be ISO 8601 with a zone",
            remedy="for example KB_NOW=2026-07-02T03:05:00Z, or unset it",
        )
    return moment.astimezone(dt.UTC).replace(microsecond=0)


def stamp(moment: dt.datetime) -> str:
    """Write a moment the one way files hold it: ``2026-07-02T03:05:00Z``."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
