"""Second-hand figures against the source's claims: same number, bound, unit, comparator, attribution?

A draft quotes; the registry holds what the source says. Where a person has recorded the comparison (``relayed`` of a
claim), that record counts; else the figures themselves are compared, and nothing is said where they cannot tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kb.curated import Curated, Entry, Line
from kb.curated.advice import entry_numbers
from kb.curated.match import words_of
from kb.model import Claim
from kb.triage.quantities import Quantity, extract

TOLERANCE = 0.005
"""Relative difference within which two figures are the same when both are stated exactly."""
ROUNDED = 0.03
"""The same where one of them says “about”."""
UNITS = {"bits": "bit", "count": "count", "tokens": "count"}
"""Unit of an extracted figure → unit of a claim, where they differ."""
QUALIFIED = frozenset({"up-to", "at-least"})
LEAST_WORDS = 2
"""Words about the same thing that make another number a wrong number."""


@dataclass(frozen=True)
class Relayed:
    """One quotation and how it relates to its source."""

    claim: str
    entry: str
    line: int
    said: str
    """The figure as the draft writes it."""
    match: str
    """Key of `kb.vocab.RELAY_MATCHES`."""
    basis: Literal["registry", "figures"]
    """Recorded by a person, or compared here."""
    stated: str
    """What the draft says, comparably."""
    source: str
    """What the claim says, comparably."""


def relayed(curated: Curated, draft: str, claims: Mapping[str, Claim]) -> list[Relayed]:
    """Every quotation of a draft that the registry can judge, in order of line.

    Args:
        curated: The draft's text.
        draft: ``curator/date-slug``.
        claims: The registry by id.
    """
    found: dict[tuple[int, str, str], Relayed] = {}
    for entry in curated.entries:
        lines = [*entry.lines, *_elsewhere(curated, entry)]
        for hit in [
            *_recorded(entry, lines, draft, claims.values()),
            *_compared(entry, lines, draft, claims.values()),
        ]:
            found.setdefault((hit.line, hit.claim, hit.said), hit)
    return sorted(found.values(), key=lambda r: (r.line, r.claim, r.said))


def _elsewhere(curated: Curated, entry: Entry) -> Iterator[Line]:
    """Lines of other sections that name the entry by its number and no other."""
    known = [e.n for e in curated.entries]
    for section in curated.sections:
        for line in section.lines:
            if section.kind in {"insight", "verdicts", "complement"} and entry_numbers(line.text, known) == [
                entry.n
            ]:
                yield line


def _recorded(entry: Entry, lines: Sequence[Line], draft: str, claims: Iterable[Claim]) -> Iterator[Relayed]:
    """What people recorded about this entry, at the line that holds the words."""
    for claim in claims:
        for relay in claim.relayed:
            if relay.draft != f"{draft}#{entry.n}":
                continue
            wanted = _bare(relay.said)
            for line in lines if re.search(r"\w", wanted) else ():
                if wanted in _bare(line.text):
                    yield Relayed(
                        claim.id,
                        entry.n,
                        line.number,
                        relay.said,
                        relay.match,
                        "registry",
                        relay.said,
                        _stated(claim),
                    )


def _bare(text: str) -> str:
    return re.sub(r"[\s~≈约]+", "", text.replace("–", "-").replace("—", "-").replace("x", "×"))


def _compared(entry: Entry, lines: Sequence[Line], draft: str, claims: Iterable[Claim]) -> Iterator[Relayed]:
    ids = {work.id for work in entry.works}
    numbers = [claim for claim in claims if claim.low is not None]
    own = [claim for claim in numbers if claim.item in ids]
    other = [claim for claim in numbers if claim.item not in ids]
    if not own:
        return
    for line in lines:
        for quantity in extract(line.text) if line.kind != "code" else []:
            if quantity.role != "claim":
                continue
            said = f"{line.text[max(0, quantity.start - 24) : quantity.start]} {quantity.about}"
            if (judged := _judge(quantity, said, own, other, ids)) is not None:
                claim, match = judged
                if any(relay.draft == f"{draft}#{entry.n}" for relay in claim.relayed):
                    continue
                yield Relayed(
                    claim.id,
                    entry.n,
                    line.number,
                    quantity.quote,
                    match,
                    "figures",
                    _said(quantity),
                    _stated(claim),
                )


def _judge(
    quantity: Quantity, said: str, own: Sequence[Claim], other: Sequence[Claim], ids: set[str]
) -> tuple[Claim, str] | None:
    """The claim a figure quotes and how: the source's own first, then another source's with the same figure."""
    words = words_of(said)
    if equal := [claim for claim in own if _is_equal(quantity, claim)]:
        claim = max(equal, key=lambda c: len(words & _words(c)))
        return claim, compare(quantity, claim)
    foreign = [c for c in other if _is_equal(quantity, c) and len(words & _words(c)) >= LEAST_WORDS]
    if foreign and own and ids:
        return max(foreign, key=lambda c: len(words & _words(c))), "misattributed"
    near = [
        c
        for c in own
        if UNITS.get(quantity.unit, quantity.unit) == c.unit and len(words & _words(c)) > LEAST_WORDS
    ]
    if near:
        return max(near, key=lambda c: len(words & _words(c))), "different-value"
    return None


def compare(quantity: Quantity, claim: Claim) -> str:
    """How a figure as quoted relates to the claim it quotes; a key of `kb.vocab.RELAY_MATCHES`."""
    if UNITS.get(quantity.unit, quantity.unit) != claim.unit:
        return "different-unit"
    if not _is_equal(quantity, claim):
        return "different-value"
    if claim.bound in QUALIFIED and quantity.bound != claim.bound:
        return "bound-dropped"
    if quantity.baseline and claim.baseline:
        ours, theirs = _meaning(quantity.baseline), _meaning(claim.baseline)
        if ours and theirs and not ours & theirs:
            return "different-comparator"
    return "matches"


def _meaning(text: str) -> set[str]:
    """Words of a baseline that can be compared across languages: names and numbers."""
    return {
        word
        for word in words_of(text)
        if word.isascii() and word not in {"baseline", "method", "best", "sota"}
    }


def _is_equal(quantity: Quantity, claim: Claim) -> bool:
    if UNITS.get(quantity.unit, quantity.unit) != claim.unit or claim.low is None or claim.high is None:
        return False
    if claim.bound == "about" and claim.low <= quantity.low and quantity.high <= claim.high:
        return True
    slack = (
        ROUNDED if "about" in {quantity.bound, claim.bound} or quantity.quote.startswith("~") else TOLERANCE
    )
    pairs = ((quantity.low, claim.low), (quantity.high, claim.high))
    return all(abs(a - b) <= slack * max(abs(a), abs(b)) for a, b in pairs)


def _words(claim: Claim) -> set[str]:
    return words_of(
        f"{claim.statement.zh} {claim.statement.en} {claim.id.replace('/', ' ').replace('-', ' ')}"
    )


def _said(quantity: Quantity) -> str:
    return _figure(
        quantity.bound,
        quantity.low,
        quantity.high,
        UNITS.get(quantity.unit, quantity.unit),
        quantity.baseline,
    )


def _stated(claim: Claim) -> str:
    if claim.low is None or claim.high is None:
        return claim.statement.en or claim.statement.zh
    return _figure(claim.bound, claim.low, claim.high, claim.unit, claim.baseline)


def _figure(bound: str, low: float, high: float, unit: str, baseline: str) -> str:
    value = f"{low:g}" if low == high else f"{low:g}–{high:g}"
    against = f" against {baseline}" if baseline else ""
    return f"{'' if bound in {'exact', 'range'} else bound + ' '}{value} {unit}{against}".strip()
