"""Where the blocks of a page are: markers are found with a Markdown parser, so that quoted examples do not count.

    <!-- kb:begin ID v=1 run=RUN sum=HASH -->
    text that kb writes and people may edit
    <!-- kb:end ID -->

The parser only says which lines are HTML blocks; everything else works on the page's own bytes. A page is never
rendered back. ``sum`` is of the text between the markers with CRLF read as LF. ``<!-- kb:begin ID -->`` without the
rest is a person's request for a block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kb.files import sha256

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

VERSION = "1"
"""Rule by which ``sum`` is computed; another one is not compared."""
SUM_LENGTH = 16
"""Hex characters of a sum and of a run in a marker."""
BLOCK_ID = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)*")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_MARKER = re.compile(rb" {0,3}<!--[ \t]*kb:(begin|end)\b(.*?)-->[ \t]*\Z")
_BEGIN = re.compile(
    rb"[ \t]+(?P<id>[a-z0-9-]+(?:/[a-z0-9-]+)*)"
    rb"(?:[ \t]+v=(?P<v>\d+)[ \t]+run=(?P<run>[\w.-]+)[ \t]+sum=(?P<sum>[0-9a-f]+))?[ \t]*\Z"
)
_END = re.compile(rb"[ \t]+(?P<id>[a-z0-9-]+(?:/[a-z0-9-]+)*)[ \t]*\Z")
_OPENS_HTML = re.compile(rb"^[ \t>*+\-0-9.)]*<[^\n]*", re.MULTILINE)
"""A line on which an HTML block may begin, in a list or a quotation too."""
_ANCHOR = re.compile(rb'<a id="[^"<>\r\n]*"></a>\r?\Z')
_BLANK = re.compile(rb"\r?\n[ \t]*(?:\r?\n|\Z)|\Z")
_RAW_HTML = re.compile(rb" {0,3}<(?:pre|script|style|textarea|!|\?)", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """One block of a page, by byte offsets."""

    id: str
    line: int
    """Line of its begin marker, counted from 1."""
    run: str
    """As in the marker; empty in a request."""
    sum: str
    """As in the marker; empty in a request."""
    version: str
    """As in the marker; empty in a request."""
    start: int
    """First byte of the begin marker's line."""
    inner_start: int
    """First byte between the markers."""
    inner_end: int
    """First byte of the end marker's line."""
    end: int
    """First byte after the end marker's line."""
    newline: bytes
    """Line ending of the begin marker."""

    def inner(self, page: bytes) -> bytes:
        """The text between the markers, CRLF read as LF."""
        return to_lf(page[self.inner_start : self.inner_end])


@dataclass(frozen=True)
class MarkerProblem:
    """A marker that cannot be used: nothing is written anywhere until a person mends it."""

    line: int
    """Counted from 1."""
    why: str
    id: str = ""
    """Block, where the marker still says which."""


def to_lf(data: bytes) -> bytes:
    """Read CRLF as LF; a lone CR is text."""
    return data.replace(b"\r\n", b"\n")


def sum_of(inner: bytes) -> str:
    """Sum of a text between markers, as a marker states it."""
    return sha256(to_lf(inner))[:SUM_LENGTH]


def begin_marker(block: str, run: str, inner: bytes) -> bytes:
    """The begin marker of a block whose text is ``inner``, without line ending."""
    return f"<!-- kb:begin {block} v={VERSION} run={run} sum={sum_of(inner)} -->".encode()


def end_marker(block: str) -> bytes:
    """The end marker of a block, without line ending."""
    return f"<!-- kb:end {block} -->".encode()


def find_blocks(page: bytes) -> tuple[list[Block], list[MarkerProblem]]:
    """Find the blocks of a page in order, and what is wrong with its markers.

    Args:
        page: Bytes of a Markdown file; undecodable bytes are harmless.
    """
    if b"kb:begin" not in page and b"kb:end" not in page:
        return [], []
    lines = split_lines(page)
    blocks: list[Block] = []
    problems: list[MarkerProblem] = []
    opened: tuple[re.Match[bytes], int, int] | None = None
    for number, kind, rest in _markers(page, lines):
        found = (_BEGIN if kind == b"begin" else _END).match(rest)
        if found is None:
            problems.append(MarkerProblem(number + 1, f"not a kb:{kind.decode()} marker kb can read"))
        elif kind == b"begin":
            if opened is not None:
                problems.append(_unclosed(opened))
            opened = (found, number, lines[number][0])
        elif opened is None or opened[0]["id"] != found["id"]:
            name = found["id"].decode()
            problems.append(MarkerProblem(number + 1, f"kb:end {name} has no kb:begin before it", name))
        else:
            blocks.append(_block(page, opened, lines, number))
            opened = None
    if opened is not None:
        problems.append(_unclosed(opened))
    problems.extend(_doubled(blocks))
    return blocks, sorted(problems, key=lambda problem: problem.line)


