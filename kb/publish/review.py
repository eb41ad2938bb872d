"""What a person decides about blocks: take kb's new text, keep the own, write a third, hold, release.

Each decision is a line in the log. The page is written first, then the record of the last machine text, then the
proposal goes: a run that is killed in between is completed by the same command.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from kb.errors import BadInput, NeedsPerson, NothingMatches
from kb.files import read_bytes
from kb.markers import Block, begin_marker, find_blocks, to_lf
from kb.publish.blocks import run_name
from kb.publish.inputs import check_markers, held_blocks, page_files
from kb.store import MAX_PAGE_BYTES, Base

PROPOSAL = ".proposal.md"


@dataclass(frozen=True)
class Waiting:
    """A block whose new text waits for a person."""

    id: str
    page: str
    """Below the root; empty where the block stands in no page any more."""
    line: int
    """Of its begin marker; 0 where it stands in no page."""
    mine: bytes
    """What stands in the page."""
    base: bytes
    """What kb wrote last."""
    proposal: bytes
    """What kb would write."""
    asked: bool
    """True: a person asked kb to leave this block alone."""

    def diff(self) -> str:
        """From what stands in the page to what kb would write."""
        return _diff(self.mine, self.proposal, f"{self.page} (yours)", f"{self.id} (new result)")

    def edit(self) -> str:
        """From what kb wrote last to what stands in the page: the person's own edit."""
        return _diff(self.base, self.mine, f"{self.id} (last result)", f"{self.page} (yours)")


def _diff(old: bytes, new: bytes, before: str, after: str) -> str:
    first, second = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (old, new))
    found = difflib.unified_diff(first, second, before, after)
    return "".join(line if line.endswith("\n") else line + "\n" for line in found)


def waiting_blocks(base: Base) -> list[Waiting]:
    """Every block with a proposal, by id.

    Raises:
        Findings: Markers of a page cannot be used.
    """
    check_markers(base)
    folder = base.root / "published/.blocks"
    asked = held_blocks(base)
    found: list[Waiting] = []
    places = _places(base)
    for path in sorted(folder.glob(f"**/*{PROPOSAL}")):
        name = path.relative_to(folder).as_posix().removesuffix(PROPOSAL)
        last = base.block_path(name)
        page, block = places.get(name, (None, None))
        data = read_bytes(page, limit=MAX_PAGE_BYTES) if page else b""
        found.append(
            Waiting(
                id=name,
                page=base.relative(page) if page else "",
                line=block.line if block else 0,
                mine=block.inner(data) if block else b"",
                base=read_bytes(last, limit=MAX_PAGE_BYTES) if last.exists() else b"",
                proposal=read_bytes(path, limit=MAX_PAGE_BYTES),
                asked=_is_held(name, page, base, asked),
            )
        )
    return found


def _places(base: Base) -> dict[str, tuple[Path, Block]]:
    return {
        block.id: (path, block)
        for path in page_files(base)
        for block in find_blocks(read_bytes(path, limit=MAX_PAGE_BYTES))[0]
    }


def _is_held(name: str, page: Path | None, base: Base, asked: set[str]) -> bool:
    topic = page.parent.relative_to(base.root / "published").as_posix() if page else ""
    return name in asked or topic in asked


def find_waiting(base: Base, wanted: str) -> Waiting:
    """Look a waiting block up by id or by an unambiguous ending.

    Raises:
        NothingMatches: None, or more than one, has that id.
    """
    every = waiting_blocks(base)
    hits = [w for w in every if w.id == wanted] or [w for w in every if w.id.endswith(f"/{wanted}")]
    if len(hits) == 1:
        return hits[0]
    raise NothingMatches(
        f"block {wanted}: nothing to review",
        cause=f"{len(hits)} blocks match" if hits else "no new text waits under this id",
        remedy="give an id as kb review prints it",
        next_command="kb review",
    )


