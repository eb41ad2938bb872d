"""Which short name means which entry: overlap of words, rare words counting more."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_WORDS = re.compile(r"[a-z0-9]+(?:[.+][a-z0-9]+)*|[\u3400-\u9fff]+", re.IGNORECASE)
_STOP = frozenset("a an the and of for in on to with vs its is are from by at as arxiv blog 的 与 和".split())


def words_of(text: str) -> set[str]:
    """Lower-case words, Chinese as pairs of characters."""
    found: set[str] = set()
    for word in _WORDS.findall(unicodedata.normalize("NFKC", text).lower()):
        if word[0] > "\u33ff":
            found.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word not in _STOP:
            found.add(word)
    return found


def initials_of(text: str) -> str:
    """First letters of the capitalised words: “Multi-Segment Attention” → ``msa``."""
    return "".join(w[0] for w in re.findall(r"[A-Z][A-Za-z]+", text)).lower()


def similarity(left: Sequence[str], right: Sequence[str]) -> list[list[float]]:
    """Share of the rarer side's word weight that both texts have, 0–1, for every pair."""
    bags_l, bags_r = [words_of(t) for t in left], [words_of(t) for t in right]
    frequency = Counter(word for bag in bags_r for word in bag)
    weight = {w: 1 / (1 + math.log(1 + frequency[w])) for bag in [*bags_l, *bags_r] for w in bag}

    def mass(bag: set[str]) -> float:
        return sum(sorted(weight[w] for w in bag))

    table = []
    for text_l, a in zip(left, bags_l, strict=True):
        row = []
        for text_r, b in zip(right, bags_r, strict=True):
            low = min(mass(a), mass(b))
            score = mass(a & b) / low if low else 0.0
            initials = initials_of(text_r)
            if len(initials) > 2 and initials in {w.lower() for w in re.findall(r"[A-Z]{3,}", text_l)}:
                score = max(score, 0.9)
            row.append(score)
        table.append(row)
    return table


def assign(
    left: Sequence[str], right: Sequence[str], *, least: float, in_order: bool = False
) -> dict[int, int]:
    """Pair each left text with at most one right text, best pairs first.

    Args:
        left: Short names.
        right: What they may mean.
        least: Similarity below which two are not paired.
        in_order: Both lists tell the same things in the same order, so that equal places count.
    """
    table = similarity(left, right)
    bonus = 0.35 if in_order and len(left) == len(right) else 0.0
    pairs = sorted(
        (
            (score + (bonus if i == j else 0.0), -abs(i - j), i, j)
            for i, row in enumerate(table)
            for j, score in enumerate(row)
        ),
        reverse=True,
    )
    found: dict[int, int] = {}
    for score, _, i, j in pairs:
        if score >= least and i not in found and j not in found.values():
            found[i] = j
    return found
