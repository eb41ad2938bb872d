"""Every table of a base as rows, in the shapes the command line prints and `kb.lens` serves to SQL. Only reads.

A table is a record type and a function that yields its rows in a fixed order; `kb list` and `kb query` show the same
rows. Nothing here is a second truth: a row is a record of the base, flattened where people ask for columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from kb.draft import STAGE_ORDER, list_drafts, read_draft, read_drafts
from kb.errors import BadInput
from kb.files import digest
from kb.model import (
    Assessment,
    Claim,
    Environment,
    Interval,
    Item,
    LogEntry,
    Measurement,
    Outcome,
    Record,
    SourceConfig,
    Stated,
    Topic,
    Verdict,
)
from kb.store import Base


class ItemRow(Record):
    """An item as it stands now: its newest version, the decision that counts, how far its drafts are."""

    id: str
    """`Item.id`."""
    version: str
    """Newest version."""
    url: str
    aliases: tuple[str, ...]
    title: str
    submitted: str | None
    """ISO 8601 as precise as the source gave it; null where it gave none."""
    updated: str | None
    announced: str | None
    first_seen: str
    topics: tuple[str, ...]
    stars: int | None
    decision: str | None
    """keep, watch, drop; null where nobody decided."""
    stage: str | None
    """Furthest stage of the drafts that hold it; null where none does."""
    versions: tuple[str, ...]
    """Every version the base has met."""
    source: str
    """Source or draft that gave it."""
    drafts: tuple[str, ...]
    """Entries that hold it: ``curator/date-slug#n``."""


class DraftRow(Record):
    """A draft file and where it stands."""

    id: str
    """``curator/date-slug``."""
    stage: str
    path: str
    """Below the base."""
    curator: str
    date: str
    entries: int
    candidates: int
    imported: bool
    """True where the untouched bytes of an import lie beside it."""
    problem: str
    """Why its front matter cannot be used; empty where it can."""


class EntryRow(Record):
    """One entry of a draft."""

    id: str
    """``curator/date-slug#n``."""
    draft: str
    n: str
    stage: str
    item: str
    version: int | None
    decision: str | None
    stars: int | None
    credibility: int | None
    action: str | None
    topics: tuple[str, ...]


class VerdictRow(Record):
    """The verdict on a claim, in the shape `kb repro --json` gives its claims."""

    id: str
    """`Claim.id`."""
    verdict: str
    level: str | None
    source: Stated
    measured: Interval | None
    reason: str
    system: str
    repro: str
    machine: str
    at: str
    """Moment of the newest measurement behind it, UTC."""


class RunRow(Record):
    """Measurements taken together: same reproduction, machine class, code, inputs, seed and moment."""

    id: str
    """Digest of the ids of its measurements."""
    repro: str
    env: str
    machine: str
    at: str
    seed: int
    measurements: int
    samples: int
    levels: tuple[str, ...]
    imported: bool


class RuleRow(Record):
    """A triage rule."""

    name: str
    kind: str
    weight: float
    why: str


class EnvironmentRow(Environment):
    """A class of machine with its digest."""

    id: str = ""
    """As in `Measurement.env`."""


@dataclass(frozen=True)
class Table:
    """One table: what its rows are, how to read them, what a terminal shows of them."""

    row: type[Record]
    read: Callable[[Base], Iterable[Record]]
    shown: tuple[str, ...]
    """Columns of the table on a terminal; JSON has them all."""


def decision_that_counts(assessments: Iterable[Assessment]) -> Assessment | None:
    """Pick from all decisions on one item: a person's before the rules', then the latest line."""
    best: Assessment | None = None
    for one in assessments:
        if best is None or (one.by != "rules") >= (best.by != "rules"):
            best = one
    return best


def newest_version(versions: Iterable[str]) -> str:
    """Pick the newest version: numbered ones by number, and any of them before an unnumbered one."""
    return max(
        versions, key=lambda version: (version.isdigit(), int(version) if version.isdigit() else 0, version)
    )


def items(base: Base) -> Iterator[ItemRow]:
    """Items in the order they were first seen, then by id."""
    decided: dict[str, list[Assessment]] = {}
    for assessment in base.assessments():
        decided.setdefault(assessment.item, []).append(assessment)
    held: dict[str, list[EntryRow]] = {}
    for entry in entries(base):
        held.setdefault(entry.item, []).append(entry)
    rows = [
        _item_row(versions, decided.get(name, []), held.get(name, []))
        for name, versions in base.latest_items().items()
    ]
    return iter(sorted(rows, key=lambda row: (row.first_seen, row.id)))


def _item_row(versions: dict[str, Item], decided: list[Assessment], held: list[EntryRow]) -> ItemRow:
    item = versions[newest_version(versions)]
    counts = decision_that_counts(decided)
    topics = dict.fromkeys(topic for entry in held for topic in entry.topics)
    return ItemRow(
        id=item.id,
        version=item.version,
        url=item.url,
        aliases=item.aliases,
        title=item.title,
        submitted=item.submitted.at if item.submitted else None,
        updated=item.updated.at if item.updated else None,
        announced=item.announced.at if item.announced else None,
        first_seen=min(v.first_seen.at for v in versions.values()),
        topics=counts.topics if counts and counts.topics else tuple(topics),
        stars=counts.stars if counts else None,
        decision=counts.decision if counts else None,
        stage=max((entry.stage for entry in held), key=STAGE_ORDER.__getitem__, default=None),
        versions=tuple(sorted(versions, key=lambda v: (len(v), v))),
        source=item.source,
        drafts=tuple(entry.id for entry in held),
    )


