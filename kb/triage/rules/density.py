"""Density of information: figures, versions, identifiers and abbreviations per word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

TERM = re.compile(
    r"\b[A-Z]{2,}[A-Z0-9]*s?\b|\b\w*[a-z][A-Z]\w*\b|\b\w+_\w+\b|\b[A-Za-z]+[\d.]+\w*\b|(?<![\w.])\d[\d,.]*\s?(?:%|x\b|×|[a-zA-Z/]{1,6}\b)?"
)
MAX_EVIDENCE = 4


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """How far the share of such terms is above ``above``, or below ``below``; one of the two is given.

    Strength grows to 1 at twice ``above``, or at none at all.
    """
    words = max(reading.num_words, 1)
    terms = tuple(dict.fromkeys(hit.group().strip() for hit in TERM.finditer(reading.text)))
    share = len(terms) / words
    evidence = (f"{len(terms)} terms in {words} words", *terms[:MAX_EVIDENCE])
    if "above" in options:
        least = float(options["above"])
        return Found(min(1.0, share / least - 1), evidence) if share > least else None
    most = float(options.get("below", 0.02))
    return Found(1 - share / most, evidence[:1]) if share < most else None
