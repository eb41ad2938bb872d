"""Texts without any date, where the age of what they say cannot be known. Manuals are exempt: they describe a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading
from kb.triage.rules.manual import find as find_manual


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """Whole if neither submitted, updated nor announced is known."""
    item = reading.item
    if item.submitted or item.updated or item.announced or reading.is_paper or find_manual(reading, options):
        return None
    return Found(1.0, ("no date",))
