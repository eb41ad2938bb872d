"""Which items go into which draft of a run: one draft per topic, best first, within the budget of the week."""

from __future__ import annotations

import datetime as dt
import sqlite3
import zoneinfo
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kb.clock import stamp
from kb.draft import list_drafts
from kb.model import Assessment, Draft, Item, Topic
from kb.store import Base
from kb.triage.decide import read
from kb.triage.draft import MAX_SHOWN, Chosen, Note, Scope, compose
from kb.triage.known import add_decided, as_decided, day_of
from kb.triage.quotes import key_sentences
from kb.triage.reading import Reading
from kb.triage.relations import Relater

MAX_ENTRIES = 100
"""Entries of one draft; a topic with more gets several, numbered."""
UNSORTED = "unsorted"
"""Slug of a draft for items that no topic takes."""


@dataclass(frozen=True)
class DraftText:
    """One draft, ready to be written."""

    id: str
    path: str
    """Below the base."""
    record: Draft
    text: str


@dataclass
class Below:
    """What of a topic is in no draft."""

    num: int = 0
    best: list[tuple[str, str, bool]] = field(default_factory=list)
    """(item, version, beyond the budget): as many as are shown."""

    def add(self, name: str, version: str, *, is_beyond: bool) -> None:
        """Count one, and keep it while there is room."""
        self.num += 1
        if len(self.best) < MAX_SHOWN:
            self.best.append((name, version, is_beyond))


@dataclass
class Planned:
    """What a run will write."""

    drafts: Iterable[DraftText] = ()
    """Made one by one: what becomes of a decision is marked when its draft is."""
    updated: list[str] = field(default_factory=list)
    """Items of earlier drafts that have a newer version."""
    over_budget: int = 0
    lost: list[str] = field(default_factory=list)
    """Items whose draft is gone."""


