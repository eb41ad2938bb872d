"""Headings: which lines open a section, which open an entry, and what a heading says beside its title."""

from __future__ import annotations

import bisect
import re
import unicodedata
from dataclasses import dataclass

from kb.curated.shape import Kind, Line
from kb.curated.words import FIELD, MARKS, STARS, count_stars, section_kind
from kb.identity import Work, find_works

MAX_HEADING = 240
"""Longer lines are no headings."""
MAX_ORIGIN = 60
"""Lines below a heading in which its link or source stands."""
_KEYCAP = re.compile(r"((?:\d\ufe0f?\u20e3)+|\U0001f51f)\s*(?:[+➕]\s*(\d{1,3}))?\s*")
_DOTTED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){1,2})\.?[ \t]+(?=\S)")
_WRITTEN = re.compile(r"#{2,4}\s+(\d{1,3}(?:[.+]\d{1,3})*)\s+·\s+(?=\S)")
_PLAIN = re.compile(r"(?:\*\*)?[(（]?(\d{1,3})[.)、）][ \t]*(?=\S)")
_CIRCLED = re.compile(r"([\u2460-\u2473])\s*(?=\S)")
_SECTION = re.compile(r"[一二三四五六七八九十]{1,3}、\s*|[IVX]{1,5}\.\s+|[A-Z]\.\s+")
_ARXIV_TAIL = re.compile(r"\s*(?:[-—–|·]\s*)?[(（]?\s*arXiv[:：\s]\s*\S+?\s*[)）]?\s*$", re.IGNORECASE)
_STARS_TAIL = re.compile(rf"\s*[(（]\s*((?:[{STARS}☆]\ufe0f?\s*)+|[1-5]\s*/\s*5)\s*([^()（）]*)[)）]\s*$")
_BARE_STARS = re.compile(rf"\s*[-—–]*\s*((?:[{STARS}☆]\ufe0f?)+)\s*$")
STYLES = (
    ("written", _WRITTEN),
    ("keycap", _KEYCAP),
    ("dotted", _DOTTED),
    ("plain", _PLAIN),
    ("circled", _CIRCLED),
)
"""How entries are numbered; earlier styles win where a text has several."""


@dataclass(frozen=True)
class Heading:
    """A line that may open an entry or a section."""

    index: int
    """Position among the logical lines."""
    style: str
    """``section`` or a key of `STYLES`."""
    n: str
    title: str
    label: str = ""
    stars: int | None = None
    works: tuple[Work, ...] = ()
    kind: Kind = "entries"


def find_headings(lines: list[Line]) -> list[Heading]:
    """Sections and entries in order. An entry has stars in its heading, or a link, source or arXiv id of its own."""
    numbered: list[Heading] = []
    sections: list[Heading] = []
    for index, line in enumerate(lines):
        if line.kind not in {"text", "number"} or line.level or len(line.text) > MAX_HEADING:
            continue
        after = lines[index + 1] if index + 1 < len(lines) else None
        text = f"{line.mark}. {line.text}" if line.kind == "number" else line.text
        if heading := _entry_heading(index, text):
            numbered.append(heading)
        elif line.kind == "text" and (heading := _section_heading(index, line.text, after)):
            sections.append(heading)
    return sorted(_entries(numbered, sections, lines) + sections, key=lambda h: h.index)


def _entries(numbered: list[Heading], sections: list[Heading], lines: list[Line]) -> list[Heading]:
    borders = [*sorted(h.index for h in [*numbered, *sections]), len(lines)]
    places = [section.index for section in sections]
    real: dict[str, list[Heading]] = {}
    for heading in numbered:
        at = bisect.bisect_left(places, heading.index)
        if at and sections[at - 1].kind != "entries":
            continue
        end = borders[bisect.bisect_right(borders, heading.index)]
        own = lines[heading.index + 1 : min(end, heading.index + 1 + MAX_ORIGIN)]
        if heading.style == "written" or heading.stars or heading.works or _has_origin(own):
            real.setdefault(heading.style, []).append(heading)
    names = [name for name, _ in STYLES if real.get(name)]
    if not names:
        return []
    # one text numbers its entries one way; other numbers inside it are lists
    best = max(
        names,
        key=lambda name: (name == "written", sum(bool(h.stars) for h in real[name]), -names.index(name)),
    )
    return real[best]