def decide(
    base: Base, wanted: str, act: str, *, reason: str, who: str, at: str, text: bytes | None = None
) -> str:
    """Settle a waiting block; the caller holds the write lock.

    Args:
        base: The knowledge base.
        wanted: Block id or an unambiguous ending.
        act: ``accept`` takes kb's new text or ``text``; ``reject`` keeps what stands in the page.
        reason: Why, for the log.
        who: Who decides.
        at: Moment, UTC.
        text: For accept: a third text instead of kb's own.

    Returns:
        The block's full id.

    Raises:
        BadInput: ``text`` contains markers or swallows the end marker.
        NeedsPerson: The block stands in no page, so there is nowhere to write to.
    """
    waiting = find_waiting(base, wanted)
    if act == "accept":
        _replace(base, waiting, to_lf(text) if text is not None else waiting.proposal)
    if waiting.page:
        base.write(base.block_path(waiting.id), waiting.proposal)
    base.append_log(act, waiting.id, who=who, at=at, reason=reason)
    base.proposal_path(waiting.id).unlink(missing_ok=True)
    return waiting.id


def _replace(base: Base, waiting: Waiting, text: bytes) -> None:
    """Put ``text`` between the markers of a block, touching no other byte."""
    if not waiting.page:
        raise NeedsPerson(
            f"{waiting.id}: not accepted",
            cause="its markers were removed from the page",
            remedy="put an empty pair of markers where it should stand, then publish",
            next_command=f"kb release {waiting.id}",
        )
    path = base.root / waiting.page
    page = read_bytes(path, limit=MAX_PAGE_BYTES)
    block = next(block for block in find_blocks(page)[0] if block.id == waiting.id)
    text = text if not text or text.endswith(b"\n") else text + b"\n"
    marker = begin_marker(block.id, run_name(waiting.proposal), text)
    head = marker + block.newline + text.replace(b"\n", block.newline)
    wanted = page[: block.start] + head + page[block.inner_end :]
    found, problems = find_blocks(wanted)
    kept = {b.id: b.inner(page) for b in find_blocks(page)[0]} | {block.id: text}
    if problems or {b.id: b.inner(wanted) for b in found} != kept:
        raise BadInput(
            f"{waiting.id}: not written",
            cause="with this text the block's markers cannot be found again",
            remedy="close code fences and leave kb's markers out of the text",
            next_command=f"kb review {waiting.id}",
        )
    base.write(path, wanted)


def hold(base: Base, wanted: str, *, reason: str, who: str, at: str) -> bool:
    """Ask kb to leave a block or a page alone; False where it does already. The caller holds the write lock.

    Raises:
        NothingMatches: There is no such block or page.
    """
    _known(base, wanted)
    if wanted in held_blocks(base):
        return False
    base.append_log("hold", wanted, who=who, at=at, reason=reason)
    return True


def release(base: Base, wanted: str, *, reason: str, who: str, at: str) -> bool:
    """Let kb write a block or a page again; False where nothing held it. The caller holds the write lock.

    A block that was taken over, or a page that was removed, is forgotten, so that the next publish places it anew.

    Raises:
        NothingMatches: There is no such block or page.
    """
    _known(base, wanted)
    was_held = wanted in held_blocks(base)
    if was_held:
        base.append_log("release", wanted, who=who, at=at, reason=reason)
    forgotten = _forget(base, wanted)
    if forgotten and not was_held:
        base.append_log("release", wanted, who=who, at=at, reason=reason)
    return was_held or forgotten


def _forget(base: Base, wanted: str) -> bool:
    """Remove the records of blocks that stand in no page: the block itself, or all of a removed page."""
    placed = _places(base).keys()
    is_gone = not base.page_path(wanted).exists()
    names = [n for n in _recorded(base) if n == wanted or (is_gone and n.rpartition("/")[0] == wanted)]
    lost = [name for name in names if name not in placed]
    for name in lost:
        base.block_path(name).unlink(missing_ok=True)
        base.proposal_path(name).unlink(missing_ok=True)
    return bool(lost)


def _recorded(base: Base) -> list[str]:
    folder = base.root / "published/.blocks"
    paths = (path.relative_to(folder).as_posix() for path in folder.glob("**/*.md"))
    return sorted(name.removesuffix(".md") for name in paths if not name.endswith(PROPOSAL))


def _known(base: Base, wanted: str) -> None:
    recorded = _recorded(base)
    pages = {name.rpartition("/")[0] for name in recorded}
    if wanted in recorded or wanted in pages or wanted in _places(base):
        return
    near = difflib.get_close_matches(wanted, [*recorded, *sorted(pages)], n=1)
    raise NothingMatches(
        f"{wanted}: no such block or page",
        cause=f"did you mean {near[0]}?" if near else "nothing was published under this id",
        remedy="blocks are named by the markers in a page, pages by their folder under published/",
        next_command="kb publish --dry-run --json",
    )