class Compiler:
    """The drafts of one run; what becomes of each decision is marked in the cache.

    Args:
        cache: With this run's decisions marked fresh.
        base: The knowledge base.
        moment: Now.
        decided: This run's decisions, counted.
        annotate: Adds words to an entry; None for rules alone.
    """

    def __init__(
        self,
        cache: sqlite3.Connection,
        base: Base,
        moment: dt.datetime,
        decided: Counter[str],
        annotate: Callable[[Reading], Note | None] | None = None,
    ) -> None:
        self.cache = cache
        self.base = base
        self.at = stamp(moment)
        self.zone = zoneinfo.ZoneInfo(base.settings.zone)
        self.local = moment.astimezone(self.zone)
        self.curator = base.settings.curator
        self.decided = decided
        self.annotate = annotate
        self.relater = Relater(cache, base)
        self.taken = {draft.id for draft in list_drafts(base)}

    def plan(self, budget: int | None, since: dt.date | None) -> Planned:
        """Compose every draft of the run.

        Args:
            budget: Entries per calendar week; None for all.
            since: Only items first seen on this day, in the base's zone, or later.
        """
        planned = Planned(updated=list(self.relater.updates), lost=self._lost())
        pool = self._pool(since)
        beyond: list[tuple[str, str, str]] = []
        if budget is not None:
            room = max(0, budget - self._drafted_this_week())
            pool, beyond = pool[:room], pool[room:]
        planned.over_budget = len(beyond)
        for _, name, version in beyond:
            self._mark(name, version, blocked_by=("budget",))
        if pool:
            planned.drafts = self._drafts(pool, beyond, self._scope(budget))
        return planned

    def _pool(self, since: dt.date | None) -> list[tuple[str, str, str]]:
        """(topic, item, version) of what is worth drafting and in no draft, best first."""
        dropped = {entry.target for entry in self.base.log() if entry.act == "drop"}
        rows = self.cache.execute(
            """select d.topic, d.id, d.version, i.first_seen from decided d join items i using (id, version)
               where d.decision in ('keep', 'watch') and d.draft = '' and not d.is_duplicate
               and not exists (select 1 from held h where h.item = d.id)
               order by d.score desc, i.first_seen, d.id"""
        )
        return [
            (topic, name, version)
            for topic, name, version, first_seen in rows
            if name not in dropped and (since is None or day_of(first_seen, self.zone) >= since)
        ]

    def _lost(self) -> list[str]:
        query = """select d.id from decided d where d.draft != '' and not d.fresh
                   and not exists (select 1 from held h where h.item = d.id) order by d.id"""
        return [name for (name,) in self.cache.execute(query)]

    def _drafted_this_week(self) -> int:
        """Entries in this curator's drafts of the calendar week, Monday to Sunday."""
        monday = self.local.date() - dt.timedelta(days=self.local.weekday())
        week = [(monday + dt.timedelta(days=n)).isoformat() for n in range(7)]
        query = f"""select count(distinct h.item) from held h join drafts d using (path)
                    where d.id like ? and d.date in ({",".join("?" * len(week))})"""  # noqa: S608  only question marks
        (count,) = self.cache.execute(query, (f"{self.curator}/%", *week)).fetchone()
        return int(count)

    def _scope(self, budget: int | None) -> Scope:
        day = self.local.date().isoformat()
        (today,) = self.cache.execute(
            "select count(*) from drafts where date = ? and id like ?", (day, f"{self.curator}/%")
        ).fetchone()
        (known,) = self.cache.execute("select count(*) from decided where not fresh").fetchone()
        sources = self.cache.execute(
            "select i.source, count(*) from decided d join items i using (id, version) where d.fresh group by 1"
        )
        return Scope(
            curator=self.curator,
            date=day,
            time=f"{self.local:%Y-%m-%d %H:%M} ({self.base.settings.zone})",
            nth=today + 1,
            language=self.base.settings.language,
            says={rule.name: rule.says for rule in self.base.rules()},
            titles={path: topic.title for path, topic in self.base.topics().items()},
            decided=self.decided,
            sources=Counter(dict(sources.fetchall())),
            num_known=known,
            budget=budget,
        )

    def _drafts(
        self, pool: Sequence[tuple[str, str, str]], beyond: Sequence[tuple[str, str, str]], scope: Scope
    ) -> Iterator[DraftText]:
        topics = self.base.topics()
        groups: dict[str, list[tuple[str, str]]] = {}
        for topic, name, version in pool:
            groups.setdefault(topic, []).append((name, version))
        order = [path for path in topics if path in groups] + sorted(set(groups) - set(topics))
        below = self._below(order, beyond)
        number = 0
        for path in order:
            for start in range(0, len(groups[path]), MAX_ENTRIES):
                names = groups[path][start : start + MAX_ENTRIES]
                is_last = start + MAX_ENTRIES >= len(groups[path])
                yield self._draft(
                    path, topics.get(path), names, below[path] if is_last else Below(), scope, number
                )
                number += 1

    def _draft(
        self,
        path: str,
        topic: Topic | None,
        names: Sequence[tuple[str, str]],
        below: Below,
        scope: Scope,
        number: int,
    ) -> DraftText:
        name = self._free_name(f"{self.curator}/{scope.date}-{(path or UNSORTED).replace('/', '-')}")
        chosen = [self._chosen(name, str(n), *one) for n, one in enumerate(names, 1)]
        record, text = compose(
            name,
            topic,
            chosen,
            [self._passed(*one) for one in below.best],
            scope.of_draft(number),
            num_below=below.num,
            earlier=self.relater.same_topic(path),
            updates=self.relater.updates_of(path) if number or path else list(self.relater.updates.values()),
        )
        return DraftText(name, f"inbox/{name}.md", record, text)

    def _free_name(self, wanted: str) -> str:
        """The name, or with ``-2``, ``-3`` … where a draft of that day and topic exists."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}-{number}"
        self.taken.add(name)
        return name

    def _chosen(self, draft: str, n: str, name: str, version: str) -> Chosen:
        made = self._mark(name, version, draft=f"{draft}#{n}")
        item = self._item(name)
        reading = read(self.base, item)
        note = self.annotate(reading) if self.annotate else None
        return Chosen(
            item, made, tuple(key_sentences(reading)), tuple(self.relater.relations(item)), note=note
        )

    def _item(self, name: str) -> Item:
        (line,) = self.cache.execute("select line from items where id = ?", (name,)).fetchone()
        return Item.model_validate_json(line)

    def _mark(self, name: str, version: str, **changes: str | tuple[str, ...]) -> Assessment:
        """Say in a decision what became of it; one of an earlier run is written once more when it is drafted."""
        query = "select line, fresh from decided where id = ? and version = ?"
        line, fresh = self.cache.execute(query, (name, version)).fetchone()
        made = Assessment.model_validate_json(line)
        if not fresh and "draft" not in changes:
            return made
        if "draft" in changes and made.blocked_by == ("budget",):
            changes["blocked_by"] = ()
        made = made.model_copy(update={**changes, "at": self.at})
        add_decided(self.cache, as_decided(made), fresh=True)
        return made

    def _below(self, order: Sequence[str], beyond: Sequence[tuple[str, str, str]]) -> dict[str, Below]:
        """What of each topic stayed beyond the budget or below, best first.

        What belongs to no topic with a draft stands in the first draft: nothing is left out silently.
        """
        query = "select topic, id, version from decided where fresh and (decision = 'drop' or is_duplicate)"
        rows = self.cache.execute(f"{query} order by score desc, id").fetchall()
        found = {path: Below() for path in order}
        for topic, name, version in beyond:
            found.get(topic, found[order[0]]).add(name, version, is_beyond=True)
        for topic, name, version in rows:
            found.get(topic, found[order[0]]).add(name, version, is_beyond=False)
        return found

    def _passed(self, name: str, version: str, is_beyond: bool) -> Chosen:  # noqa: FBT001  a row
        query = "select line from decided where id = ? and version = ?"
        (line,) = self.cache.execute(query, (name, version)).fetchone()
        made = Assessment.model_validate_json(line)
        return Chosen(self._item(name), made, over_budget=is_beyond)
