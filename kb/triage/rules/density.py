"""Density of information: figures, versions, identifiers and abbreviations per word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kb.triage.reading import Found, Reading

WORD = re.compile(r"[A-Za-z0-9_][\w.,+/%×-]*")


@lru_cache(maxsize=8)
def terms_of(text: str) -> tuple[str, ...]:
    """Distinct words that hold a digit or an underscore, are written in capitals, or mix small letters and capitals."""
    # most words are plain: they are passed over before anything else is asked of them
    marked = [word for word in WORD.findall(text) if not (word.isalpha() and word.islower())]
    words = dict.fromkeys([word.rstrip(".,-/") for word in marked])
    return tuple([word for word in words if len(word) > 1 and _is_term(word)])


def _is_term(word: str) -> bool:
    if word.islower() and word.isalpha():
        return False
    return word.isupper() or "_" in word or any(c.isdigit() for c in word) or not word[1:].islower()


MAX_EVIDENCE = 4


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """How far the share of such terms is above ``above``, or below ``below``; one of the two is given.

    Strength grows to 1 at twice ``above``, or at none at all.
    """
    words = max(reading.num_words, 1)
    terms = terms_of(reading.text)
    share = len(terms) / words
    evidence = (f"{len(terms)} terms in {words} words", *terms[:MAX_EVIDENCE])
    if "above" in options:
        least = float(options["above"])
        return Found(min(1.0, share / least - 1), evidence) if share > least else None
    most = float(options.get("below", 0.02))
    return Found(1 - share / most, evidence[:1]) if share < most else None
