"""From bytes to logical lines: fences found, torn table rows joined, flattened lists and fields unfolded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from kb.curated.shape import Line, Unreadable
from kb.curated.words import FIELD, INLINE_FIELD, LANGUAGES
from kb.errors import BadInput

MAX_LINE = 20_000
"""Longer lines are kept as they are and not taken apart."""
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff]")
_BULLET = re.compile(r"(\s*)(?:[•·▪◦●○‣*+-])\s+(?=\S)")
_NUMBERED = re.compile(r"(\s*)(\d{1,3})[.)、]\s+(?=\S)")
_RUN = re.compile(r"`{3,}")
_LANGUAGE = re.compile(rf"({LANGUAGES})?\s+(?=\S)", re.IGNORECASE)
_OPEN_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#-]*)[ \t]*(.*)")
_BARE_FENCE = re.compile(rf"(.*[:：])\s+({LANGUAGES})\s+(?=[#$>]\s)(.*)", re.IGNORECASE)
_SHORT_KEY = r"(?=[^\s:：,，。；;（(]{1,14}[:：])"


def check_text(text: str, name: str, first: int = 1) -> None:
    """Refuse what is no text for people.

    Raises:
        BadInput: Empty, or with control characters.
    """
    if not text.strip():
        raise BadInput(f"{name}: not read", cause="it is empty", remedy="give a draft with text in it")
    for number, line in enumerate(text.split("\n"), first):
        if bad := re.search("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]", line.removesuffix("\r")):
            raise BadInput(
                f"{name}:{number}: not read",
                cause=f"it holds the control character U+{ord(bad.group()):04X}",
                remedy="save it as plain text",
            )


def logical_lines(text: str, first: int = 1) -> tuple[list[Line], list[Unreadable]]:
    """Logical lines of a text, blank ones left out, and what could not be taken apart.

    Args:
        text: Without front matter; line endings of any kind.
        first: Number of its first line in the file.
    """
    unreadable: list[Unreadable] = []
    physical: list[tuple[int, str]] = []
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), first):
        clean = _HIDDEN.sub("", unicodedata.normalize("NFC", raw)).rstrip()
        if _HIDDEN.search(raw):
            unreadable.append(Unreadable(number, "invisible or direction-changing characters were taken out"))
        physical.append((number, clean.replace("\x0b", " ").replace("\x0c", " ").replace("\x85", " ")))
    fenced = _fences(physical, unreadable)
    return list(_unfold(_rows(fenced, unreadable), unreadable)), unreadable


def _fences(physical: list[tuple[int, str]], unreadable: list[Unreadable]) -> list[Line]:
    found: list[Line] = []
    code: list[str] = []
    fence, language, start = "", "", 0
    for number, text in physical:
        if fence:
            head, closed, tail = text.partition(fence)
            code.append(head.rstrip())
            if closed:
                found.extend(_code_and_rest(start, code, language, tail))
                fence, code = "", []
            continue
        if not text.strip():
            continue
        if one := _one_line(text):
            head, language, body, rest = one
            found.extend(_text(number, head))
            found.extend(_code_and_rest(number, [body], language, rest))
            unreadable.append(Unreadable(number, "a code block on one line: its line breaks are lost"))
        elif opened := _opened(text):
            head, fence, language, code_head = opened
            found.extend(_text(number, head))
            start, code = number, [code_head] if code_head.strip() else []
            if code:
                unreadable.append(
                    Unreadable(number, "code on the fence's own line: its line breaks are lost")
                )
        elif bare := _BARE_FENCE.fullmatch(text):
            found.extend(_text(number, bare.group(1)))
            found.append(Line(number, bare.group(3), "code", mark=bare.group(2).lower()))
            unreadable.append(Unreadable(number, "a code block that lost its fence and its line breaks"))
        else:
            found.append(Line(number, text))
    if fence:
        unreadable.append(Unreadable(start, "a code block that never ends"))
        found.append(Line(start, "\n".join(code), "code", mark=language))
    return found


def _one_line(text: str) -> tuple[str, str, str, str] | None:
    """Text before, language, code and text behind of a fence that opens and closes on one line."""
    runs = list(_RUN.finditer(text))
    if len(runs) < 2:
        return None
    inside = text[runs[0].end() : runs[1].start()]
    language = _LANGUAGE.match(inside)
    if language is None:
        return None
    code = inside[language.end() :].strip()
    return text[: runs[0].start()].rstrip(), language.group(1) or "", code, text[runs[1].end() :].strip()


def _opened(text: str) -> tuple[str, str, str, str] | None:
    """Text before, fence, language and code of a line that opens a fence."""
    at = min((i for i in (text.find("```"), text.find("~~~")) if i >= 0), default=-1)
    found = _OPEN_FENCE.fullmatch(text, at) if at >= 0 else None
    if found is None or "`" in found.group(3):
        return None
    return text[:at].rstrip(), found.group(1), found.group(2), found.group(3)


def _text(number: int, text: str) -> list[Line]:
    return [Line(number, text.rstrip())] if text.strip() else []


def _code_and_rest(number: int, code: list[str], language: str, rest: str) -> list[Line]:
    body = "\n".join(code).strip("\n")
    mark = language.lower() if re.fullmatch(r"[\w+#-]{0,20}", language) else ""
    return [Line(number, body, "code", mark=mark), *_text(number, rest)]


class _Torn:
    """A table being read: how many columns it has, and the cells of a row that is not complete yet."""

    def __init__(self) -> None:
        self.columns, self.start, self.pieces, self.is_cut = 0, 0, 0, False
        self.cells: list[str] = []

    def takes(self, text: str) -> bool:
        """Whether a line belongs to the table: it ends in a bar, or begins with one and was cut."""
        return text.endswith("|") or (bool(self.columns) and text.startswith("|"))

    def add(self, number: int, text: str) -> None:
        if not self.cells:
            self.start, self.pieces = number, 0
        self.pieces += 1
        inner = text.removeprefix("|").removesuffix("|")
        self.cells += [cell.strip() for cell in re.split(r"(?<!\\)\|", inner)]
        self.is_cut = not text.endswith("|")

    def row(self, unreadable: list[Unreadable]) -> Iterator[Line]:
        """The row gathered so far, if any; what is odd about it is noted."""
        if not self.cells:
            return
        if len(self.cells) != self.columns:
            why = f"a table row with {len(self.cells)} of {self.columns} cells"
            unreadable.append(Unreadable(self.start, why))
        elif self.pieces > 1:
            unreadable.append(Unreadable(self.start, f"a table row torn into {self.pieces} lines was joined"))
        yield Line(self.start, " | ".join(self.cells), "row")
        self.cells = []


def _rows(lines: list[Line], unreadable: list[Unreadable]) -> Iterator[Line]:
    """Join torn table rows: inside a table, cells are gathered until a row has as many as the table has columns."""
    table = _Torn()
    for line in lines:
        text = line.text.strip()
        if line.kind != "text" or not table.takes(text):
            yield from table.row(unreadable)
            table.columns = 0
            yield line
            continue
        if not table.columns and not text.startswith("|"):
            yield line
            continue
        if text.startswith("|") and not table.is_cut:
            yield from table.row(unreadable)
        table.add(line.number, text)
        table.columns = table.columns or len(table.cells)
        if len(table.cells) >= table.columns and not table.is_cut:
            yield from table.row(unreadable)
    yield from table.row(unreadable)


def cells_of(line: Line) -> list[str]:
    """Cells of a row."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.text)]