def _has_origin(lines: list[Line]) -> bool:
    fields = (FIELD.fullmatch(line.text) for line in lines if line.kind in {"text", "bullet"})
    return any(
        found and found.group(1).lower() in {"链接", "原文链接", "来源", "出处", "link", "url", "source"}
        for found in fields
    )


def _entry_heading(index: int, text: str) -> Heading | None:
    bare = text
    for style, pattern in STYLES:
        if style != "written":
            bare = re.sub(r"^#{1,4}\s+", "", text)
        found = pattern.match(text if style == "written" else bare)
        if found is None or (style in {"plain", "circled"} and FIELD.fullmatch(text)):
            continue
        rest = (text if style == "written" else bare)[found.end() :].strip().strip("*").strip()
        if not rest or not re.search(r"\w", rest):
            return None
        title, label, stars, works = split_title(rest)
        return Heading(index, style, _number(style, found), title, label, stars, works)
    return None


def _number(style: str, found: re.Match[str]) -> str:
    if style == "keycap":
        digits = "10" if found.group(1) == "\U0001f51f" else re.sub(r"\D", "", found.group(1))
        return f"{digits}+{found.group(2)}" if found.group(2) else digits
    if style == "circled":
        return str(ord(found.group(1)) - 0x2460 + 1)
    return found.group(1)


def split_title(text: str) -> tuple[str, str, int | None, tuple[Work, ...]]:
    """Take stars, their label and an arXiv id off a heading.

    Returns:
        Title, label, stars or None, works named in it.
    """
    works = tuple(find_works(text))
    label, stars = "", None
    if found := _STARS_TAIL.search(text):
        text, label, stars = text[: found.start()], found.group(2).strip(), count_stars(found.group(1))
    elif found := _BARE_STARS.search(text):
        text, stars = text[: found.start()], count_stars(found.group(1))
    bare = _ARXIV_TAIL.sub("", text).strip()
    return re.sub(r"\s+", " ", bare or text.strip()), label, stars, works


def _section_heading(index: int, text: str, after: Line | None) -> Heading | None:
    if found := re.match(r"#{1,6}\s+", text):
        title = text[found.end() :].strip()
        return Heading(index, "section", "", title, kind=section_kind(title)) if title else None
    if FIELD.fullmatch(text) or re.search(r"[。.;；，,:：!！]$", text) or "http" in text:
        return None
    opens = _SECTION.match(_without_pictograph(text)) or _starts_with_pictograph(text)
    known = len(text) <= 60 and section_kind(text) not in {"entries", "insight"} and _is_title(text, after)
    if not opens and not known:
        return None
    return Heading(index, "section", "", text, kind=section_kind(_without_pictograph(text)))


def _is_title(text: str, after: Line | None) -> bool:
    """A line of a few words that starts like a heading and has a list, a table or a numbered entry under it."""
    starts = re.match(r"(?:[A-Z][a-z]+(?: [\w/&-]+){0,5}|[\u4e00-\u9fff /]{2,14})$", text)
    return (
        bool(starts)
        and after is not None
        and (after.kind in {"bullet", "row"} or bool(_PLAIN.match(after.text)))
    )


def _starts_with_pictograph(text: str) -> bool:
    """A pictograph and a space open a heading; a mark such as ✅ only where little text and no verdict follows."""
    first = text[0]
    if unicodedata.category(first) != "So" or first in STARS or "\u2500" <= first <= "\u259f":
        return False
    rest = _without_pictograph(text)
    if rest == text or not rest:
        return False
    return first not in MARKS or (len(rest) <= 30 and section_kind(rest) != "entries")


def _without_pictograph(text: str) -> str:
    return re.sub(r"^(?:[^\w\s（(「《\"'#|]\ufe0f?)+\s+", "", text)
