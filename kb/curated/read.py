"""Put the parts together: one `Curated` from one text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from kb.curated.advice import read_advice
from kb.curated.fields import read_fields
from kb.curated.header import read_header
from kb.curated.lines import check_text, logical_lines
from kb.curated.match import assign
from kb.curated.outline import Heading, find_headings
from kb.curated.rows import read_candidates, read_references, read_tag_counts, read_verdicts
from kb.curated.shape import Curated, Entry, Line, Reference, Section, Unreadable, VerdictRow
from kb.curated.words import count_stars
from kb.errors import BadInput
from kb.identity import Work, find_works, identify
from kb.urls import find_urls

MAX_ENTRIES = 300
"""More numbered entries than a person writes into one draft."""
MAX_ROWS = 1000
"""Rows of a table of candidates, verdicts or references that are matched to entries; the others stay text."""
LEAST_REFERENCE = 0.45
"""Similarity from which a line of the reference list is taken for an entry's own."""
LEAST_VERDICT = 0.3
"""Similarity from which a line of the verdict summary is taken to speak of an entry."""


def read_curated(text: str, name: str, first: int = 1) -> Curated:
    """Read a curator's text (front matter already taken off).

    Args:
        text: The text; any line endings.
        name: For errors.
        first: Number of the text's first line in its file.

    Raises:
        BadInput: Empty, or with control characters.
    """
    check_text(text, name, first)
    lines, unreadable = logical_lines(text, first)
    headings = find_headings(lines)
    num_entries = sum(heading.style != "section" for heading in headings)
    if num_entries > MAX_ENTRIES:
        raise BadInput(
            f"{name}: not read",
            cause=f"{num_entries:,} entries are more than a person writes ({MAX_ENTRIES})",
            remedy="split it",
        )
    parts, preamble = _parts(lines, headings, unreadable)
    sections = [p for p in parts if isinstance(p, Section)]
    references = read_references(
        [line for s in sections if s.kind == "references" for line in s.lines][:MAX_ROWS]
    )
    entries = _with_references([p for p in parts if isinstance(p, Entry)], references)
    by_line = {entry.line: entry for entry in entries}
    verdicts = list(
        read_verdicts([line for s in sections if s.kind == "verdicts" for line in s.lines][:MAX_ROWS])
    )
    candidates = list(
        read_candidates(
            [line for s in sections if s.kind == "candidates" for line in s.lines][:MAX_ROWS], unreadable
        )
    )
    actions, shelves = read_advice(sections, entries)
    curator, date, zone = read_header(lines)
    return Curated(
        title=_title(preamble, sections),
        curator=curator,
        date=date,
        zone=zone,
        preamble=tuple(preamble),
        parts=tuple(by_line[p.line] if isinstance(p, Entry) else p for p in parts),
        candidates=tuple(candidates),
        verdicts=tuple(_with_entries(verdicts, entries, unreadable)),
        tag_counts=tuple(read_tag_counts([line for s in sections if s.kind == "tags" for line in s.lines])),
        references=tuple(references),
        actions=actions,
        shelves=shelves,
        unreadable=tuple(sorted(set(unreadable), key=lambda u: (u.line, u.why))),
    )


def _parts(
    lines: list[Line], headings: list[Heading], unreadable: list[Unreadable]
) -> tuple[list[Section | Entry], list[Line]]:
    preamble = lines[: headings[0].index] if headings else list(lines)
    parts: list[Section | Entry] = []
    seen: set[str] = set()
    for i, heading in enumerate(headings):
        end = headings[i + 1].index if i + 1 < len(headings) else len(lines)
        body, number = tuple(lines[heading.index + 1 : end]), lines[heading.index].number
        if heading.style == "section":
            parts.append(Section(heading.title, heading.kind, number, body))
            continue
        n = heading.n
        if n in seen:
            unreadable.append(
                Unreadable(number, f"a second entry numbered {n}; it is called {_next(n, seen)} here")
            )
            n = _next(n, seen)
        seen.add(n)
        parts.append(_entry(heading, n, number, body, unreadable))
    return parts, preamble


def _next(n: str, seen: set[str]) -> str:
    return next(name for i in range(2, len(seen) + 3) if (name := f"{n}-{i}") not in seen)


