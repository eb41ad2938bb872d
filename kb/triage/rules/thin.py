"""Thin texts: bare lists of works, and teasers that hardly say anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.figures import find_figures
from kb.triage.reading import Found, Reading

LISTED = re.compile(r"\b\d+ (?:papers|links|articles|posts|works|repos|tools)\b|\d+ ?篇", re.IGNORECASE)
ROW = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*(?:\[[^\]]+\]\()?https?://\S+\)?\s*$", re.MULTILINE)
LEAST_LISTED = 3
LEAST_ROWS = 4
FEW_WORDS = 45
"""A text shorter than this says nothing that can be judged."""


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """Whole for a list; for a short text without a single figure the more, the shorter it is."""
    listed = [hit.group() for hit in LISTED.finditer(reading.text)]
    rows = ROW.findall(reading.text)
    if len(listed) >= LEAST_LISTED:
        return Found(1.0, tuple(dict.fromkeys(listed))[:LEAST_LISTED])
    if len(rows) >= LEAST_ROWS:
        return Found(1.0, (f"{len(rows)} bare links",))
    few = int(options.get("few_words", FEW_WORDS))
    if reading.num_words < few and not find_figures(reading.sentences):
        return Found(1 - reading.num_words / few, (f"{reading.num_words} words",))
    return None
