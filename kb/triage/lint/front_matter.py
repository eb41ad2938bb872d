"""What a draft's front matter lacks, and where it and the body disagree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.curated.header import read_day
from kb.triage.findings import DraftText, Finding, Subject

CODES = {
    "front-matter": "front matter that is absent, incomplete, or lists other entries than the body",
}


def check(subject: Subject) -> Iterator[Finding]:
    """Every draft."""
    for draft in subject.drafts:
        yield from _lacks(draft)
        yield from _entries(draft)


def _lacks(draft: DraftText) -> Iterator[Finding]:
    if draft.values is None:
        yield draft.finding(1, "front-matter", "there is none; it should hold kb, curator, date and entries")
        return
    for key in ("kb", "curator", "date", "entries"):
        if draft.values.get(key) in (None, ""):
            yield draft.finding(1, "front-matter", f"it has no {key}", stated="", counted=key)
    date = str(draft.values.get("date") or "")
    if date and read_day(date) != date:
        yield draft.finding(_line(draft, "date:"), "front-matter", f"date {date!r} is no day", stated=date)


def _entries(draft: DraftText) -> Iterator[Finding]:
    if draft.record is None:
        return
    listed = [entry.n for entry in draft.record.entries]
    held = [entry.n for entry in draft.curated.entries]
    for n in dict.fromkeys(listed):
        if listed.count(n) > 1:
            yield draft.finding(
                _line(draft, "entries:"), "front-matter", f"entry {n} is listed twice", stated=n
            )
    for n in [n for n in listed if n not in held]:
        message = f"entry {n} is listed, and no heading ## {n} · … stands in the body"
        yield draft.finding(_line(draft, f'"{n}"'), "front-matter", message, stated=n)
    for entry in draft.curated.entries:
        if entry.n not in listed:
            message = f"entry {entry.n} stands in the body and is not listed"
            yield draft.finding(entry.line, "front-matter", message, stated=entry.n)


def _line(draft: DraftText, text: str) -> int:
    """First line of the front matter that holds a text; 1 where none does."""
    for number, line in enumerate(draft.lines, 1):
        if number > 1 and re.match(r"---\s*$", line):
            break
        if text in line:
            return number
    return 1
