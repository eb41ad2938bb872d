"""How machine text and human text share a page. Every writer of a page goes through `update_page`.

For each block: *base* is what kb wrote last (``published/.blocks/<ID>.md``), *ours* is what stands in the page, *new* is
what kb would write now. A clean three-way merge is written; a clash leaves the whole page as it is and the new text
beside it. Removed markers mean that a person took the block over. No conflict marker reaches a page.

States: ``clean`` (the page holds kb's own text) · ``edited`` (a person's changes are in it) · ``held`` (a person has to
decide) · ``foreign`` (a block kb does not write) · ``orphan`` (a marker without its partner, see `find_blocks`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kb.errors import CannotRun
from kb.files import sha256
from kb.markers import SUM_LENGTH, VERSION, Block, begin_marker, end_marker, find_blocks, sum_of

MERGE_TIMEOUT_S = 30


@dataclass(frozen=True)
class Output:
    """What kb has to say in one block."""

    new: bytes
    """Text kb would write now: UTF-8, LF, with its final newline."""
    base: bytes | None
    """Text kb wrote last; None if it never did."""
    held: bool = False
    """A person asked for this block to be left alone."""


@dataclass(frozen=True)
class BlockState:
    """What became of one block."""

    id: str
    state: str
    """clean, edited, held, foreign, orphan, or ``taken-over``: its markers were removed."""
    line: int = 0
    """Line of its begin marker before the run; 0 where it has none."""
    why: str = ""
    """For a held block: what a person has to decide."""
    asked: bool = False
    """True: held because a person asked for it, so nobody has to act."""


@dataclass
class PageUpdate:
    """A page after one run, and the files beside it that go with it."""

    data: bytes
    """The page's bytes; identical to before where any block clashed."""
    states: list[BlockState] = field(default_factory=list)
    bases: dict[str, bytes] = field(default_factory=dict)
    """Block → last machine output to keep; to be written after the page."""
    proposals: dict[str, bytes | None] = field(default_factory=dict)
    """Block → proposal to keep beside the page; None: remove one that is there."""

    @property
    def needs_person(self) -> bool:
        """True if a block clashed."""
        return any(state.state == "held" and not state.asked for state in self.states)


def run_name(new: bytes) -> str:
    """Name of a machine text in its marker: a digest, so equal results have equal names on every machine."""
    return sha256(new)[:SUM_LENGTH]


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three texts line by line with ``git merge-file``; None where they clash.

    Raises:
        CannotRun: git is missing.
    """
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    with tempfile.TemporaryDirectory(prefix="kb-merge-") as name:
        folder = Path(name)
        for label, text in (("ours", ours), ("base", base), ("theirs", theirs)):
            (folder / label).write_bytes(text)
        try:
            done = subprocess.run(
                ["git", "merge-file", "-p", "-q", "ours", "base", "theirs"],
                cwd=folder, env=environ, capture_output=True, check=False, timeout=MERGE_TIMEOUT_S,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise CannotRun(
                "a page cannot be merged", cause="git is not installed", remedy="install git 2.38 or newer"
            ) from error
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True)
class _Change:
    """What one block of a page needs."""

    state: BlockState
    text: bytes | None = None
    """New text between the markers, LF; None: leave the bytes as they are."""
    base: bytes | None = None
    """New last machine output; None: keep."""


def _decide(block: Block, inner: bytes, output: Output) -> _Change:
    """Three-way decision for one block; ``inner`` is what stands between its markers, LF."""
    if not block.version and not inner.strip():  # a request for this block
        return _Change(BlockState(block.id, "clean", block.line), output.new, output.new)
    base = output.base
    if base is None and run_name(inner) == block.run:
        base = inner  # what kb wrote was never recorded, but nobody has changed it
    if output.new in {inner, base}:
        settled = "clean" if inner == output.new else "edited"
        return _Change(BlockState(block.id, settled, block.line), base=output.new)
    if output.held or block.version not in {"", VERSION}:
        why = f"its marker says v={block.version}, this kb writes v={VERSION}"
        why = "held by a person" if output.held else why
        return _Change(BlockState(block.id, "held", block.line, why, asked=output.held))
    if inner == base:
        return _Change(BlockState(block.id, "clean", block.line), output.new, output.new)
    merged = None if base is None else merge(base, inner, output.new)
    if merged is not None:
        state = BlockState(block.id, "clean" if merged == output.new else "edited", block.line)
        return _Change(state, merged if merged != inner else None, output.new)
    why = "your edit and the new result change the same lines"
    if base is None:
        why = "what kb wrote last is not recorded, so your edit cannot be told from it"
    return _Change(BlockState(block.id, "held", block.line, why))


def update_page(page: bytes, outputs: Mapping[str, Output]) -> PageUpdate:
    """Bring the blocks of a page up to date, touching no other byte.

    Args:
        page: The page as it is; its markers are sound (see `find_blocks`).
        outputs: Block → what kb has to say, in the order of a new page.

    Returns:
        The page and the files beside it. A block that was never recorded anywhere is new and goes after the block that
        precedes it in ``outputs``; one that was recorded and has no markers any more was taken over by a person.
    """
    blocks, _ = find_blocks(page)
    update = PageUpdate(page)
    changes: dict[str, _Change] = {}
    for block in blocks:
        if block.id in outputs:
            changes[block.id] = _decide(block, block.inner(page), outputs[block.id])
            update.states.append(changes[block.id].state)
        else:
            update.states.append(BlockState(block.id, "foreign", block.line))
    present = {block.id for block in blocks}
    places = _places(blocks, [name for name in outputs if name in present or outputs[name].base is None])
    for name, output in outputs.items():
        if name in places:
            update.states.append(BlockState(name, "clean"))
        elif name not in present:
            update.states.append(BlockState(name, "taken-over"))
        elif changes[name].state.state == "held":
            update.proposals[name] = output.new
        else:
            update.proposals[name] = None
    if update.needs_person:
        return update
    wanted = _splice(page, blocks, changes, outputs, places)
    if not _is_sound(wanted, page, blocks, changes, outputs, places):
        touched = {name for name, change in changes.items() if change.text is not None} | set(places)
        return _hold(page, update, {name: outputs[name].new for name in touched})
    update.data = wanted
    update.bases = {name: change.base for name, change in changes.items() if change.base is not None}
    update.bases |= {name: outputs[name].new for name in places}
    return update


def _places(blocks: list[Block], names: list[str]) -> dict[str, str]:
    """New block → block of the page after which it goes; nothing where the page has no block of kb's left."""
    present = {block.id for block in blocks}
    known = [name for name in names if name in present]
    places: dict[str, str] = {}
    for number, name in enumerate(names):
        if name not in present and known:
            before = [earlier for earlier in names[:number] if earlier in present]
            places[name] = before[-1] if before else known[0]
    return places


