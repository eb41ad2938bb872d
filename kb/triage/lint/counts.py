"""What a draft counts about itself against what is there: tags, coverage, lists that name their length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kb.curated import Line, Section
from kb.curated.match import words_of
from kb.identity import find_works
from kb.triage.findings import DraftText, Finding, Subject, shown

CODES = {"count-mismatch": "a number that a draft states about itself differs from what it holds"}
DIGITS = {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}
_TIMES = re.compile(r"([A-Za-z\u3400-\u9fff][\w .\u3400-\u9fff-]{0,30}?)\s*[×xX✕]\s*(\d{1,4})(?![\d.])")
_COVERAGE = re.compile(r"覆盖|检索|coverage|covered|sources", re.IGNORECASE)
_LENGTH = re.compile(
    r"[（(]\s*(?:共\s*)?(\d{1,3})\s*(?:篇|条|个|项|papers?|entries|items?)\s*[)）]\s*[:：]?\s*$",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"([一二两三四五六七八九十]|\d{1,2})\s*(?:项|个|条|步|点|种|大)[^，。；:：]{0,12}[:：]\s*$"
)


def check(subject: Subject) -> Iterator[Finding]:
    """Tags, coverage and list lengths of every draft."""
    for draft in subject.drafts:
        yield from _tags(draft)
        yield from _coverage(draft)
        for part in draft.curated.parts:
            yield from _lists(draft, part.lines)
        yield from _sections(draft)


def _tags(draft: DraftText) -> Iterator[Finding]:
    """A tag's number against the names in its row; a row that names one thing for many is counted over the entries."""
    for row in draft.curated.tag_counts:
        counted, names = len(row.names), " / ".join(row.names)
        if not counted or re.search(r"等\s*$|\betc\b|…|\.\.\.$", names):
            continue
        said = f"the row names {counted}: {names}"
        if counted == 1 and row.stated != 1:
            counted = _tagged(draft, row.tag)
            said = f"{counted} entries carry the tag"
        if counted and counted != row.stated:
            message = f"{row.tag} {row.stated}: {said}"
            yield draft.finding(
                row.line, "count-mismatch", message, stated=str(row.stated), counted=str(counted)
            )


def _tagged(draft: DraftText, tag: str) -> int:
    """Entries whose tags or category hold a tag as a word."""
    wanted = tag.casefold()
    texts = (f"{entry.value('tags')} {entry.value('category')}" for entry in draft.curated.entries)
    return sum(wanted in re.split(r"[\s·,，、;；|]+", text.casefold()) for text in texts)


def _coverage(draft: DraftText) -> Iterator[Finding]:
    """``arXiv × 6`` against the distinct works of that host in the whole text."""
    works = {work.id: work for line in draft.all_lines() for work in find_works(line.text)}
    works |= {work.id: work for entry in draft.curated.entries for work in entry.works}
    for line in draft.all_lines():
        if not _COVERAGE.search(line.text):
            continue
        for name, stated in _TIMES.findall(line.text):
            label = re.split(r"[:：，,、]", name)[-1].strip()
            counted = _works_of(label, works)
            if counted and counted != int(stated):
                yield draft.finding(
                    line.number,
                    "count-mismatch",
                    f"{label} × {stated}: the text holds {counted} different works of {label}",
                    stated=stated,
                    counted=str(counted),
                )


def _works_of(label: str, works: Iterable[str]) -> int:
    words = {w for w in words_of(label) if w.isascii() and len(w) > 2}  # noqa: PLR2004  a name
    if label.casefold() == "arxiv":
        return sum(id_.startswith("arxiv:") for id_ in works)
    hosts = [id_.removeprefix("url:").split("/")[0] for id_ in works if id_.startswith("url:")]
    return sum(any(word in re.split(r"[.-]", host) for word in words) for host in hosts)


def _lists(draft: DraftText, lines: Sequence[Line]) -> Iterator[Finding]:
    """“Read closely (4):” or “three techniques:” against the list right below it."""
    for i, line in enumerate(lines):
        found, exact = _LENGTH.search(line.text), True
        if not found:
            found, exact = _PARTS.search(line.text), False
        if not found:
            continue
        stated = (
            DIGITS.get(found.group(1)) or int(found.group(1))
            if found.group(1) in DIGITS or found.group(1).isdigit()
            else 0
        )
        counted = _length(lines[i + 1 :], line, numbered=not exact)
        if stated and counted and stated != counted:
            yield draft.finding(
                line.number,
                "count-mismatch",
                f"{shown(line.text)}: {counted} follow",
                stated=str(stated),
                counted=str(counted),
            )


def _length(lines: Sequence[Line], head: Line, *, numbered: bool) -> int:
    """Items of the list that begins right below ``head``; only numbered ones where the head is a plain sentence."""
    if not lines or lines[0].kind not in ({"number"} if numbered else {"number", "bullet"}):
        return 0
    kind, level = lines[0].kind, lines[0].level
    if head.kind != "text" and level <= head.level and not numbered:
        return 0
    count = 0
    for line in lines:
        if line.kind == kind and line.level == level:
            count += 1
        elif line.kind not in {"number", "bullet", "code"} or line.level < level:
            break
    return count


def _sections(draft: DraftText) -> Iterator[Finding]:
    """A section that says how many entries it holds, in its title."""
    parts = draft.curated.parts
    for i, part in enumerate(parts):
        if not isinstance(part, Section) or not (found := _LENGTH.search(part.title)):
            continue
        after = next((j for j in range(i + 1, len(parts)) if isinstance(parts[j], Section)), len(parts))
        counted = after - i - 1 or _rows(part, draft)
        if counted and counted != int(found.group(1)):
            yield draft.finding(
                part.line,
                "count-mismatch",
                f"{shown(part.title)}: it holds {counted}",
                stated=found.group(1),
                counted=str(counted),
            )


def _rows(section: Section, draft: DraftText) -> int:
    if section.kind == "candidates":
        return len(draft.curated.candidates)
    if section.kind == "references":
        return len(draft.curated.references)
    return 0