def _title(preamble: Sequence[Line], sections: Sequence[Section]) -> str:
    texts = [
        re.sub(r"^#\s+", "", line.text) for line in preamble if line.kind == "text" and len(line.text) > 3
    ]
    # a title holds a dot or a word such as draft; a bare “Name 2026-06-10” is a signature
    good = [
        t
        for t in texts[:6]
        if "·" in t or re.search(r"草稿|简报|周报|draft|digest|brief|notes", t, re.IGNORECASE)
    ]
    good = [t for t in good if not re.match(r"\S+\s*[:：]", t)]
    return (good or texts or [s.title for s in sections] or [""])[0]


def _entry(
    heading: Heading, n: str, number: int, body: tuple[Line, ...], unreadable: list[Unreadable]
) -> Entry:
    fields = tuple(read_fields(body))
    entry = Entry(
        n, heading.title, number, label=heading.label, stars=heading.stars, fields=fields, lines=body
    )
    if entry.stars is None and (rating := entry.value("stars")):
        _, stars = split_rating(rating)
        entry = dataclasses.replace(entry, stars=stars, label=entry.label or _label(rating))
        if stars is None:
            unreadable.append(
                Unreadable(number, f"a rating that is no whole number of 1 to 5 stars: {rating[:40]}")
            )
    urls = tuple(url for f in fields if f.key == "link" for url in _addresses(f.value))
    linked = [work for url in urls[:1] if (work := identify(url))]
    sourced = [work for f in fields if f.key == "source" for work in find_works(f.value)]
    works = _merge_versions([*linked, *heading.works, *sourced[:1]])
    if (
        linked
        and heading.works
        and linked[0].id != heading.works[0].id
        and heading.works[0].id.startswith("arxiv:")
    ):
        why = f"the heading names {heading.works[0].id} and the link {linked[0].id}; the link counts"
        unreadable.append(Unreadable(number, why))
    return dataclasses.replace(
        entry, works=works, urls=urls, credibility=count_stars(entry.value("credibility"))
    )


def split_rating(text: str) -> tuple[str, int | None]:
    """A rating's text and its stars."""
    bare = re.match(r"\s*([1-5])\s*(?:星|stars?)?\s*$", text, re.IGNORECASE)
    return text, int(bare.group(1)) if bare else count_stars(text)


def _label(rating: str) -> str:
    return re.sub(r"[⭐★☆\ufe0f]+|\d\s*/\s*5", "", rating).strip(" ·")


def _addresses(text: str) -> list[str]:
    found = [url for _, _, url in find_urls(text)]
    if found:
        return found
    bare = text.strip().split()[0] if text.strip() else ""
    return [bare] if re.match(r"(?:[\w-]+\.)+[a-z]{2,}/\S", bare) else []


def _merge_versions(works: Sequence[Work]) -> tuple[Work, ...]:
    """One per id, in order; a named version wins over none."""
    found: dict[str, Work] = {}
    for work in works:
        if work.id not in found or (work.version and not found[work.id].version):
            found[work.id] = work
    return tuple(found.values())


def _with_references(entries: list[Entry], references: list[Reference]) -> list[Entry]:
    """Give entries the works of the reference list: by the same id, else by name, each reference once."""
    by_id = {r.work.id: r.work for r in references if r.work}
    known = {w.id for e in entries for w in e.works}
    result = []
    for entry in entries:
        listed = [by_id[w.id] for w in entry.works if w.id in by_id]
        result.append(dataclasses.replace(entry, works=_merge_versions([*entry.works, *listed])))
    bare = [i for i, e in enumerate(result) if not e.works]
    free = [r for r in references if r.work and r.work.id not in known]
    names = [f"{result[i].value('source')} {result[i].title}" for i in bare]
    for left, right in assign(names, [r.text for r in free], least=LEAST_REFERENCE).items():
        work = free[right].work
        if work is not None:
            result[bare[left]] = dataclasses.replace(
                result[bare[left]], works=(work,), urls=(free[right].url,)
            )
    return result


def _with_entries(
    verdicts: list[VerdictRow], entries: list[Entry], unreadable: list[Unreadable]
) -> list[VerdictRow]:
    pairs = assign([v.name for v in verdicts], [e.title for e in entries], least=LEAST_VERDICT, in_order=True)
    for i, verdict in enumerate(verdicts):
        if i not in pairs:
            unreadable.append(
                Unreadable(verdict.line, f"no entry found for the verdict on {verdict.name[:60]}")
            )
    return [
        dataclasses.replace(v, entry=entries[pairs[i]].n) if i in pairs else v for i, v in enumerate(verdicts)
    ]