def write_block(block: str, new: bytes, newline: bytes = b"\n") -> bytes:
    """A whole block with its markers, each line ended by ``newline``."""
    lines = begin_marker(block, run_name(new), new) + b"\n" + new + end_marker(block) + b"\n"
    return lines.replace(b"\n", newline)


def _splice(
    page: bytes,
    blocks: list[Block],
    changes: Mapping[str, _Change],
    outputs: Mapping[str, Output],
    places: Mapping[str, str],
) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for block in blocks:
        change = changes.get(block.id)
        if change is not None and change.text is not None:
            run = run_name(outputs[block.id].new)
            pieces.append(page[done : block.start])
            pieces.append(begin_marker(block.id, run, change.text) + block.newline)
            pieces.append(change.text.replace(b"\n", block.newline))
            done = block.inner_end
        pieces.append(page[done : block.end])
        done = block.end
        for name, after in places.items():
            if after == block.id:
                whole = write_block(name, outputs[name].new, block.newline)
                # a page may end with the marker, without a newline: that end is kept
                ended = page[:done].endswith((b"\n", b"\r"))
                pieces.append(block.newline + whole if ended else block.newline * 2 + whole.rstrip(b"\r\n"))
    pieces.append(page[done:])
    return b"".join(pieces)


def _is_sound(
    wanted: bytes,
    page: bytes,
    blocks: list[Block],
    changes: Mapping[str, _Change],
    outputs: Mapping[str, Output],
    places: Mapping[str, str],
) -> bool:
    """Check the result as a reader of it would: the same blocks, each with the text that was meant for it."""
    if wanted == page:
        return True
    meant = {block.id: block.inner(page) for block in blocks}
    meant |= {name: change.text for name, change in changes.items() if change.text is not None}
    meant |= {name: outputs[name].new for name in places}
    found, problems = find_blocks(wanted)
    if problems or {block.id: block.inner(wanted) for block in found} != meant:
        return False
    changed = {name for name, change in changes.items() if change.text is not None} | set(places)
    return all(block.sum == sum_of(block.inner(wanted)) for block in found if block.id in changed)


def _hold(page: bytes, update: PageUpdate, touched: dict[str, bytes]) -> PageUpdate:
    """Hold every block that would change: together they would break the page's markers."""
    why = "written together with your text, its markers could not be found again (an open code fence?)"
    states = [
        BlockState(state.id, "held", state.line, why) if state.id in touched else state
        for state in update.states
    ]
    return PageUpdate(page, states, {}, {**update.proposals, **touched})


def new_page(parts: Iterable[bytes | tuple[str, bytes]]) -> bytes:
    """Put a new page together from plain text and blocks ``(id, text)``."""
    return b"".join(part if isinstance(part, bytes) else write_block(*part) for part in parts)
