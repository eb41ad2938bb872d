"""Tables that lost their lines: candidates, verdicts, tag counts, references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kb.curated.lines import cells_of, is_rule
from kb.curated.shape import CandidateRow, Line, Reference, TagCount, Unreadable, VerdictRow
from kb.curated.words import MARKS, MEDIA, first_decision
from kb.identity import find_works, identify
from kb.urls import find_urls

HEADS = frozenset(
    "条目 标签 分类 标题 名称 来源 item entry title tag name candidate source 条目数 最终判定 核心理由 reason".split()
)
_CJK = re.compile(r"[\u3400-\u9fff]")
_BRAND = re.compile(r"[A-Z][A-Za-z]+(?:\.[a-z]{2,4})?")
_DASH = re.compile(r"\s+[—–-]+\s+")


def columns_of(line: Line) -> list[str]:
    """Cells by pipes, tabs or runs of blanks; one cell where none of them stand."""
    if line.kind == "row":
        return cells_of(line)
    return [cell.strip() for cell in re.split(r"\s*\|\s*|\t+|\s{2,}", line.text) if cell.strip()]


def is_head(line: Line) -> bool:
    """True for a table's head: its cells name columns."""
    first = re.split(r"[\s|]+", line.text.strip())[:2]
    return len(first) == 2 and all(word.lower() in HEADS for word in first)


def read_candidates(lines: Sequence[Line], unreadable: list[Unreadable]) -> Iterator[CandidateRow]:
    """One per line: title, where it appeared, why it stayed below."""
    for line in lines:
        if line.kind == "code" or is_rule(line) or is_head(line):
            continue
        text = re.sub(r"^\d{1,2}[.)、]\s*", "", line.text)
        cells = columns_of(Line(line.number, text, line.kind))
        if len(cells) >= 3:
            yield CandidateRow(cells[0], cells[1], " ".join(cells[2:]), line.number)
        elif len(cells) == 2:
            yield CandidateRow(cells[0], "", cells[1], line.number)
        elif row := _by_words(text):
            yield CandidateRow(*row, line.number)
        elif (
            line.kind in {"bullet", "number"}
            and (found := re.split(r"[:：]\s*|\s+[—–]+\s+|\s-\s", text, maxsplit=1))[1:]
        ):
            yield CandidateRow(found[0].strip(), "", found[1].strip(), line.number)
        elif len(text) <= 60 or line.kind in {"bullet", "number"}:
            unreadable.append(
                Unreadable(line.number, "a candidate whose title and reason cannot be told apart")
            )
            yield CandidateRow(text, "", "", line.number)


def _by_words(text: str) -> tuple[str, str, str] | None:
    """Columns that a single blank keeps apart: the source is a brand or a kind of medium before Chinese text."""
    words = text.split()
    for i in range(1, len(words) - 1):
        word, after = words[i], words[i + 1]
        is_place = bool(_BRAND.fullmatch(word)) or (len(word) <= 10 and bool(MEDIA.search(word)))
        if is_place and _CJK.match(after):
            return " ".join(words[:i]), word, " ".join(words[i + 1 :])
    return None


def read_verdicts(lines: Sequence[Line]) -> Iterator[VerdictRow]:
    """``name ✅ keep reason``, in a table or in running text."""
    for line in lines:
        if line.kind == "code" or is_rule(line) or is_head(line):
            continue
        text = line.text.replace("\ufe0f", "")
        cells = columns_of(Line(line.number, text, line.kind))
        if len(cells) >= 2 and (decision := first_decision(cells[1])):
            yield VerdictRow(cells[0], decision, " ".join(cells[2:]), line.number)
            continue
        found = re.match(rf"(.+?)\s*[:：—–-]*\s*[{MARKS}]\s*(\S+)\s*[—–:：-]?\s*(.*)", text)
        if found and (decision := first_decision(found.group(2))):
            yield VerdictRow(found.group(1).strip(), decision, found.group(3).strip(), line.number)


def read_tag_counts(lines: Sequence[Line]) -> Iterator[TagCount]:
    """``tag 3 a / b / c``, in a table or in running text."""
    for line in lines:
        if line.kind == "code" or is_rule(line) or is_head(line):
            continue
        cells = columns_of(line)
        if len(cells) >= 2 and re.fullmatch(r"\d{1,4}", cells[1]):
            tag, stated, names = cells[0], cells[1], " ".join(cells[2:])
        elif found := re.fullmatch(r"(\S.{0,40}?)\s+[×x]?\s*(\d{1,4})\s+(.+)", line.text):
            tag, stated, names = found.groups()
        else:
            continue
        yield TagCount(tag, int(stated), tuple(_names(names)), line.number)


def _names(text: str) -> Iterator[str]:
    for name in re.split(r"\s+/\s+|[、,，;；]\s*", re.sub(r"[（(][^（）()]*[)）]", "", text)):
        if name.strip():
            yield name.strip()


def read_references(lines: Sequence[Line]) -> list[Reference]:
    """One per line that holds an address or an id; an address on a line of its own belongs to the line above."""
    found: list[Reference] = []
    above = ""
    for line in lines:
        if line.kind == "code":
            continue
        urls = [url for _, _, url in find_urls(line.text)]
        text = line.text
        for url in urls:
            text = text.replace(url, " ")
        text = re.sub(r"^\[?\d{1,3}[\].)]\s*", "", text).strip(" -—–:：<>()[]")
        works = find_works(line.text)
        work = (identify(urls[0]) if urls else None) or (works[0] if works else None)
        if work is None:
            above = line.text
            continue
        versioned = [w for w in works if w.id == work.id and w.version]
        found.append(Reference(text or above, urls[0] if urls else "", (versioned or [work])[0], line.number))
    return found
