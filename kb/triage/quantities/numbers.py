"""Numbers with their units as they stand in a text, and how neighbours join: ranges, “from … to …”, shared units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kb.triage.quantities.units import GIGABIT, PER_HOUR, SCALE, SCALES, UNIT, unit_of

_NUMBER = re.compile(r"(?<![\w.,#])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d#]|[.,]\d)", re.ASCII)
_SIGN = re.compile(r"[+-]$|[$]$|US[$]$")
_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "sixteen": 16, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "eighty": 80, "ninety": 90, "hundred": 100,
}  # fmt: skip
_HAN = {"两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_WORD = re.compile(
    rf"\b({'|'.join(_WORDS)})\b(?:\s(million|billion|thousand|hundred)\b)?(?!\s(?:third|quarter|fifth|sixth|eighth|tenth|half|hundredth))",
    re.IGNORECASE,
)
_HAN_NUMBER = re.compile(
    rf"(?<![一二三四五六七八九十第分几百千])([{''.join(_HAN)}])(?=个(?!百分点)|张|台|块(?!钱)|卡|种|条|次|路|轮|倍|组|层)"
)
MEASURE = re.compile(
    r"\s?(个|条|张|次|路|块|轮|维|台|种|份|篇|层|步|位|名|组|对|颗|卡|核|行|项)(?!月|百分点|标准差)"
)
_AFTER_MEASURE = re.compile(r"\s?((?:并发)?[A-Za-z]+|[\u4e00-\u9fff]{1,4})")
_COUNTED = re.compile(r"\s?(?:并发)?(?:tokens?|请求|会话|块|页|对话|用户)")
NOUN = re.compile(
    r"\s?(?:concurrent |parallel |simultaneous |active |more |fewer |extra |additional |random |short |long |real |API |input |output |prompt |decode |prefill |full )?([A-Za-z][A-Za-z-]+)"
)
_JOIN = re.compile(r"\s?(?:-|–|—|~|to|到|至)\s?")
_FROM_TO = re.compile(
    r"\s?[\w ]{0,12}?\s?(?:提高|提升|增加|增长|升|上升|降低|下降|降|压缩|缩短|减少|减|涨|扩大|改|变)?(?:到|至|为|成)(?:了|仅)?\s?[约]?\s?|\s?(?:[A-Za-z]+ ){0,3}to (?:about |around |only |just )?"
)
_FROM = re.compile(r"(?:\bfrom\s(?:about |around |the |roughly )?|[从由]\s?[约]?\s?)$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:\bbetween\s|介于\s?|在\s?)$", re.IGNORECASE)


_MEASURED = re.compile(r"\b(?:than|by|about|within|least|most|under|over)\s$", re.IGNORECASE)
"""“by less than one point”; “at one point” counts nothing."""
_PART = re.compile(
    r"(?:(?<=[的约近到至为少低短省了仅有])|(?<=[的约近到至为少低短省了仅有]\s)|(?<=\bby\s)|(?<=\bto\s)|(?<=\bonly\s)|(?<=\babout\s)|(?<=\broughly\s)|(?<=\bjust\s))([1-4])/([2-9]|10|12|16)(?![\d/.])"
)
"""“约为稠密模型的 1/5”, “by 1/3”."""


@dataclass(frozen=True)
class Atom:
    """A number, or several that were joined."""

    start: int
    end: int
    low: float
    high: float
    unit: str = ""
    """Empty while nothing says what it counts."""
    noun: str = ""
    """What a count counts, as written."""
    is_range: bool = False
    is_from: bool = False
    """Written as “from … to …”."""
    is_worded: bool = False
    is_signed: bool = False
    """±."""
    decimals: bool = False
    """True for 3.7: no count of whole things."""


def atoms(text: str) -> list[Atom]:
    """Numbers of a plain, blanked text with unit or noun; ranges and lists joined."""
    found = sorted([*_digits(text), *_worded(text), *_ratios(text)], key=lambda a: (a.start, -a.end))
    kept: list[Atom] = []
    for atom in found:
        if not kept or atom.start >= kept[-1].end:
            kept.append(atom)
    return _joined(text, kept)


def _digits(text: str) -> Iterator[Atom]:
    for m in _NUMBER.finditer(text):
        value, end = float(m.group().replace(",", "")), m.end()
        start = m.start()
        if scale := SCALE.match(text, end):
            value, end = value * SCALES[scale.group(1) or scale.group(2)], scale.end()
        money = text[max(0, start - 1) : start] == "$"
        unit, factor = ("usd", 1.0) if money else ("", 1.0)
        if not money and (bits := GIGABIT.match(text, end)):
            unit, factor, end = "bits/s", 1e9, bits.end()
        elif not money and (spelt := UNIT.match(text, end)):
            unit, factor = unit_of(spelt.group(1))
            end = spelt.end()
        start -= money
        if unit == "usd" and (per := PER_HOUR.match(text, end)):
            unit, end = "usd/h", per.end()
        if text[max(0, start - 1) : start] in {"+", "±"} or (
            text[max(0, start - 1) : start] == "-" and not text[max(0, start - 2) : start - 1].strip()
        ):
            start -= text[start - 1] == "+"
        atom = Atom(start, end, value * factor, value * factor, unit, decimals="." in m.group() and not scale)
        atom = _with_noun(text, atom) if not unit else atom
        # “超过 1 亿”: nobody counts in hundreds of millions without counting something
        yield replace(atom, unit="count") if scale and not atom.unit and value >= SCALES["万"] else atom


def _worded(text: str) -> Iterator[Atom]:
    for m in _WORD.finditer(text):
        scale = SCALES.get((m.group(2) or "").lower(), 100.0 if m.group(2) else 1.0)
        value = _WORDS[m.group(1).lower()] * scale
        atom = Atom(m.start(), m.end(), value, value, is_worded=True)
        if (spelt := UNIT.match(text, m.end())) and (
            unit_of(spelt.group(1))[0] != "points" or _MEASURED.search(text[: m.start()])
        ):
            unit, factor = unit_of(spelt.group(1))
            yield replace(atom, end=spelt.end(), low=value * factor, high=value * factor, unit=unit)
        else:
            yield _with_noun(text, atom)
    for m in _HAN_NUMBER.finditer(text):
        value = float(_HAN[m.group(1)])
        atom = Atom(m.start(), m.end(), value, value, is_worded=True)
        if text.startswith("倍", m.end()):
            yield replace(atom, end=m.end() + 1, unit="ratio")
        else:
            yield _with_noun(text, atom)


def _ratios(text: str) -> Iterator[Atom]:
    """``1:3`` as 1/3."""
    for m in re.finditer(r"(?<![\d:.#])(\d{1,2})\s?[:：]\s?(\d{1,2})(?![\d:.])", text):
        left, right = int(m.group(1)), int(m.group(2))
        if right and left and 1 in {left, right}:
            yield Atom(m.start(), m.end(), left / right, left / right, "ratio")
    for m in _PART.finditer(text):
        value = int(m.group(1)) / int(m.group(2))
        compared = re.search(r"的\s?$", text[: m.start()]) or re.match(
            r"\s(?:of|that|the)\b", text[m.end() :]
        )
        yield Atom(m.start(), m.end(), value, value, "ratio" if compared else "fraction", decimals=True)


def _with_noun(text: str, atom: Atom) -> Atom:
    """Take along what a bare number counts: a measure word or a noun right behind it."""
    end, noun = atom.end, ""
    if m := MEASURE.match(text, end):
        end = m.end()
        after = _AFTER_MEASURE.match(text, end)
        noun = m.group(1) + (after.group(1) if after else "")
        if own := _COUNTED.match(text, end):
            end = own.end()
    elif ((m := NOUN.match(text, end)) and m.group(1).lower() not in NO_NOUN) or (
        m := re.compile(r"\s?(用户|请求|会话|节点|实例|标准差)").match(text, end)
    ):
        end, noun = m.end(), m.group(1)
    return replace(atom, end=end, unit="count" if noun else "", noun=noun)


NO_NOUN = frozenset(
    "favours favors makes gives takes costs means leads shows causes hurts helps wins works yields brings is becomes a an and are as at be been but by can could for from had has have if in is it its may more most not of off on or over per so than that the then "
    "these they this those to under up upon was were when where which while with without would against versus vs about around roughly out each".split()
)
"""Words that stand behind a number without being what it counts."""


def _joined(text: str, found: list[Atom]) -> list[Atom]:
    out: list[Atom] = []
    i = 0
    while i < len(found):
        atom = found[i]
        while i + 1 < len(found) and (both := _join(text, atom, found[i + 1])):
            atom = both
            i += 1
        out.append(atom)
        i += 1
    return _shared(text, out)


def _join(text: str, a: Atom, b: Atom) -> Atom | None:
    """One range of two neighbours, or None where they are two figures."""
    between = text[a.end : b.start]
    units_fit = a.unit == b.unit or not a.unit or (a.unit == "count" and not b.unit)
    if a.is_range or not units_fit or not between or len(between) > 24:
        return None
    low, high = (a.low, b.low) if a.unit else (a.low * _unit_factor(text, b), b.low)
    whole = Atom(
        a.start,
        b.end,
        min(low, high),
        max(low, high),
        b.unit or a.unit,
        b.noun or a.noun,
        is_range=True,
        decimals=a.decimals or b.decimals,
    )
    if re.fullmatch(r"\s?±\s?", between):
        return replace(whole, low=low - high, high=low + high)
    before = text[: a.start]
    if _FROM_TO.fullmatch(between) and (start := _FROM.search(before)):
        return replace(whole, start=start.start(), is_from=True)
    if _FROM_TO.fullmatch(between) and (m := re.search(r"(?:从|由)\s?[\w ]{0,4}$", before)) and not a.unit:
        return replace(whole, start=m.start(), is_from=True)
    if (
        re.fullmatch(r"\s(?:and)\s|\s?(?:和|与|到|至)\s?", between)
        and (start := _BETWEEN.search(before))
        and a.unit in {"", b.unit}
    ):
        return replace(whole, start=start.start()) if start.group().strip() != "在" else whole
    if _JOIN.fullmatch(between) and b.low >= low * 0.2 and b.unit == (a.unit or b.unit):
        return whole
    return None


def _shared(text: str, found: list[Atom]) -> list[Atom]:
    """“38 and 35 tok/s”, “11 / 19 / 42 ms”: numbers of a list take the unit of the last."""
    out = list(found)
    for i in range(len(out) - 2, -1, -1):
        a, b = out[i], out[i + 1]
        between = text[a.end : b.start]
        if (
            not re.search(r"\b(?:batch|size|length|of|context|concurrency|[A-Z]P)\s*=?\s*$", text[: a.start])
            and not a.unit
            and not a.noun
            and b.unit not in {"", "count"}
            and re.fullmatch(r"\s?(?:/|and|or|、|和|与|,)\s?", between)
        ):
            factor = _unit_factor(text, b)
            out[i] = replace(a, unit=b.unit, low=a.low * factor, high=a.high * factor)
    return out


def _unit_factor(text: str, atom: Atom) -> float:
    """What the number of an atom was multiplied with."""
    m = re.search(r"\d[\d,]*(?:\.\d+)?", text[atom.start : atom.end])
    value = float(m.group().replace(",", "")) if m else 0.0
    return atom.low / value if value else 1.0