def _unclosed(opened: tuple[re.Match[bytes], int, int]) -> MarkerProblem:
    name = opened[0]["id"].decode()
    return MarkerProblem(opened[1] + 1, f"kb:begin {name} has no kb:end", name)


def _doubled(blocks: list[Block]) -> list[MarkerProblem]:
    names = [block.id for block in blocks]
    return [
        MarkerProblem(block.line, f"block {block.id} occurs twice", block.id)
        for block in blocks
        if names.count(block.id) > 1
    ]


def _block(
    page: bytes, opened: tuple[re.Match[bytes], int, int], lines: list[tuple[int, int]], last: int
) -> Block:
    found, number, start = opened
    head = page[slice(*lines[number])]
    return Block(
        id=found["id"].decode(),
        line=number + 1,
        run=(found["run"] or b"").decode(),
        sum=(found["sum"] or b"").decode(),
        version=(found["v"] or b"").decode(),
        start=start,
        inner_start=lines[number][1],
        inner_end=lines[last][0],
        end=lines[last][1],
        newline=head[len(head.rstrip(b"\r\n")) :],
    )


def split_lines(page: bytes) -> list[tuple[int, int]]:
    """Byte offsets (start, end with line ending) of every line, split as the Markdown parser splits them."""
    return [found.span() for found in _LINE.finditer(page) if found.end() > found.start()]


def _markers(page: bytes, lines: list[tuple[int, int]]) -> list[tuple[int, bytes, bytes]]:
    """(line counted from 0, ``begin`` or ``end``, what follows) of every marker outside code, in order."""
    first = _front_matter_lines(page, lines)
    if first < len(lines) and _is_plain(page, lines[first][0]):
        tried = ((n, _MARKER.match(page[slice(*lines[n])].rstrip(b"\r\n"))) for n in range(first, len(lines)))
        return [(number, marker[1], marker[2]) for number, marker in tried if marker is not None]
    # latin-1: one character per byte, so that no undecodable byte can shift a line
    text = page[lines[first][0] :].decode("latin-1") if first < len(lines) else ""
    found: list[tuple[int, bytes, bytes]] = []
    for token in _parser().parse(text):
        if token.type != "html_block" or token.map is None:
            continue
        top = first + token.map[0]
        alone = _RAW_HTML.match(page[slice(*lines[top])]) is not None
        for number in range(top, top + 1 if alone else first + token.map[1]):
            marker = _MARKER.match(page[slice(*lines[number])].rstrip(b"\r\n"))
            if marker is not None:
                found.append((number, marker[1], marker[2]))
    return found


def _is_plain(page: bytes, start: int) -> bool:
    """Whether no marker can stand in code or in another's HTML: then each line that looks like one is one.

    Pages that kb writes are like this, and a parser takes a hundred times as long.
    """
    if b"```" in page or b"~~~" in page or b"\r" in page.replace(b"\r\n", b""):
        return False
    for found in _OPENS_HTML.finditer(page, start):
        is_anchor = _ANCHOR.match(found[0]) is not None and _BLANK.match(
            page, found.end() - found[0].endswith(b"\r")
        )
        if not is_anchor and _MARKER.match(found[0].rstrip(b"\r")) is None:
            return False
    return True


def _front_matter_lines(page: bytes, lines: list[tuple[int, int]]) -> int:
    """Number of leading lines that are YAML front matter."""
    if not lines or page[slice(*lines[0])].rstrip() != b"---":
        return 0
    for number in range(1, len(lines)):
        if page[slice(*lines[number])].rstrip() == b"---":
            return number + 1
    return 0


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # only the block structure is needed
    return MarkdownIt("commonmark").disable("inline")