def drafts(base: Base) -> Iterator[DraftRow]:
    """Draft files by id, those that cannot be read included."""
    for found in list_drafts(base):
        problem, draft = "", None
        try:
            draft, _ = read_draft(found.path)
        except BadInput as error:
            problem = error.cause
        curator, _, name = found.id.rpartition("/")
        yield DraftRow(
            id=found.id,
            stage=found.stage,
            path=base.relative(found.path),
            curator=draft.curator if draft else curator,
            date=draft.date if draft else name[:10],
            entries=len(draft.entries) if draft else 0,
            candidates=len(draft.candidates) if draft else 0,
            imported=bool(draft and draft.origin),
            problem=problem,
        )


def entries(base: Base) -> Iterator[EntryRow]:
    """Entries of all drafts that can be read, in the drafts' own order."""
    for found, draft in read_drafts(base):
        for entry in draft.entries:
            yield EntryRow(
                id=f"{found.id}#{entry.n}", draft=found.id, stage=found.stage, **entry.model_dump()
            )


def verdict_row(verdict: Verdict) -> VerdictRow:
    """Shape a verdict as `kb repro --json` and `kb list verdicts --json` give it."""
    return VerdictRow(
        id=verdict.claim,
        system=verdict.claim.partition("/")[0],
        **{name: getattr(verdict, name) for name in VerdictRow.model_fields if name in Verdict.model_fields},
    )


def verdicts(base: Base) -> Iterator[VerdictRow]:
    """One row per claim of the base by id; claims without a verdict are untested."""
    judged = base.verdicts()
    claims = base.claims()
    for name in sorted({*judged, *claims}):
        yield verdict_row(judged.get(name) or _untested(claims[name]))


def _untested(claim: Claim) -> Verdict:
    return Verdict(
        claim=claim.id,
        verdict=Outcome.UNTESTED,
        source=Stated(low=claim.low, high=claim.high, unit=claim.unit, bound=claim.bound),
        reason=f"not run yet; planned: {claim.planned}" if claim.planned else "nothing was run for it yet",
    )


def measurements(base: Base) -> Iterator[Measurement]:
    """Everything measured, reproduction by reproduction."""
    folder = base.root / "measurements"
    names = sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    for name in names:
        if name != "env":
            yield from base.measurements(name)


def runs(base: Base) -> Iterator[RunRow]:
    """Runs in the order of their moment, then by id."""
    return (row for row, _ in run_groups(base))


def run_groups(base: Base) -> list[tuple[RunRow, list[Measurement]]]:
    """Runs with the measurements they consist of, in the order of their moment, then by id."""
    machines = {name: env.machine for name, env in base.environments().items()}
    groups: dict[tuple[str, ...], list[Measurement]] = {}
    for one in measurements(base):
        key = (one.repro, one.env, one.code, one.inputs, str(one.seed), one.at, digest(one.imported))
        groups.setdefault(key, []).append(one)
    found = [
        (
            RunRow(
                id=digest(sorted(one.id for one in group))[:16],
                repro=group[0].repro,
                env=group[0].env,
                machine=machines.get(group[0].env, ""),
                at=group[0].at,
                seed=group[0].seed,
                measurements=len(group),
                samples=sum(len(one.samples) for one in group),
                levels=tuple(sorted({one.level.value for one in group})),
                imported=bool(group[0].imported),
            ),
            group,
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda pair: (pair[0].at, pair[0].repro, pair[0].id))


def rules(base: Base) -> Iterator[RuleRow]:
    """Triage rules by name."""
    for rule in base.rules():
        yield RuleRow(name=rule.name, kind=rule.kind, weight=rule.weight, why=rule.why)


def versions(base: Base) -> Iterator[Item]:
    """The line that counts of every version of every item."""
    for by_version in base.latest_items().values():
        yield from by_version.values()


def environments(base: Base) -> Iterator[EnvironmentRow]:
    """Machine classes by digest."""
    for name, environment in base.environments().items():
        yield EnvironmentRow(id=name, **environment.model_dump())


def _values(name: str, base: Base) -> Iterable[Record]:
    found: dict[str, Any] = getattr(base, name)()
    return found.values()


TABLES: dict[str, Table] = {
    "items": Table(ItemRow, items, ("id", "version", "decision", "stars", "stage", "title")),
    "versions": Table(Item, versions, ("id", "version", "source", "title")),
    "assessments": Table(Assessment, Base.assessments, ("item", "by", "decision", "stars", "reason")),
    "drafts": Table(DraftRow, drafts, ("id", "stage", "entries", "candidates", "problem")),
    "entries": Table(EntryRow, entries, ("id", "stage", "item", "decision", "stars")),
    "claims": Table(Claim, partial(_values, "claims"), ("id", "kind", "metric", "low", "high", "unit", "bound", "item")),
    "verdicts": Table(VerdictRow, verdicts, ("id", "verdict", "level", "reason")),
    "measurements": Table(Measurement, measurements, ("id", "repro", "metric", "unit", "samples")),
    "runs": Table(RunRow, runs, ("id", "repro", "machine", "at", "seed", "measurements", "samples")),
    "environments": Table(EnvironmentRow, environments, ("id", "machine", "cpu", "python")),
    "log": Table(LogEntry, Base.log, ("seq", "at", "who", "act", "target", "from", "to", "reason")),
    "topics": Table(Topic, partial(_values, "topics"), ("path", "order", "systems")),
    "sources": Table(SourceConfig, partial(_values, "sources"), ("name", "kind", "url", "enabled", "why")),
    "rules": Table(RuleRow, rules, ("name", "kind", "weight", "why")),
}  # fmt: skip
"""Every table by name. `kb list` shows items, drafts, claims, runs and verdicts; `kb query` all of them."""


def read_table(base: Base, name: str) -> list[dict[str, Any]]:
    """Rows of one table as JSON objects, every column present."""
    return [row.to_json() for row in TABLES[name].read(base)]
