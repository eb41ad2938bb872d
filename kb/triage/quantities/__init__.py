"""Quantities of a text in English or Chinese: value, unit, bound, what it is compared with, claim or condition.

Nothing is learnt and nothing is looked up: grammar of numbers and the words beside them, so that every result can be
explained by its sentence. `extract` never changes the text it is given, and offsets point into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kb.triage.quantities.baselines import Mention, mentions, own_baseline
from kb.triage.quantities.bounds import bound_of
from kb.triage.quantities.noise import SETTING, blank, noise_spans
from kb.triage.quantities.numbers import Atom, atoms
from kb.triage.quantities.roles import best, role_of
from kb.triage.quantities.shape import Bound, Quantity, Role
from kb.triage.quantities.shares import is_factor, shares, speaks_of_scores, stated
from kb.triage.quantities.tables import table_quantities, table_spans
from kb.triage.quantities.text import Sentence, clause_start, plain, sentences
from kb.triage.quantities.worded import worded

__all__ = ["Bound", "Quantity", "Role", "extract"]
_PER_SECOND_ZH = re.compile(r"每秒\s?(?:约|可|能|最多|大约)?\s?(?:[\u4e00-\u9fff]{1,4}?)?(?:约|近)?\s?$")
_PER_HOUR_ZH = re.compile(r"每小时\s?(?:约|仅|只要)?\s?$")
MAX_FIGURES = 60
"""Numbers from which a sentence is no prose: a dump of data is not read."""
COMPARABLE = frozenset({"ratio", "fraction"})
"""Units whose figures are differences, so that a baseline named later in the sentence is theirs."""


def extract(text: str) -> list[Quantity]:
    """Every figure of a text with its role, in order of place.

    Args:
        text: Prose or Markdown; at most a few hundred kilobytes are worth reading.
    """
    flat = plain(text)
    found: list[Quantity] = []
    rest = flat
    for start, end in table_spans(flat):
        found.extend(table_quantities(flat, start, end))
        rest = rest[:start] + "\n" * (end - start) + rest[end:]
    for sentence in sentences(rest):
        found.extend(_of_sentence(sentence))
    return [replace(q, quote=text[q.start : q.end]) for q in sorted(found, key=lambda q: (q.start, q.end))]


def _of_sentence(sentence: Sentence) -> Iterator[Quantity]:
    text = sentence.text
    if not re.search(r"\w", text) or len(re.findall(r"\d+", text)) > MAX_FIGURES:
        return
    spans = noise_spans(text)
    readable = blank(
        text, [*spans, *(m.span() for m in SETTING.finditer(text) if not _is_found(text, m.start()))]
    )
    found = [*_numbers(readable), *_words(readable)]
    found.sort(key=lambda q: (q.start, -q.end))
    kept: list[Quantity] = []
    for quantity in found:
        if not kept or quantity.start >= kept[-1].end:
            kept.append(quantity)
    for quantity in _compared(text, kept):
        yield replace(
            quantity,
            start=sentence.start + quantity.start,
            end=sentence.start + quantity.end,
            about=text[clause_start(text, quantity.start) : quantity.start].strip(),
            sentence=text.strip(),
        )


def _is_found(text: str, start: int) -> bool:
    """“break-even lies near r = 0.67” reports; ``max_num_seqs=32`` sets."""
    return bool(re.search(r"(?:near|at about|around|约为|接近|等于)\s*$", text[:start]))


def _numbers(text: str) -> Iterator[Quantity]:
    for atom in [*atoms(text)]:
        known = _per_time(text, _named(text, atom))
        if not known.unit:
            share = shares(text, known) or stated(text, known) or _counted(text, known)
            if share is None:
                continue
            known = share
        bound = bound_of(text, known.start if known.is_range else atom.start, known.end)
        if known.is_range and bound in {"exact", "about", "at-least"}:
            bound = "range"
        if re.search(r"±\s?$", text[: known.start]) and not known.is_range:
            bound = "up-to"
        role = role_of(text, known, bound)
        if known.is_worded and known.unit == "count" and known.low == 1:
            continue
        yield Quantity(
            text[known.start : known.end],
            known.start,
            known.end,
            known.low,
            known.high,
            known.unit,
            bound,
            role,
        )


def _counted(text: str, atom: Atom) -> Atom | None:
    """A bare number that says something all the same: “by a factor of 2.7”, “from 48 to 130”, “a draft length of 4 is best”."""
    if re.search(r"\bfactors?\sof\s(?:about\s|around\s|up\sto\s|over\s|more than\s|~)?$", text[: atom.start]):
        return replace(atom, unit="ratio")
    if atom.is_from:
        is_share = 0 <= atom.low <= atom.high <= 1 and atom.decimals
        head = text[: atom.start]
        is_score = atom.decimals and speaks_of_scores(head)
        unit = "points" if is_score else "ratio" if is_factor(head) else "count"
        return replace(atom, unit="fraction" if is_share else unit)
    if best(text, atom.end) and not atom.is_worded:
        start = atom.start - len(m.group()) if (m := re.search(r"取\s?$", text[: atom.start])) else atom.start
        return replace(atom, unit="count", start=start)
    return None


def _named(text: str, atom: Atom) -> Atom:
    """“near r = 0.67”: the name belongs to the quote."""
    if m := re.search(r"(?<![\w])[A-Za-z]\s?=\s?$", text[: atom.start]):
        return replace(atom, start=m.start(), unit=atom.unit or "ratio")
    return atom


def _per_time(text: str, atom: Atom) -> Atom:
    """每秒 N 个请求, 每小时 N 美元."""
    before = text[: atom.start]
    if atom.unit in {"", "count"} and (m := _PER_SECOND_ZH.search(before)):
        after = text[atom.start : atom.end + 12].lower()
        unit = "tok/s" if "token" in after or "词元" in after else "req/s"
        return replace(atom, start=m.start(), unit=unit, noun="")
    if atom.unit == "usd" and (m := _PER_HOUR_ZH.search(before)):
        return replace(atom, start=m.start(), unit="usd/h")
    return atom


def _words(text: str) -> Iterator[Quantity]:
    for word in worded(text):
        bound: Bound = (
            "about" if word.is_about else "exact" if word.is_zero else bound_of(text, word.start, word.end)
        )
        if not word.is_zero and (
            m := re.search(r"(\bnot?\s)?(more|less) than\s$", text[: word.start], re.IGNORECASE)
        ):
            bound = "at-least" if (m.group(2).lower() == "more") != bool(m.group(1)) else "up-to"
        yield Quantity(
            text[word.start : word.end], word.start, word.end, word.low, word.low, word.unit, bound
        )


def _compared(text: str, found: list[Quantity]) -> list[Quantity]:
    """Give each claim its baseline: tied by grammar, named in its clause, or shared over the sentence."""
    named = mentions(text)[:MAX_FIGURES] if any(q.role == "claim" for q in found) else []
    out: list[Quantity] = []
    for quantity in found:
        if quantity.role != "claim":
            out.append(quantity)
            continue
        own = own_baseline(text, quantity.start, quantity.end, quantity.unit)
        out.append(
            replace(
                quantity, baseline=own or _shared(text, quantity, named) or _inherited(text, quantity, out)
            )
        )
    return out


def _inherited(text: str, quantity: Quantity, before: list[Quantity]) -> str:
    """“0.9x the speed of A on this card and 1.05x on that”: the next factor means the same thing."""
    begin, _ = _segment(text, quantity.start)
    same = [
        q for q in before if q.start >= begin and q.unit == quantity.unit == "ratio" and q.role == "claim"
    ]
    return same[-1].baseline if same else ""


def _shared(text: str, quantity: Quantity, named: list[Mention]) -> str:
    """The mention that covers a figure: in its segment before it, else the first one after it."""
    begin, end = _segment(text, quantity.start)
    before = [m for m in named if begin <= m.start < quantity.start]
    after = [m for m in named if m.start >= quantity.end]
    near = [m for m in after if not re.search(r"[,，;；。]", text[quantity.end : m.start])]
    if near and (quantity.unit in COMPARABLE or near[0].start - quantity.end < 40):
        return near[0].text
    if before:
        return before[-1].text
    inside = [m for m in after if m.start < end]
    if inside and inside[0].is_rival:
        return inside[0].text
    if inside and (quantity.unit in COMPARABLE or _is_change(quantity)):
        return inside[0].text
    later = [m for m in after if quantity.unit in COMPARABLE or _is_change(quantity)]
    return later[-1].text if later and not any(m.is_leading for m in named) else ""


def _is_change(quantity: Quantity) -> bool:
    return bool(re.match(r"from\b|从|由", quantity.quote))


def _segment(text: str, at: int) -> tuple[int, int]:
    """Between semicolons."""
    cuts = [0, *(m.end() for m in re.finditer(r"[;；]", text)), len(text)]
    begin = max(cut for cut in cuts if cut <= at)
    return begin, min(cut for cut in cuts if cut > at)
