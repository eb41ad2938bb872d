"""One run of triage: decide about what is new, draft what is worth reading, write both down. Never rewrites a draft."""

from __future__ import annotations

import datetime as dt
import sqlite3
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kb import clock
from kb.errors import CannotRun
from kb.files import sha256
from kb.model import Assessment, Decision, Item
from kb.store import Base
from kb.triage import journal, known
from kb.triage.compile import Compiler, Planned
from kb.triage.reading import Reading
from kb.triage.score import Scorer, make_scorer


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
    resumed: bool = False
    """Whether a run that had been killed was completed first."""

    def to_json(self) -> dict[str, Any]:
        """The document of ``kb triage --json``."""
        counts = {key: self.decided[key] for key in ("keep", "watch", "drop", "duplicate")}
        return {
            "assessed": self.assessed, **counts, "over_budget": self.over_budget, "drafts": self.drafts,
            "updated": self.updated, "lost": self.lost, "resumed": self.resumed,
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
    if llm:
        raise CannotRun(
            f"--llm {llm}: not used", cause="this version decides by rules alone", remedy="run without --llm"
        )
    moment = clock.now()
    report = TriageReport(resumed=not dry_run and journal.finish(base))
    cache = known.refresh(base, in_memory=dry_run)
    language = base.settings.language
    scorer = make_scorer(base.rules(), base.topics().values(), base.settings.triage, language)
    cache.execute("begin")
    try:
        _assess(cache, base, scorer, report, at=clock.stamp(moment), since=since, again=again)
        planned = Compiler(cache, base, moment, report.decided).plan(budget, since)
        _report(report, planned)
        if not dry_run:
            drafts = [(draft.path, draft.text) for draft in planned.drafts]
            journal.carry_out(base, drafts, _decisions(cache))
    finally:
        cache.rollback()
        cache.close()
    if not dry_run and report.assessed:
        known.refresh(base).close()
    return report


def _assess(
    cache: sqlite3.Connection,
    base: Base,
    scorer: Scorer,
    report: TriageReport,
    *,
    at: str,
    since: dt.date | None,
    again: bool,
) -> None:
    """Decide about every item whose newest version has no decision yet."""
    forced = {name: source.topics for name, source in base.sources().items()}
    for item in list(_pending(cache, base, since, again=again)):
        kin = known.find_kin(cache, item)
        reading = Reading(item, known.body_of(base, item), neighbours=kin.neighbours)
        made = scorer.assess(reading, at=at, forced=forced.get(item.source, ()))
        if kin.duplicate_of:
            made = _as_duplicate(made, kin.duplicate_of)
        if again and _same_outcome(cache, made):
            continue
        known.add_assessment(cache, made, fresh=True)
        report.assessed += 1
        report.decided["duplicate" if made.duplicate_of else str(made.decision)] += 1


def _pending(cache: sqlite3.Connection, base: Base, since: dt.date | None, *, again: bool) -> Iterator[Item]:
    """Items to decide about, in the order they were first seen."""
    undecided = "not exists (select 1 from decided d where d.id = i.id and d.version = i.version)"
    unheld = "not exists (select 1 from held h where h.item = i.id)"
    where = f"({undecided} or {unheld})" if again else undecided
    zone = zoneinfo.ZoneInfo(base.settings.zone)
    for (line,) in cache.execute(f"select line from items i where {where} order by first_seen, id"):  # noqa: S608
        item = Item.model_validate_json(line)
        if since is None or known.day_of(item.first_seen.at, zone) >= since:
            yield item


def _as_duplicate(made: Assessment, others: tuple[str, ...]) -> Assessment:
    return made.model_copy(
        update={
            "decision": Decision.DROP,
            "action": None,
            "duplicate_of": others,
            "blocked_by": ("duplicate",),
        }
    )


def _same_outcome(cache: sqlite3.Connection, made: Assessment) -> bool:
    query = "select line, draft from decided where id = ? and version = ?"
    row = cache.execute(query, (made.item, made.version)).fetchone()
    if row is None or row[1]:
        return False
    before = Assessment.model_validate_json(row[0])
    return before.model_copy(update={"at": made.at, "blocked_by": made.blocked_by}) == made


def _decisions(cache: sqlite3.Connection) -> Iterator[str]:
    for (line,) in cache.execute("select line from decided where fresh order by id, version"):
        yield line


def _report(report: TriageReport, planned: Planned) -> None:
    report.over_budget = planned.over_budget
    report.updated = planned.updated
    report.lost = planned.lost
    report.drafts = [
        {
            "path": draft.path,
            "sha256": sha256(draft.text.encode()),
            "entries": len(draft.record.entries),
            "candidates": len(draft.record.candidates),
            "unreadable": [],
        }
        for draft in planned.drafts
    ]
