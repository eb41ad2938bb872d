"""Text prepared for reading: full-width forms made plain without moving a character, sentences, clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WIDE: dict[int, str] = {
    c: chr(c - 0xFEE0) for c in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))
}
_WIDE |= {ord("％"): "%", ord("．"): ".", ord("～"): "~", ord("〜"): "~", ord("﹪"): "%", ord("＝"): "=", ord("－"): "-", ord("＋"): "+",
          ord("＜"): "<", ord("＞"): ">", ord("≦"): "≤", ord("≧"): "≥", ord("\u00a0"): " ", ord("\u2009"): " ", ord("\u202f"): " ",
          ord("−"): "-", ord("✕"): "×", ord("＄"): "$"}  # fmt: skip
_END = re.compile(
    r"(?<!\bFig)(?<!\bvs)(?<!\bNo)(?<!\bSec)(?<!\bEq)(?<!i\.e)(?<!e\.g)(?<!\bca)(?<!\bapprox)[.!?](?=\s+[^a-z\s]|\s*$)|[。！？\n]"
)


def plain(text: str) -> str:
    """The same text, character for character, with full-width digits and signs made plain."""
    return text.translate(_WIDE)


MAX_SENTENCE = 600
"""Characters after which a sentence is cut, so that no text costs more than its length."""


@dataclass(frozen=True)
class Sentence:
    """A sentence and where it begins."""

    text: str
    start: int


def sentences(text: str) -> Iterator[Sentence]:
    """Sentences of a plain text; abbreviations and decimals end none."""
    begin = 0
    ends = [m.end() for m in _END.finditer(text)] + [len(text)]
    for end in _short(text, ends):
        if text[begin:end].strip():
            yield Sentence(text[begin:end], begin)
        begin = end


def _short(text: str, ends: list[int]) -> Iterator[int]:
    """The same ends, and one more wherever a sentence would be longer than anybody writes."""
    begin = 0
    for end in ends:
        while end - begin > MAX_SENTENCE:
            cut = max(text.rfind(c, begin + MAX_SENTENCE // 2, begin + MAX_SENTENCE) for c in " ，；,;")
            begin = cut + 1 if cut > begin else begin + MAX_SENTENCE
            yield begin
        yield end
        begin = end


def clause_start(text: str, at: int) -> int:
    """Where the clause around ``at`` begins: after the last comma, bracket or conjunction before it."""
    found = [
        m.end()
        for m in re.finditer(r",\s|[，、；;：()（）]|:\s|\b(?:whereas|while|but)\b|而(?=[^且])", text[:at])
    ]
    return found[-1] if found else 0


def clause_end(text: str, at: int) -> int:
    """Where the clause around ``at`` ends."""
    found = re.search(r",(?!\d)|[，；;。()（）]|\b(?:whereas|while|but)\b", text[at:])
    return at + found.start() if found else len(text)
