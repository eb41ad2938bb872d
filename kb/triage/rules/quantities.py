"""Quantitative content: figures with a unit and, better, with baseline and conditions beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.figures import find_figures
from kb.triage.reading import Found, Reading

ENOUGH = 4
"""More figures than this add nothing."""
ENOUGH_BASED = 2
MAX_EVIDENCE = 6


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """Half for figures with a baseline, three tenths for conditions, two tenths for there being figures."""
    figures = find_figures(reading.sentences)
    if not figures:
        return None
    based = [figure for figure in figures if figure.has_baseline]
    placed = [figure for figure in figures if figure.has_conditions]
    strength = (
        0.5 * min(1, len(based) / ENOUGH_BASED)
        + 0.3 * min(1, len(placed) / ENOUGH_BASED)
        + 0.2 * min(1, len(figures) / ENOUGH)
    )
    best = sorted(figures, key=lambda f: -(f.has_baseline + f.has_conditions))
    return Found(strength, tuple(dict.fromkeys(figure.said for figure in best))[:MAX_EVIDENCE])
