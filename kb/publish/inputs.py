"""What publish reads: records, accepted entries, pages with their markers, what people asked to be left alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kb.draft import read_drafts
from kb.errors import Findings
from kb.files import stat_map
from kb.model import Assessment, Draft
from kb.publish.memory import Memory
from kb.publish.page import Records
from kb.store import Base


def load_records(base: Base, memory: Memory | None = None) -> Records:
    """Read what pages are made of; with a memory, files that did not change are not parsed again."""
    return Records(
        topics=memory.read_topics() if memory else base.topics(),
        guides=base.guides(),
        claims=memory.read_claims() if memory else base.claims(),
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


def check_markers(base: Base, memory: Memory | None = None) -> None:
    """Check the markers of every page; with a memory, pages that did not change are not parsed again.

    Raises:
        Findings: A marker has no partner, cannot be read, or an id stands in two places; each place is named.
    """
    seen: dict[str, list[str]] = {}
    problems: list[str] = []
    memory = memory or Memory(base, stat_map(base.root, ["published"]))
    for name in memory.page_names():
        markers = memory.read_markers(name)
        problems += [f"{name}:{line}: {why}" for line, why in markers.problems]
        for block, line in dict(reversed(markers.blocks)).items():
            seen.setdefault(block, []).append(f"{name}:{line}")
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
