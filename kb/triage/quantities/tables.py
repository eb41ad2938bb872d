"""Figures of Markdown tables: the unit from the cell or its column's head, the first column as the case."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kb.triage.quantities.bounds import bound_of
from kb.triage.quantities.noise import blank, noise_spans
from kb.triage.quantities.numbers import Atom, atoms
from kb.triage.quantities.shape import Quantity
from kb.triage.quantities.shares import POINT_WORD
from kb.triage.quantities.units import UNIT, unit_of

_RULE = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?\s*)?\|?\s*")
_GAP = re.compile(
    r"gap|diff|delta|Δ|speed-?up|gain|improvement|reduction|vs|差距|差异|提升|加速|降低|相对|变化",
    re.IGNORECASE,
)
_CASE = re.compile(
    r"batch|concurren|length|size|tokens?$|threads?|requests?$|users|overlap|GPUs?$|workers|depth|rate \(|load|并发|批|长度|大小|卡数|请求数|前缀|重叠|上下文",
    re.IGNORECASE,
)
_IN_HEAD = re.compile(r"[（(]\s*([^()（）]+?)\s*[)）]|,\s*([^,]+)$")
_POINTS = re.compile(rf"(?<![A-Za-z])(?:{POINT_WORD}|acc|F1|EM|pass@\d+)(?![A-Za-z])", re.IGNORECASE)
_SHARE = re.compile(r"hit rate|命中率|share|占比|utili[sz]ation|利用率|accuracy|准确率|recall", re.IGNORECASE)


@dataclass(frozen=True)
class _Cell:
    text: str
    start: int


def table_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of a text that are tables: a head, a rule, rows."""
    lines, at = text.split("\n"), 0
    starts = []
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    i = 0
    while i + 1 < len(lines):
        if "|" in lines[i] and _RULE.fullmatch(lines[i + 1]):
            j = i + 2
            while j < len(lines) and "|" in lines[j]:
                j += 1
            yield starts[i], starts[j - 1] + len(lines[j - 1])
            i = j
        else:
            i += 1


def table_quantities(text: str, start: int, end: int) -> Iterator[Quantity]:
    """Quantities of the table at ``start:end`` of a plain text."""
    at, rows = start, []
    for line in text[start:end].split("\n"):
        rows.append((line, at))
        at += len(line) + 1
    heads = [cell.text for cell in _cells(*rows[0])]
    for line, begin in rows[2:]:
        cells = _cells(line, begin)
        name = cells[0].text if cells else ""
        for column, cell in enumerate(cells):
            head = heads[column] if column < len(heads) else ""
            yield from _cell(text, cell, head, name, heads, is_first=column == 0)


def _cells(line: str, start: int) -> list[_Cell]:
    found: list[_Cell] = []
    body = line.rstrip()
    inner_start = len(line) - len(line.lstrip())
    inner_start += body[inner_start : inner_start + 1] == "|"
    end = len(body) - (body.endswith("|") and len(body) > inner_start)
    at = inner_start
    for part in body[inner_start:end].split("|"):
        lead = len(part) - len(part.lstrip())
        found.append(_Cell(part.strip(), start + at + lead))
        at += len(part) + 1
    return found


def _cell(
    text: str, cell: _Cell, head: str, name: str, heads: list[str], *, is_first: bool
) -> Iterator[Quantity]:
    plain = blank(cell.text, noise_spans(cell.text))
    found = atoms(plain)
    for atom in found:
        known = _with_head(atom, plain, head)
        if known is None:
            continue
        is_case = is_first or (bool(_CASE.search(head)) and known.unit == "count")
        if known.unit == "count" and not is_case and not _plain_number(cell.text):
            continue
        low, high = known.low, known.high
        sign = cell.text[atom.start - 1 : atom.start] if atom.start else ""
        bound = bound_of(plain, atom.start, atom.end)
        bound = "range" if known.is_range and bound in {"exact", "about"} else bound
        begin = cell.start + atom.start - (sign == "-" and atom.start == 1 and not known.is_range) * 0
        yield Quantity(
            quote=text[begin : cell.start + atom.end],
            start=begin,
            end=cell.start + atom.end,
            low=low,
            high=high,
            unit=known.unit,
            bound=bound,
            role="condition" if is_case else "claim",
            baseline="" if is_case else _baseline(head, heads),
            about=f"{head}, {name}".strip(", "),
            sentence=f"{name} | {head}",
        )


def _plain_number(text: str) -> bool:
    return bool(re.fullmatch(r"[~≈约<>≤≥+-]?\s?[\d.,]+(?:\s?[-–~]\s?[\d.,]+)?", text))


def _with_head(atom: Atom, text: str, head: str) -> Atom | None:
    """A bare number takes the unit its column's head names."""
    if atom.unit not in {"", "count"} or atom.noun.lower() in {"tokens", "token"}:
        return atom
    spelt = _unit_in(head)
    if spelt:
        unit, factor = spelt
        return replace(atom, unit=unit, low=atom.low * factor, high=atom.high * factor)
    if _SHARE.search(head) and atom.high <= 1 and "." in text:
        return replace(atom, unit="fraction")
    if atom.decimals and _POINTS.search(head):
        return replace(atom, unit="points")
    return replace(atom, unit="count")


def _unit_in(head: str) -> tuple[str, float] | None:
    inside = [part for m in _IN_HEAD.finditer(head) for part in m.groups() if part]
    for part in [*inside, head]:
        found = UNIT.fullmatch(part) or (
            re.search(r"(?:^|\s)((?:total |output )?(?:tok|tokens|req|requests)/s|%|ms)(?:$|\s)", part)
            if part == head
            else None
        )
        if found:
            return unit_of(re.sub(r"^(?:total|output)\s", "", found.group(1)))
    return None


def _baseline(head: str, heads: list[str]) -> str:
    """A column of gaps compares with what it names, else with the first value column."""
    if not _GAP.search(head):
        return ""
    if named := re.search(r"(?:vs\.?|over|against|相对|对比|比)\s*([\w .+-]+)", head):
        return named.group(1).strip()
    first = next((h for h in heads[1:] if not _GAP.search(h)), "")
    return re.sub(r"[（(].*?[)）]|\b(?:tok|req)\w*/s\b|\bms\b|%", "", first).strip() if len(heads) > 3 else ""
