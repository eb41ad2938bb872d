"""How items stand to earlier drafts: new, updated, repeated, contradicted. Computed from records, never typed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from functools import cached_property

from kb.model import Assessment, Item, Outcome
from kb.store import Base
from kb.triage.draft import Chosen, Neighbourhood, Relation
from kb.triage.kin import find_kin

MAX_EARLIER = 10
"""Earlier drafts of one topic that are named, newest first."""
MAX_REPEATED = 3
SIMILAR = 0.25
"""From here on an earlier entry is named as saying much the same."""


class Relater:
    """Compares items with what drafts hold and with the verdicts on their claims."""

    def __init__(self, cache: sqlite3.Connection, base: Base) -> None:
        self.cache = cache
        self.base = base

    def relations(self, item: Item) -> Iterator[Relation]:
        """Relations of one entry; ``new`` where there is no other."""
        found = [*self._contradicted(item), *self._repeated(item)]
        yield from found or [Relation("new")]

    def _contradicted(self, item: Item) -> Iterator[Relation]:
        for claim, reason in self._refuted.get(item.id, ()):
            yield Relation("contradicted", claim, reason)

    def _repeated(self, item: Item) -> Iterator[Relation]:
        near = [one for one in find_kin(self.cache, item.id).neighbours if one.similarity >= SIMILAR]
        for one in near[:MAX_REPEATED]:
            for draft, n in self.cache.execute(
                "select draft, n from held where item = ? limit 1", (one.item,)
            ):
                yield Relation("repeated", f"{draft}#{n}", f"{one.title} ({one.similarity:.0%})")

    @cached_property
    def _refuted(self) -> dict[str, list[tuple[str, str]]]:
        """Item → its claims that our own numbers contradict, with the reason."""
        refuted = {
            name: verdict.reason
            for name, verdict in self.base.verdicts().items()
            if verdict.verdict is Outcome.CONTRADICTED
        }
        if not refuted:
            return {}
        found: dict[str, list[tuple[str, str]]] = {}
        for claim in self.base.claims().values():
            if claim.id in refuted:
                found.setdefault(claim.item, []).append((claim.id, refuted[claim.id]))
        return found

    @cached_property
    def updates(self) -> dict[str, Chosen]:
        """Items of this run that an earlier draft holds in an older version."""
        rows = self.cache.execute(
            """select d.line, i.line, h.draft, h.n, h.version, d.version from decided d
               join items i using (id, version) join held h on h.item = d.id
               where d.fresh and d.version != '' and h.version is not null and cast(d.version as integer) > h.version
               order by d.id, h.draft, h.n"""
        )
        found: dict[str, Chosen] = {}
        for made, line, draft, n, old, new in rows:
            item = Item.model_validate_json(line)
            relation = Relation("updated", f"{draft}#{n}", f"v{old} → v{new}")
            before = found[item.id].relations if item.id in found else ()
            assessment = Assessment.model_validate_json(made)
            found[item.id] = Chosen(item, assessment, relations=(*before, relation))
        return found

    def updates_of(self, topic: str) -> list[Chosen]:
        """Those of a topic."""
        return [one for one in self.updates.values() if topic in one.assessment.topics]

    def same_topic(self, topic: str) -> list[Neighbourhood]:
        """Earlier drafts with entries on a topic, newest first."""
        rows = self.cache.execute(
            """select d.date, h.draft, d.stage, h.n, h.topics from held h join drafts d using (path)
               where d.stage != 'dropped' and h.topics like ? order by d.date desc, h.draft, h.rowid""",
            (f'%"{topic}"%',),
        )
        found: dict[tuple[str, str], list[str]] = {}
        for _, draft, stage, n, topics in rows:
            if topic in json.loads(topics):
                found.setdefault((draft, stage), []).append(n)
        shown = list(found.items())[:MAX_EARLIER]
        return [Neighbourhood(draft, stage, tuple(numbers)) for (draft, stage), numbers in shown]
