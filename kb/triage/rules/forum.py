"""A place where anybody writes: a forum, a discussion board, a community site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

PARTS = frozenset({"forum", "forums", "community", "discuss", "discourse", "bbs", "answers"})


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """Whole for a host one of whose parts says so."""
    hits = tuple(part for part in reading.host.split(".") if part in PARTS)
    return Found(1.0, hits) if hits else None
