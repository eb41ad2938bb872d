"""Where entries are to go: each has a place, and a place's name agrees with its category."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.curated import Line, Section
from kb.curated.advice import entry_numbers
from kb.curated.lines import cells_of
from kb.triage.findings import DraftText, Finding, Subject, shown

CODES = {
    "no-destination": "an entry that the list of write paths forgets",
    "contradicts-itself": "two places of one text that cannot both be true",
}


def check(subject: Subject) -> Iterator[Finding]:
    """Write paths of every draft that lists entries by number."""
    for draft in subject.drafts:
        sections = [s for s in draft.curated.sections if s.kind == "paths"]
        yield from _forgotten(draft, sections)
        for section in sections:
            for line in section.lines:
                yield from _spelling(draft, line)


def _forgotten(draft: DraftText, sections: list[Section]) -> Iterator[Finding]:
    known = [entry.n for entry in draft.curated.entries]
    placed = {
        n for s in sections for line in s.lines for cell in cells_of(line) for n in _numbers(cell, known)
    }
    if not placed:
        return
    for entry in draft.curated.entries:
        if entry.n not in placed:
            message = f"{entry.n} {entry.title}: in none of the write paths"
            yield draft.finding(entry.line, "no-destination", message, stated=entry.n)


def _numbers(cell: str, known: list[str]) -> list[str]:
    """Numbers of a cell that holds nothing else: entries; a path or a priority is no list of them."""
    bare = re.sub(r"条目|entries|entry|#", "", cell, flags=re.IGNORECASE).strip(" ：:")
    return entry_numbers(bare, known) if re.fullmatch(r"[\d.+\s·,，、;；&/和and()（）]+", bare) else []


def _spelling(draft: DraftText, line: Line) -> Iterator[Finding]:
    """A category with a hyphen whose file name is written without it, or the other way round."""
    cells = cells_of(line)
    if len(cells) < 2:  # noqa: PLR2004  category and path
        return
    category, path = cells[0].strip("`* "), next((c for c in cells[1:] if "/" in c or c.endswith(".md")), "")
    name = path.rsplit("/", 1)[-1].strip("`")
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)+", category) or not name or category in name:
        return
    joined = category.replace("-", "")
    if joined in name:
        message = f"{shown(name)}: the category is written {category}, the file name {joined}"
        yield draft.finding(line.number, "contradicts-itself", message, stated=joined, counted=category)