def is_rule(line: Line) -> bool:
    """True for the ``|---|---|`` under a table's head."""
    return line.kind == "row" and all(re.fullmatch(r":?-{2,}:?", cell) for cell in cells_of(line))


def _unfold(lines: Iterator[Line], unreadable: list[Unreadable]) -> Iterator[Line]:
    for line in lines:
        if line.kind != "text":
            yield line
        elif len(line.text) > MAX_LINE:
            unreadable.append(
                Unreadable(line.number, f"a line of {len(line.text):,} characters was not taken apart")
            )
            yield Line(line.number, line.text.strip())
        elif re.match(r"\s*#{1,6}\s", line.text):
            yield Line(line.number, line.text.strip())
        else:
            level, kind, mark, text = _decoration(line.text)
            for i, part in enumerate(INLINE_FIELD.split(text)):
                yield from _list(Line(line.number, part.strip(), kind, level, "" if i else mark))


def _list(line: Line) -> Iterator[Line]:
    number, level, kind, mark, text = line.number, line.level, line.kind, line.mark, line.text
    pieces = _split_list(text)
    if not pieces[0].strip() and not mark:
        pieces = pieces[1:] or [""]
    for i, piece in enumerate(pieces):
        below = level + (1 if kind != "text" else 0) if i else level
        head, *numbered = _split_numbers(piece.strip())
        yield Line(number, head, "bullet" if i else kind, below, "" if i else mark)
        for j, item in enumerate(numbered, 1):
            yield Line(number, item, "number", below + 1, str(j))


def _decoration(text: str) -> tuple[int, Literal["text", "bullet", "number"], str, str]:
    text = text.expandtabs(4)
    if found := _BULLET.match(text):
        return len(found.group(1)) // 4, "bullet", "", text[found.end() :]
    if FIELD.fullmatch(text) is None and (found := _NUMBERED.match(text)):
        return len(found.group(1)) // 4, "number", found.group(2), text[found.end() :]
    return 0, "text", "", text.strip()


def _split_list(text: str) -> list[str]:
    """``Head： - a - b`` → head and items; a lone “ - ” in a title splits nothing."""
    dashes = len(re.findall(r"(?<=\S) - (?=\S)", text))
    if re.search(r"[:：] - ", text) or dashes >= 2:
        return re.split(r"(?<=\S) - (?=\S)", text)
    return re.split(rf"(?<=\S) - {_SHORT_KEY}", text)


def _split_numbers(text: str) -> list[str]:
    """``Head： 1. a 2. b 3. c`` → head and items, where the numbers run from 1 without a gap."""
    found = re.search(r"[:：]\s+1[.)]\s", text)
    if not found:
        return [text]
    rest, items, want = text[found.end() :], [], 2
    while step := re.search(rf"\s{want}[.)]\s", rest):
        items.append(rest[: step.start()].strip())
        rest, want = rest[step.end() :], want + 1
    if not items:
        return [text]
    return [text[: found.start() + 1], *items, rest.strip()]
