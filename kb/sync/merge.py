"""Three versions into one, per kind of path. Bytes in, bytes out; nothing here reads a disk.

*base* is what both sides come from, *work* is what lies here, *tip* is what the branch holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kb.markers import Block, find_blocks, to_lf


def merge_lines(base: bytes, work: bytes, tip: bytes) -> bytes:
    """Append to ``tip`` the lines of ``work`` that neither ``base`` nor ``tip`` has.

    What people removed from the branch stays removed; what is missing here is not removed there.
    """
    known = set(_lines(base)) | set(_lines(tip))
    fresh = list(dict.fromkeys(line for line in _lines(work) if line not in known))
    if not fresh:
        return tip
    ending = b"\r\n" if b"\r\n" in tip else b"\n"
    head = tip if not tip or tip.endswith(b"\n") else tip + ending
    return head + b"".join(line + ending for line in fresh)


def missing_lines(versions: list[bytes], tip: bytes) -> set[bytes]:
    """Lines that stood in earlier ``versions`` and were taken out of ``tip``."""
    earlier = {line for data in versions for line in _lines(data)}
    return earlier - set(_lines(tip))


def without_lines(data: bytes, lines: set[bytes]) -> bytes:
    """Drop whole lines."""
    return b"".join(line for line in data.splitlines(keepends=True) if line.rstrip(b"\r\n") not in lines)


def _lines(data: bytes) -> list[bytes]:
    return [line for raw in data.split(b"\n") if (line := raw.rstrip(b"\r"))]


@dataclass
class PageMerge:
    """A page of the branch with our blocks in it."""

    data: bytes
    """New bytes; the tip's own where no block is planned."""
    planned: list[str] = field(default_factory=list)
    """Blocks whose bytes are ours now."""
    held: dict[str, str] = field(default_factory=dict)
    """Block → why a person has to decide."""


def merge_page(base: bytes, work: bytes, tip: bytes, kept_back: dict[str, str] | None = None) -> PageMerge:
    """Put the blocks that changed here into the page as the branch has it; all other bytes are the branch's.

    Args:
        base: The page both come from; empty if there was none.
        work: The page here.
        tip: The page on the branch.
        kept_back: Blocks not to plan, with the reason.
    """
    old, mine, theirs = _by_id(base), _by_id(work), _by_id(tip)
    result = PageMerge(tip)
    splices: list[tuple[int, int, int, bytes]] = []
    for number, (name, block) in enumerate(mine.items()):
        text = _bytes(work, block)
        before = _bytes(base, old[name]) if name in old else None
        there = _bytes(tip, theirs[name]) if name in theirs else None
        if text in (before, there):
            continue
        if there is None and before is not None:
            continue  # its markers were removed on the branch: a person took it over
        if kept_back and name in kept_back:
            result.held[name] = kept_back[name]
        elif there is None:
            at = _place_for(name, list(mine), theirs, len(tip))
            splices.append((at, at, number, _as_new(text, tip, at)))
            result.planned.append(name)
        elif there == before:
            there_block = theirs[name]
            splices.append((there_block.start, there_block.end, number, _ended(text, tip, there_block)))
            result.planned.append(name)
        else:
            result.held[name] = "the same block was changed on the branch"
    # from the end, so that offsets stay right; at one place a replacement goes before what is put in front of it
    for start, end, _, data in sorted(splices, reverse=True):
        result.data = result.data[:start] + data + result.data[end:]
    return result


def text_outside(page: bytes) -> bytes:
    """A page without what stands in its blocks, CRLF read as LF: what belongs to people."""
    kept, at = [], 0
    for block in find_blocks(page)[0]:
        kept.append(page[at : block.start])
        kept.append(b"<!-- kb:begin " + block.id.encode() + b" -->\n")
        at = block.end
    return to_lf(b"".join([*kept, page[at:]]))


def block_text(page: bytes, name: str) -> bytes | None:
    """A block with its markers, CRLF read as LF; None where the page has no such block."""
    block = _by_id(page).get(name)
    return _bytes(page, block) if block else None


def _by_id(page: bytes) -> dict[str, Block]:
    return {block.id: block for block in find_blocks(page)[0]}


def _bytes(page: bytes, block: Block) -> bytes:
    return to_lf(page[block.start : block.end]).rstrip(b"\n") + b"\n"


def _ended(text: bytes, tip: bytes, block: Block) -> bytes:
    """The block with the line endings, and the missing final one, of the block it replaces."""
    ending = b"\r\n" if block.newline == b"\r\n" else b"\n"
    data = text.replace(b"\n", ending)
    return data if tip[block.start : block.end].endswith(b"\n") else data.rstrip(b"\r\n")


def _place_for(name: str, order: list[str], theirs: dict[str, Block], end: int) -> int:
    """Where a new block goes: after the nearest block before it that the branch has, else at the end."""
    for earlier in reversed(order[: order.index(name)]):
        if earlier in theirs:
            return theirs[earlier].end
    return end


def _as_new(text: bytes, tip: bytes, at: int) -> bytes:
    ending = b"\r\n" if b"\r\n" in tip else b"\n"
    gap = b"" if at == 0 else ending if tip[:at].endswith(b"\n") else ending * 2
    return gap + text.replace(b"\n", ending)
