"""`kb publish`: records → pages, blocks and figures on disk. Reads everything, decides everything, then writes.

Order of writes: figures, pages, last machine outputs, proposals. A run that is killed anywhere is completed by the next
one, because a block whose text is already the new one is left alone and its record is then brought up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kb.errors import NeedsPerson, NothingMatches
from kb.files import read_bytes, sha256
from kb.markers import find_blocks
from kb.model import Figure
from kb.publish.blocks import BlockState, Output, update_page
from kb.publish.guides import unknown_claims
from kb.publish.inputs import check_markers, held_blocks, load_records
from kb.publish.memory import Memory, recall
from kb.publish.pages import Page, all_pages
from kb.publish.plan import FileChange, Plan
from kb.store import MAX_PAGE_BYTES, Base


@dataclass
class _Run:
    """One run while it is being decided."""

    base: Base
    memory: Memory
    holds: set[str]
    plan: Plan = field(default_factory=Plan)
    after: list[FileChange] = field(default_factory=list)
    """Written after the pages: last machine outputs and proposals."""
    keys: dict[str, str] = field(default_factory=dict)
    """Page → digest of what it was made of, for the next run."""


def make_plan(base: Base, pages: Sequence[str] = ()) -> Plan:
    """Decide what a run writes; writes nothing.

    Args:
        base: The knowledge base.
        pages: Paths of pages below ``published/``; none for all.

    Raises:
        Findings: See `kb.publish.inputs.check_markers`.
        NothingMatches: A name in ``pages`` is no page.
    """
    return _decide(base, pages).plan


def _decide(base: Base, pages: Sequence[str]) -> _Run:
    memory = recall(base)
    run = _Run(base, memory, set())
    if memory.nothing_changed and not pages:
        run.plan.states = {name: memory.kept_states(name) for name in memory.states}
        run.plan.notes = list(memory.notes)
        run.keys = memory.keys
        return run
    check_markers(base, memory)
    run.holds = held_blocks(base)
    records = load_records(base, memory)
    language = base.settings.language
    for guide in records.guides.values():
        unknown = unknown_claims(guide, records.claims)
        run.plan.notes += [f"guides/{guide.path}.toml: no claim matches {name}" for name in unknown]
    drawn: dict[str, Figure] = {}
    for page in _chosen(all_pages(records, language), pages):
        drawn |= {f"{figure.repro}/{figure.name}": figure for figure in page.figures}
        _page(run, page)
    pictures = [change for _, figure in sorted(drawn.items()) if (change := _picture(base, figure, language))]
    run.plan.changes = [c for c in (*pictures, *run.plan.changes, *run.after) if c.before != c.after]
    return run


def _page(run: _Run, page: Page) -> None:
    """Decide about one page; one that is as the last run left it, made of the same records, is left alone unread."""
    base, plan = run.base, run.plan
    path = base.page_path(page.path)
    name = f"published/{page.path}/index.md"
    key = sha256(f"{page.key} {sorted(run.holds)}".encode())
    kept = run.memory.kept_states(name)
    beside = [f"published/.blocks/{state.id}{end}" for state in kept for end in (".md", ".proposal.md")]
    if kept and run.memory.keys.get(page.path) == key and run.memory.is_same(name, *beside):
        plan.states[name] = kept
        plan.notes += _taken_over(name, kept)
    elif path.exists():
        _update(run, page)
    elif any(base.block_path(block).exists() for block in page.blocks):
        plan.notes.append(f"{name}: a person removed this page; it is not written again")
        return
    else:
        data = page.render(page.blocks)
        plan.changes.append(FileChange(name, None, data))
        plan.states[name] = [BlockState(block.id, "clean", block.line) for block in find_blocks(data)[0]]
        run.after += [_change(base, base.block_path(block), text) for block, text in page.blocks.items()]
    run.keys[page.path] = key


def _taken_over(name: str, states: Iterable[BlockState]) -> list[str]:
    taken = [state.id for state in states if state.state == "taken-over"]
    return [f"{name}: {block} was taken over by a person; it is not written again" for block in taken]


def _chosen(pages: list[Page], names: Sequence[str]) -> list[Page]:
    known = {page.path: page for page in pages}
    for name in names:
        if name not in known:
            raise NothingMatches(
                f"page {name}: not found",
                cause=f"pages are {', '.join(known) or '(none)'}",
                remedy="name a page as its folder under published/ is named",
                next_command="kb publish",
            )
    return [known[name] for name in dict.fromkeys(names)] or pages


def _update(run: _Run, page: Page) -> None:
    base, after = run.base, run.after
    path = base.page_path(page.path)
    name = base.relative(path)
    before = read_bytes(path, limit=MAX_PAGE_BYTES)
    outputs = {
        block: Output(text, _read(base.block_path(block)), held=bool({block, page.path} & run.holds))
        for block, text in page.blocks.items()
    }
    update = update_page(before, outputs)
    run.plan.states[name] = update.states
    run.plan.changes.append(FileChange(name, before, update.data))
    run.plan.notes += _taken_over(name, update.states)
    after += [_change(base, base.block_path(block), text) for block, text in update.bases.items()]
    after += [_change(base, base.proposal_path(block), text) for block, text in update.proposals.items()]


def _change(base: Base, path: Path, data: bytes | None) -> FileChange:
    return FileChange(base.relative(path), _read(path), data)


def _read(path: Path) -> bytes | None:
    return read_bytes(path, limit=MAX_PAGE_BYTES) if path.exists() else None


def _picture(base: Base, figure: Figure, language: str) -> FileChange | None:
    """The SVG of a figure; None where the file is already its picture."""
    from kb.publish.figures import draw, is_drawn

    path = base.figure_path(figure.repro, figure.name, "svg")
    before = _read(path)
    if before is not None and is_drawn(figure, before):
        return None
    return FileChange(base.relative(path), before, draw(figure, language))


def write_plan(base: Base, plan: Plan) -> None:
    """Write what a plan says; the caller holds the write lock since before it was made."""
    for change in plan.changes:
        path = base.root / change.path
        if change.after is not None:
            base.write(path, change.after)
        else:
            path.unlink(missing_ok=True)


def publish(base: Base, pages: Sequence[str] = ()) -> Plan:
    """Bring pages, blocks and figures up to date under the write lock; see `make_plan`."""
    with base.writing("kb publish"):
        run = _decide(base, pages)
        write_plan(base, run.plan)
        if not pages and (run.plan.changes or not run.memory.nothing_changed):
            written = [change.path for change in run.plan.changes]
            run.memory.remember(written, run.keys, run.plan.states, run.plan.notes)
    return run.plan


def raise_if_held(plan: Plan) -> None:
    """Say so where a person has to decide.

    Raises:
        NeedsPerson: Blocks clash; everything else was written.
    """
    if not plan.held:
        return
    places = [f"{page}:{state.line} {state.id}: {state.why}" for page, state in plan.held]
    raise NeedsPerson(
        f"{len(places)} blocks are held; their pages were left exactly as they are",
        cause="\n          ".join(places),
        remedy="read the proposals under published/.blocks, then accept, reject or edit",
        next_command="kb review",
    )
