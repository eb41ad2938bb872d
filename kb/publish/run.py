"""`kb publish`: records → pages, blocks and figures on disk. Reads everything, decides everything, then writes.

Order of writes: figures, pages, last machine outputs, proposals. A run that is killed anywhere is completed by the next
one, because a block whose text is already the new one is left alone and its record is then brought up to date.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb.draft import read_drafts
from kb.errors import Findings, NeedsPerson, NothingMatches
from kb.files import read_bytes, sha256
from kb.markers import find_blocks
from kb.model import Assessment, Draft, Figure
from kb.publish.blocks import BlockState, Output, update_page
from kb.publish.guides import unknown_claims
from kb.publish.page import Records
from kb.publish.pages import Page, all_pages
from kb.store import MAX_PAGE_BYTES, Base


@dataclass(frozen=True)
class FileChange:
    """One file that a run adds, changes or removes."""

    path: str
    """Below the root of the base."""
    before: bytes | None
    """None: it is added."""
    after: bytes | None
    """None: it is removed."""

    @property
    def action(self) -> str:
        """``add``, ``change`` or ``remove``."""
        return "add" if self.before is None else "remove" if self.after is None else "change"

    def to_json(self) -> dict[str, Any]:
        """What a plan says of it."""
        sums = [None if data is None else sha256(data) for data in (self.before, self.after)]
        return {"path": self.path, "action": self.action, "before": sums[0], "after": sums[1]}

    def diff(self) -> str:
        """Unified diff, for people."""
        old, new = (
            (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
            for data in (self.before, self.after)
        )
        lines = difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}", n=2)
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


@dataclass
class Plan:
    """What one run of publish does, decided before a byte is written."""

    changes: list[FileChange] = field(default_factory=list)
    """In the order they are written."""
    states: dict[str, list[BlockState]] = field(default_factory=dict)
    """Page → its blocks."""
    notes: list[str] = field(default_factory=list)
    """For people: what was left alone, and why."""

    @property
    def held(self) -> list[tuple[str, BlockState]]:
        """Blocks that wait for a person's decision, with their page."""
        return [
            (page, state)
            for page, states in self.states.items()
            for state in states
            if state.state == "held" and not state.asked
        ]

    def to_json(self) -> dict[str, Any]:
        """The plan as data, the same with and without ``--dry-run``."""
        blocks = [
            {"id": s.id, "page": page, "line": s.line, "state": s.state, "why": s.why}
            for page, states in self.states.items()
            for s in states
        ]
        return {"changes": [c.to_json() for c in self.changes], "blocks": blocks, "notes": self.notes}


def load_records(base: Base) -> Records:
    """Read what pages are made of."""
    return Records(
        topics=base.topics(),
        guides=base.guides(),
        claims=base.claims(),
        verdicts=base.verdicts(),
        figures=tuple(base.figures()),
        items=base.latest_items(),
        accepted=tuple(accepted_entries(base)),
    )


def accepted_entries(base: Base) -> list[Assessment]:
    """Entries of drafts under ``published/drafts`` as decisions of their curators, oldest draft first."""
    drafts = [(d.id, draft) for d, draft in read_drafts(base) if d.stage == "published"]
    return [
        assessment
        for name, draft in sorted(drafts, key=lambda pair: (pair[1].date, pair[0]))
        for assessment in _entries(name, draft)
    ]


def _entries(name: str, draft: Draft) -> Iterable[Assessment]:
    for entry in draft.entries:
        yield Assessment(
            item=entry.item,
            version=str(entry.version or ""),
            by=draft.curator,
            decision=entry.decision,
            stars=entry.stars,
            credibility=entry.credibility,
            action=entry.action,
            topics=entry.topics,
            draft=f"{name}#{entry.n}",
            at=draft.date,
        )


