"""One run of triage: decide about what is new, draft what is worth reading, write both down. Never rewrites a draft."""

from __future__ import annotations

import datetime as dt
import sqlite3
import zoneinfo
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kb import clock
from kb.config import load_user
from kb.files import sha256
from kb.model import Assessment
from kb.store import Base
from kb.triage import journal, known
from kb.triage.compile import Compiler, DraftText, Planned
from kb.triage.decide import Ask, Recipe, decide_one, recipe_of
from kb.triage.kin import find_kin
from kb.triage.many import spread

if TYPE_CHECKING:
    from kb.triage.llm import Model


@dataclass
class TriageReport:
    """What a run did, or would do."""

    assessed: int = 0
    decided: Counter[str] = field(default_factory=Counter)
    """By decision; duplicates apart."""
    drafts: list[dict[str, Any]] = field(default_factory=list)
    """``path``, ``sha256``, ``entries``, ``candidates``, ``unreadable`` each, as in ``kb ingest --json``."""
    updated: list[str] = field(default_factory=list)
    """Items of earlier drafts that have a newer version."""
    over_budget: int = 0
    """Worth drafting, and left for a later week."""
    lost: list[str] = field(default_factory=list)
    """Items whose draft is gone; ``--again`` drafts them once more."""
    llm: dict[str, Any] | None = None
    """Notes of a model that were used, and why others were not; None where none was asked."""
    resumed: bool = False
    """Whether a run that had been killed was completed first."""

    def to_json(self) -> dict[str, Any]:
        """The document of ``kb triage --json``."""
        counts = {key: self.decided[key] for key in ("keep", "watch", "drop", "duplicate")}
        return {
            "assessed": self.assessed, **counts, "over_budget": self.over_budget, "drafts": self.drafts,
            "updated": self.updated, "lost": self.lost, "resumed": self.resumed, "llm": self.llm,
        }  # fmt: skip


def run_triage(
    base: Base,
    *,
    since: dt.date | None = None,
    budget: int | None = None,
    llm: str | None = None,
    dry_run: bool = False,
    again: bool = False,
) -> TriageReport:
    """Assess every item that has no decision of the rules yet, and draft those that no draft holds.

    The caller holds the write lock (`Base.writing`), except for a dry run.

    Args:
        base: The knowledge base.
        since: Only items first seen on this day, in the base's zone, or later.
        budget: At most this many entries per calendar week; None for all.
        llm: OpenAI-compatible endpoint that may add words, never decisions; None for rules alone.
        dry_run: Change nothing.
        again: Decide anew about items that no draft holds, with the rules as they are now.

    Returns:
        Counts, and one line per draft.

    Raises:
        BadConfig: A rule, a topic or ``kb.toml`` cannot be used.
    """
    moment = clock.now()
    report = TriageReport(resumed=not dry_run and journal.finish(base))
    model = None if dry_run else _model(llm, base)
    cache = known.refresh(base, in_memory=dry_run)
    try:
        recipe = recipe_of(base, clock.stamp(moment))
        recipe.make()  # a rule that cannot be used is told even where nothing is new
        _assess(cache, base, recipe, report, since=since, again=again)
        note = model.note if model else None
        planned = Compiler(cache, base, moment, report.decided, note).plan(budget, since)
        texts = _texts(report, planned)
        if dry_run:
            deque(texts, maxlen=0)
        else:
            journal.carry_out(base, texts, _decisions(cache))
            if known.settle(cache, base):
                cache.commit()
        report.llm = _close(model)
    finally:
        cache.rollback()
        cache.close()
    return report


def _assess(
    cache: sqlite3.Connection,
    base: Base,
    recipe: Recipe,
    report: TriageReport,
    *,
    since: dt.date | None,
    again: bool,
) -> None:
    """Decide about every item whose newest version has no decision yet."""
    names = _pending(cache, base, since, again=again)
    for made in spread(decide_one, _asks(cache, base, names), recipe.make, len(names)):
        if again and _same_outcome(cache, made):
            continue
        known.add_decided(cache, made, fresh=True)
        report.assessed += 1
        report.decided["duplicate" if made.is_duplicate else str(made.decision)] += 1


def _asks(cache: sqlite3.Connection, base: Base, names: list[str]) -> Iterator[Ask]:
    """Items with what earlier ones they are like."""
    forced = {name: source.topics for name, source in base.sources().items()}
    for name in names:
        line, source = cache.execute("select line, source from items where id = ?", (name,)).fetchone()
        yield Ask(line, find_kin(cache, name), forced.get(source, ()))


def _pending(cache: sqlite3.Connection, base: Base, since: dt.date | None, *, again: bool) -> list[str]:
    """Items to decide about, in the order they were first seen."""
    undecided = "not exists (select 1 from decided d where d.id = i.id and d.version = i.version)"
    unheld = "not exists (select 1 from held h where h.item = i.id)"
    where = f"({undecided} or {unheld})" if again else undecided
    zone = zoneinfo.ZoneInfo(base.settings.zone)
    rows = cache.execute(f"select id, first_seen from items i where {where} order by first_seen, id")  # noqa: S608
    return [name for name, seen in rows if since is None or known.day_of(seen, zone) >= since]


def _same_outcome(cache: sqlite3.Connection, decided: known.Decided) -> bool:
    query = "select line, draft from decided where id = ? and version = ?"
    row = cache.execute(query, (decided.id, decided.version)).fetchone()
    if row is None or row[1]:
        return False
    before, made = Assessment.model_validate_json(row[0]), Assessment.model_validate_json(decided.line)
    return before.model_copy(update={"at": made.at, "blocked_by": made.blocked_by}) == made


def _model(llm: str | None, base: Base) -> Model | None:
    if not llm:
        return None
    from kb.triage.llm import Model

    return Model(llm, load_user(), language=base.settings.language)


def _close(model: Model | None) -> dict[str, Any] | None:
    if model is None:
        return None
    from kb.triage.llm import describe

    model.close()
    return describe(model.outcomes)


def _decisions(cache: sqlite3.Connection) -> Iterator[str]:
    for (line,) in cache.execute("select line from decided where fresh order by id, version"):
        yield line


def _texts(report: TriageReport, planned: Planned) -> Iterator[tuple[str, str]]:
    """(path, text) of each draft while it is told: a hundred thousand items fill drafts that are never together in memory."""
    report.over_budget = planned.over_budget
    report.updated = planned.updated
    report.lost = planned.lost
    for draft in planned.drafts:
        report.drafts.append(_told(draft))
        yield draft.path, draft.text


def _told(draft: DraftText) -> dict[str, Any]:
    return {
        "path": draft.path,
        "sha256": sha256(draft.text.encode()),
        "entries": len(draft.record.entries),
        "candidates": len(draft.record.candidates),
        "unreadable": [],
    }
