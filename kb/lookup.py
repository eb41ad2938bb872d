"""Find whatever an ID names: an item, a draft, an entry, a claim, a run, a topic, a source; with all that hangs on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kb.errors import NothingMatches
from kb.identity import identify
from kb.store import Base
from kb.tables import read_table

SHORTEST_DIGEST = 6
"""Beginnings of a run's id that are shorter name too much."""


@dataclass(frozen=True)
class Found:
    """One thing of the base."""

    kind: str
    """item, draft, entry, claim, run, measurement, topic or source."""
    id: str
    record: dict[str, Any]
    """Its row."""
    more: dict[str, Any]
    """What hangs on it: decisions, entries, the verdict, measurements."""


def find(base: Base, wanted: str) -> Found:
    """Look an ID up in all kinds, cheapest first.

    Raises:
        NothingMatches: Nothing has this ID, or several things have.
    """
    for look in (_claim, _topic_or_source, _draft, _item, _run):
        hits = list(look(base, wanted))
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise NothingMatches(
                f"{wanted}: names {len(hits)} things",
                cause=", ".join(hit.id for hit in hits[:8]),
                remedy="give one of these ids in full",
            )
    raise NothingMatches(
        f"{wanted}: not found",
        cause="no item, draft, entry, claim, run, topic or source has this id",
        remedy="give an id as kb list prints it",
        next_command="kb list items",
    )


def history(base: Base, found: Found) -> list[dict[str, Any]]:
    """Everything recorded about it, in order: its lines in ``items/``, decisions, and acts of people."""
    ids = {found.id, *found.record.get("drafts", ())}
    lines: list[dict[str, Any]] = []
    if found.kind == "item":
        for item in base.items():
            if item.id == found.id:
                what = f"version {item.version or '-'}, content {item.content_sha256[:12] or '-'}"
                lines.append({"at": item.fetched_at, "what": "seen", "who": item.source, "text": what})
        for one in base.assessments():
            if one.item == found.id:
                text = f"{one.decision or 'no decision'}, {one.stars or '-'} stars: {one.reason}"
                lines.append({"at": one.at, "what": "assessed", "who": one.by, "text": text})
    for entry in base.log():
        if entry.target in ids or entry.target.partition("#")[0] == found.id:
            text = " → ".join(part for part in (entry.from_, entry.to) if part)
            text = f"{entry.target} {text}: {entry.reason}"
            lines.append(
                {"at": entry.at, "what": entry.act, "who": entry.who, "text": text, "seq": entry.seq}
            )
    return sorted(lines, key=lambda line: (line["at"], line.get("seq", 0)))


def _where(base: Base, table: str, **wanted: Any) -> list[dict[str, Any]]:
    """Rows of a table whose columns have these values."""
    return [row for row in read_table(base, table) if all(row[key] == value for key, value in wanted.items())]


def _claim(base: Base, wanted: str) -> Iterator[Found]:
    claim = base.claims().get(wanted) if "/" in wanted else None
    if claim:
        verdict = _where(base, "verdicts", id=wanted)[0]
        yield Found("claim", wanted, claim.to_json(), {"verdict": verdict})


def _topic_or_source(base: Base, wanted: str) -> Iterator[Found]:
    topic = base.topics().get(wanted)
    if topic:
        claims = [claim.id for claim in base.claims().values() if wanted in claim.topics]
        yield Found("topic", wanted, topic.to_json(), {"claims": claims})
    source = base.sources().get(wanted)
    if source:
        items = [row["id"] for row in _where(base, "items", source=wanted)]
        yield Found("source", wanted, source.to_json(), {"items": items})


def _draft(base: Base, wanted: str) -> Iterator[Found]:
    name, _, number = wanted.removesuffix(".md").partition("#")
    for row in read_table(base, "drafts"):
        if row["id"] != name and not row["id"].endswith(f"/{name}"):
            continue
        entries = _where(base, "entries", draft=row["id"])
        if not number:
            yield Found("draft", row["id"], row, {"entries": entries})
        for entry in entries:
            if number and entry["n"] == number:
                item = _where(base, "items", id=entry["item"])
                yield Found("entry", entry["id"], entry, {"item": item[0] if item else None})


def _item(base: Base, wanted: str) -> Iterator[Found]:
    work = identify(wanted)
    names = {wanted, work.id if work else wanted}
    for row in read_table(base, "items"):
        if not names & {row["id"], row["url"], *row["aliases"]}:
            continue
        yield Found(
            "item",
            row["id"],
            row,
            {
                "versions": _where(base, "versions", id=row["id"]),
                "decisions": _where(base, "assessments", item=row["id"]),
                "claims": [claim.id for claim in base.claims().values() if claim.item == row["id"]],
            },
        )


def _run(base: Base, wanted: str) -> Iterator[Found]:
    if len(wanted) < SHORTEST_DIGEST:
        return
    for row in read_table(base, "runs"):
        if row["id"].startswith(wanted):
            same = {key: row[key] for key in ("repro", "env", "at", "seed")}
            taken = [one["id"] for one in _where(base, "measurements", **same)]
            yield Found("run", row["id"], row, {"measurements": taken})
    for row in read_table(base, "measurements"):
        if row["id"].startswith(wanted):
            yield Found("measurement", row["id"], row, {})
