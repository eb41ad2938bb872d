"""The sentences of a text that carry its figures: short, few, verbatim, as key data of a draft's entry."""

from __future__ import annotations

from kb.triage.figures import find_figures
from kb.triage.reading import Reading

AT_MOST = 3
"""Quotes per item; more would be somebody else's text."""
MAX_CHARS = 200
MIN_CHARS = 12


def key_sentences(reading: Reading) -> list[str]:
    """Up to three sentences with figures in the order of the text, those with baseline and conditions first chosen."""
    worth: dict[str, float] = {}
    for figure in find_figures(reading.sentences):
        bonus = 1.0 + figure.has_baseline + 0.5 * figure.has_conditions
        worth[figure.sentence] = max(worth.get(figure.sentence, 0), bonus)
    fit = [s for s in worth if MIN_CHARS <= len(s) <= MAX_CHARS] or [s for s in worth if len(s) >= MIN_CHARS]
    order = {sentence: number for number, sentence in enumerate(reading.sentences)}
    best = sorted(fit, key=lambda s: (-worth[s], order.get(s, 0)))[:AT_MOST]
    return [_cut(s) for s in sorted(best, key=lambda s: order.get(s, 0))]


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= MAX_CHARS else sentence[: MAX_CHARS - 1].rstrip() + "…"
