"""Titles that may name one work: proposed to a person as a merge, never merged.

Candidates meet in a band of a MinHash signature (Broder 1997) over words and, for Chinese, over pairs of characters; a
pair is proposed where most of its character triples are shared, its numbers are equal, and no list of authors speaks
against it. Alike titles lie: parts I and II, second editions and generic titles name different works, so a person decides.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from dataclasses import dataclass

ALIKE = 0.8
"""Least share of common character triples (Dice)."""
LEAST_CHARS = 15
"""Shorter titles name too many works; a Chinese character counts as three."""
BANDS, ROWS = 4, 2
"""Two titles that share four fifths of their words meet with probability 0.98."""
_TOKEN = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_NUMERAL = re.compile(
    r"\d+(?:\.\d+)*|\b(?:i{1,3}|iv|vi{0,3}|ix|x)\b|[一二三四五六七八九十]+(?=[、部篇章讲期版代])"
)
_MIX = tuple(zlib.crc32(f"kb title {n}".encode()) | 1 for n in range(BANDS * ROWS))


@dataclass(frozen=True)
class Alike:
    """A work whose title is like another's."""

    id: str
    title: str
    share: float
    """Of common character triples, 0–1."""


def plain_title(title: str) -> str:
    """A title without case, accents, punctuation and runs of white space."""
    text = unicodedata.normalize("NFKD", title).lower()
    text = "".join(c for c in text if not unicodedata.combining(c))
    return " ".join(_TOKEN.findall(text))


def bands(title: str) -> list[int]:
    """Keys under which titles that are alike meet; none where it is too short to tell works apart."""
    plain = plain_title(title)
    if sum(3 if c >= "\u3400" else 1 for c in plain) < LEAST_CHARS:
        return []
    hashes = [zlib.crc32(token.encode()) for token in _tokens(plain)]
    least = [min((h ^ mix) * mix & 0xFFFFFFFF for h in hashes) for mix in _MIX]
    pairs = [least[n * ROWS : n * ROWS + ROWS] for n in range(BANDS)]
    return [n << 32 | zlib.crc32(repr(pair).encode()) for n, pair in enumerate(pairs)]


def _tokens(plain: str) -> set[str]:
    found: set[str] = set()
    for word in plain.split():
        if word[0] >= "\u3400" and len(word) > 1:
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        else:
            found.add(word)
    return found


def share(one: str, other: str) -> float:
    """Share of common character triples of two titles, 0 where their numbers differ."""
    a, b = plain_title(one), plain_title(other)
    if sorted(_NUMERAL.findall(a)) != sorted(_NUMERAL.findall(b)):
        return 0.0
    left, right = _triples(a), _triples(b)
    total = left.total() + right.total()
    return 2 * (left & right).total() / total if total else 0.0


def _triples(text: str) -> Counter[str]:
    padded = f" {text} "
    # a pair of Chinese characters says as much as three letters
    width = 2 if sum(c >= "\u3400" for c in text) * 2 > len(text) else 3
    return Counter(padded[i : i + width] for i in range(max(1, len(padded) - width + 1)))


def people(authors: tuple[str, ...]) -> frozenset[str]:
    """Family names as far as a list of authors tells them: the last word of each name, or a Chinese name as it is."""
    names = (plain_title(name.partition(",")[0] if "," in name else name) for name in authors)
    return frozenset(name.split()[-1] for name in names if name)


def may_be_one(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether authors leave it open that two works are one: some in common, or none told."""
    return not one or not other or bool(one & other)
