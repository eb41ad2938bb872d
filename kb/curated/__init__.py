"""Curators' drafts as text: what they say, and what they say about themselves. Reading only; nothing is corrected.

Drafts arrive as they were pasted: lists flattened into one line, code fences on one line, table rows torn apart,
numbers as keycaps. `read_curated` makes entries, sections, tables and references of them, each with its line.
"""

from __future__ import annotations

from kb.curated.read import read_curated
from kb.curated.shape import (
    CandidateRow,
    Curated,
    Entry,
    Line,
    Reference,
    Section,
    TagCount,
    Unreadable,
    VerdictRow,
)

__all__ = [
    "CandidateRow",
    "Curated",
    "Entry",
    "Line",
    "Reference",
    "Section",
    "TagCount",
    "Unreadable",
    "VerdictRow",
    "read_curated",
]
