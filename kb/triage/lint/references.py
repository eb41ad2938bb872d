"""References that lead nowhere: drafts that are not held, batches, numbers of other entries, sources without address."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.curated import Entry, Line, Section
from kb.curated.match import words_of
from kb.triage.findings import DraftText, Finding, Subject, shown
from kb.urls import find_urls

CODES = {
    "dangling-reference": "the text refers to a draft, an entry or a source that is not there",
}
_FILE = re.compile(r"(?<![\w/.-])([\w-]+\.md)(?![\w/])", re.ASCII)
_BATCH = re.compile(
    r"(?:上午|早间|早上|午间|中午|下午|傍晚|晚间|晚上|凌晨|morning|noon|afternoon|evening|earlier)\s*(?:档|批次?|场|版|batch|digest|brief)?\s*[（(]\s*"
    r"(\d{1,2}[:：]\d{2})\s*[)）]",
    re.IGNORECASE,
)
_SEARCH = re.compile(
    r"[\w.-]+\.(?:com|org|io|cn)\s*(?:上)?\s*搜索\s*\S+|(?:search(?:ing)?(?: for)?\s+\S+\s+(?:on|at)\s+[\w.]+\.(?:com|org|io|cn))",
    re.IGNORECASE,
)
_CROSS = re.compile(r"(?<![\d.])(\d{1,2}\.\d{1,2})\s*[（(]([^()（）\d][^()（）]{0,40})[)）]")
_SEE = re.compile(r"(?:见|参见|条目|see|entry|entries)\s*(\d{1,2}\.\d{1,2})(?![\d.])", re.IGNORECASE)


def check(subject: Subject) -> Iterator[Finding]:
    """References of every draft."""
    names = {draft.found.id.rsplit("/", 1)[-1] for draft in subject.drafts}
    for draft in subject.drafts:
        yield from _files(draft, names)
        yield from _batches(draft, subject)
        yield from _entries(draft)
        yield from _sources(draft)


def _files(draft: DraftText, names: set[str]) -> Iterator[Finding]:
    """Names of drafts; where drafts are to be written is no reference."""
    own = draft.found.id.rsplit("/", 1)[-1]
    told: list[str] = []
    paths = {line.number for s in draft.curated.sections if s.kind == "paths" for line in s.lines}
    for line in draft.all_lines():
        if line.kind == "code" or line.number in paths:
            continue
        text = line.text
        for _, _, url in find_urls(text):
            text = text.replace(url, " ")
        for name in _FILE.findall(text):
            stem = name.removesuffix(".md")
            if any(x == stem or x.endswith(f"-{stem}") for x in {*names, own}) or stem.casefold() == "readme":
                continue
            # the same draft under its full and its short name is one reference
            if any(t.endswith(stem) or stem.endswith(t) for t in told):
                continue
            told.append(stem)
            yield draft.finding(
                line.number, "dangling-reference", f"{name}: no draft of this name is held", stated=name
            )


def _batches(draft: DraftText, subject: Subject) -> Iterator[Finding]:
    day = draft.curated.date or (draft.record.date if draft.record else "")
    for line in draft.all_lines():
        for found in _BATCH.finditer(line.text):
            clock = found.group(1).replace("：", ":")
            others = [o for o in subject.drafts if o.found.id != draft.found.id and day and day in o.found.id]
            if not any(
                clock in x.text.replace("：", ":") for o in others for x in o.curated.preamble + _heads(o)
            ):
                message = f"{found.group()}: no draft of {day or 'that day'} at {clock} is held"
                yield draft.finding(line.number, "dangling-reference", message, stated=found.group())


def _heads(draft: DraftText) -> tuple[Line, ...]:
    return tuple(line for s in draft.curated.sections[:2] for line in s.lines[:8])


def _entries(draft: DraftText) -> Iterator[Finding]:
    """``1.2 (Name)`` where Name is another entry's; “see 7.3” where there is no 7.3."""
    entries = draft.curated.entries
    known = {entry.n for entry in entries}
    numbers = known | {
        m.group(1)
        for s in draft.curated.sections
        for x in s.lines
        if (m := re.match(r"#*\s*(\d+\.\d+)", x.text))
    }
    for line in draft.all_lines():
        for n, name in _CROSS.findall(line.text):
            if n in known and (meant := _other(n, name, entries)):
                message = (
                    f"{_around(line.text, n, name)}: {n} is {_title(entries, n)}; {name.strip()} is {meant.n}"
                )
                yield draft.finding(line.number, "dangling-reference", message, stated=n, counted=meant.n)
        for n in _SEE.findall(line.text):
            if known and any("." in k for k in known) and n not in numbers:
                message = f"{shown(line.text)}: there is no {n}"
                yield draft.finding(line.number, "dangling-reference", message, stated=n)


def _around(text: str, n: str, name: str) -> str:
    found = re.search(rf"\S*\s?{re.escape(n)}\s*[（(]{re.escape(name)}[)）]", text)
    return found.group().strip() if found else n


def _title(entries: tuple[Entry, ...], n: str) -> str:
    return next(entry.title for entry in entries if entry.n == n)


def _other(n: str, name: str, entries: tuple[Entry, ...]) -> Entry | None:
    """The entry that a name means, where it is not entry ``n`` and that one never mentions it."""
    words = words_of(name)
    here = next(entry for entry in entries if entry.n == n)
    text = " ".join([here.title, *(line.text for line in here.lines), *(w.id for w in here.works)])
    if not words or words & words_of(text):
        return None
    hits = [entry for entry in entries if words <= words_of(entry.title)]
    return hits[0] if len(hits) == 1 else None


def _sources(draft: DraftText) -> Iterator[Finding]:
    """Entries that name no address, and addresses that are only a search."""
    for entry in draft.curated.entries:
        if not entry.works:
            field = next((f for f in entry.fields if f.key in {"source", "link"}), None)
            said = field.value if field else entry.title
            message = f"{shown(said)}: entry {entry.n} has no address, and none stands in the reference list"
            yield draft.finding(
                field.line if field else entry.line, "dangling-reference", message, stated=shown(said)
            )
    for part in draft.curated.parts:
        if isinstance(part, Section) and part.kind == "other":
            continue
        for line in part.lines:
            if line.kind != "code" and (found := _SEARCH.search(re.sub(r"[（(].*", "", line.text))):
                message = f"{found.group().strip()}: a search is no address"
                yield draft.finding(line.number, "dangling-reference", message, stated=found.group().strip())
