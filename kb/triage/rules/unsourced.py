"""Figures that stand alone: no baseline, no hardware, no version, no model anywhere in the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.figures import find_figures, setup_of
from kb.triage.reading import Found, Reading

MAX_EVIDENCE = 3


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """Whole if no figure has a baseline or conditions beside it; half if the text names a set-up elsewhere."""
    figures = find_figures(reading.sentences)
    if not figures or reading.is_paper:
        return None
    alone = [f for f in figures if not (f.has_baseline or f.has_conditions)]
    if len(alone) < len(figures):
        return None
    said = tuple(dict.fromkeys(figure.said for figure in alone))[:MAX_EVIDENCE]
    return Found(0.5 if setup_of(reading.text).keys() & {"hardware", "version", "model"} else 1.0, said)
