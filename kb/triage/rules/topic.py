"""How well it fits what the base is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

MAX_EVIDENCE = 5


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """Whole for a topic; with ``missing = true`` whole if no topic fits."""
    if options.get("missing"):
        return None if reading.shelves else Found(1.0, ("no topic fits",))
    if not reading.shelves:
        return None
    words = dict.fromkeys(word for _, found in reading.shelves for word in found)
    return Found(1.0, tuple(words)[:MAX_EVIDENCE] or (reading.shelves[0][0],))