def page_files(base: Base) -> list[Path]:
    """Every Markdown file under ``published/`` that may hold blocks, in path order."""
    folder = base.root / "published"
    paths = (path for path in folder.glob("**/*.md") if path.is_file())
    return sorted(p for p in paths if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def check_markers(base: Base) -> None:
    """Check the markers of every page.

    Raises:
        Findings: A marker has no partner, cannot be read, or an id stands in two places; each place is named.
    """
    seen: dict[str, list[str]] = {}
    problems: list[str] = []
    for path in page_files(base):
        blocks, wrong = find_blocks(read_bytes(path, limit=MAX_PAGE_BYTES))
        name = base.relative(path)
        problems += [f"{name}:{problem.line}: {problem.why}" for problem in wrong]
        for block in {b.id: b for b in blocks}.values():
            seen.setdefault(block.id, []).append(f"{name}:{block.line}")
    for block_id, places in sorted(seen.items()):
        if len(places) > 1:
            problems += [f"{place}: block {block_id} stands in {len(places)} pages" for place in places]
    if problems:
        raise Findings(
            f"{len(problems)} block markers cannot be used; nothing was written",
            cause="\n          ".join(problems),
            remedy="give each block one kb:begin and one kb:end with the same id, once in the base",
            next_command="kb publish --check",
        )


def make_plan(base: Base, pages: Sequence[str] = ()) -> Plan:
    """Decide what a run writes; writes nothing.

    Args:
        base: The knowledge base.
        pages: Paths of pages below ``published/``; none for all.

    Raises:
        Findings: See `check_markers`.
        NothingMatches: A name in ``pages`` is no page.
    """
    check_markers(base)
    plan = Plan()
    language = base.settings.language
    holds = held_blocks(base)
    after: list[FileChange] = []
    drawn: dict[str, Figure] = {}
    records = load_records(base)
    for guide in records.guides.values():
        plan.notes += [
            f"guides/{guide.path}.toml: no claim matches {x}" for x in unknown_claims(guide, records.claims)
        ]
    for page in _chosen(all_pages(records, language), pages):
        drawn |= {f"{figure.repro}/{figure.name}": figure for figure in page.figures}
        path = base.page_path(page.path)
        name = base.relative(path)
        if path.exists():
            _update(base, plan, page, holds, after)
        elif any(base.block_path(block).exists() for block in page.blocks):
            plan.notes.append(f"{name}: a person removed this page; it is not written again")
        else:
            plan.changes.append(FileChange(name, None, page.render(page.blocks)))
            plan.states[name] = [BlockState(block, "clean") for block in page.blocks]
            after += [_change(base, base.block_path(block), text) for block, text in page.blocks.items()]
    pictures = [change for _, figure in sorted(drawn.items()) if (change := _picture(base, figure, language))]
    plan.changes = [c for c in (*pictures, *plan.changes, *after) if c.before != c.after]
    return plan


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


def held_blocks(base: Base) -> set[str]:
    """Blocks and pages that a person asked kb to leave alone: held and not released since."""
    held: set[str] = set()
    for entry in base.log():
        if entry.act == "hold":
            held.add(entry.target)
        elif entry.act == "release":
            held.discard(entry.target)
    return held


def waiting_names(base: Base) -> frozenset[str]:
    """Blocks whose new text waits beside their page."""
    folder = base.root / "published/.blocks"
    names = (path.relative_to(folder).as_posix() for path in folder.glob("**/*.proposal.md"))
    return frozenset(name.removesuffix(".proposal.md") for name in names)


def _update(base: Base, plan: Plan, page: Page, holds: set[str], after: list[FileChange]) -> None:
    path = base.page_path(page.path)
    name = base.relative(path)
    before = read_bytes(path, limit=MAX_PAGE_BYTES)
    outputs = {
        block: Output(text, _read(base.block_path(block)), held=block in holds or page.path in holds)
        for block, text in page.blocks.items()
    }
    update = update_page(before, outputs)
    plan.states[name] = update.states
    plan.changes.append(FileChange(name, before, update.data))
    taken = [state.id for state in update.states if state.state == "taken-over"]
    plan.notes += [f"{name}: {block} was taken over by a person; it is not written again" for block in taken]
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
        plan = make_plan(base, pages)
        write_plan(base, plan)
    return plan


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
