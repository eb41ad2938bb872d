"""Records → what a topic page shows. Pure: takes records, returns records, knows no file and no Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kb.model import (
    Assessment,
    Claim,
    Decision,
    Figure,
    Guide,
    Item,
    Outcome,
    Stated,
    Topic,
    TopicPage,
    Verdict,
)


@dataclass(frozen=True)
class Records:
    """What pages are made of."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    guides: Mapping[str, Guide] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    figures: tuple[Figure, ...] = ()
    items: Mapping[str, Mapping[str, Item]] = field(default_factory=dict)
    """Item id → version → item."""
    accepted: tuple[Assessment, ...] = ()
    """Decisions of accepted drafts."""

    @cached_property
    def by_topic(self) -> dict[str, list[Claim]]:
        """Topic → claims that name it."""
        found: dict[str, list[Claim]] = {}
        for claim in self.claims.values():
            for topic in claim.topics:
                found.setdefault(topic, []).append(claim)
        return found

    @cached_property
    def by_system(self) -> dict[str, list[Claim]]:
        """System → its claims."""
        found: dict[str, list[Claim]] = {}
        for claim in self.claims.values():
            found.setdefault(system_of(claim), []).append(claim)
        return found

    @cached_property
    def pairs(self) -> dict[str, tuple[Claim, Verdict]]:
        """Claim id → claim and verdict, of every claim that may be shown."""
        return {
            claim.id: (claim, verdict_of(claim, self.verdicts))
            for claim in self.claims.values()
            if claim.provenance != "memory"
        }

    def claims_of(self, topic: Topic) -> list[Claim]:
        """Claims a topic page shows: those that name the topic, and those of systems the topic names."""
        systems = [claim for name in topic.systems for claim in self.by_system.get(name, [])]
        return list({claim.id: claim for claim in (*self.by_topic.get(topic.path, []), *systems)}.values())


_OUTCOME_ORDER = {outcome: place for place, outcome in enumerate(Outcome)}
_DECISION_ORDER = {Decision.KEEP: 0, Decision.WATCH: 1, None: 2, Decision.DROP: 3}


def topic_page(topic: Topic, records: Records) -> TopicPage:
    """Gather what one topic page shows, in the order it is shown.

    Claims known from memory only stay out. Judged claims come first, then by id. A claim without a verdict is untested.
    """
    mine = records.claims_of(topic)
    pairs = ordered(records.pairs[claim.id] for claim in mine if claim.id in records.pairs)
    return TopicPage(
        topic=topic,
        claims=tuple(claim for claim, _ in pairs),
        verdicts=tuple(verdict for _, verdict in pairs),
        figures=tuple(
            sorted(
                (figure for figure in records.figures if topic.path in figure.topics),
                key=lambda figure: (figure.repro, figure.name),
            )
        ),
        reading=tuple(_reading(topic.path, records)),
        sources=tuple(newest_items(sorted({claim.item for claim, _ in pairs}), records.items)),
        num_memory=len(mine) - len(pairs),
    )


def ordered(pairs: Iterable[tuple[Claim, Verdict]]) -> list[tuple[Claim, Verdict]]:
    """Judged claims first, then by id."""
    return sorted(pairs, key=lambda pair: (_OUTCOME_ORDER[pair[1].verdict], pair[0].id))


def belongs(claim: Claim, topic: Topic) -> bool:
    """Whether a topic page shows a claim: the claim names the topic, or the topic names the claim's system."""
    return topic.path in claim.topics or system_of(claim) in topic.systems


def system_of(claim: Claim) -> str:
    """First part of a claim's id."""
    return claim.id.partition("/")[0]


def verdict_of(claim: Claim, verdicts: Mapping[str, Verdict]) -> Verdict:
    """The claim's verdict; *untested* where nobody has judged it yet."""
    if claim.id in verdicts:
        return verdicts[claim.id]
    return Verdict(
        claim=claim.id,
        verdict=Outcome.UNTESTED,
        source=Stated(low=claim.low, high=claim.high, unit=claim.unit, bound=claim.bound),
        reason="no reproduction has judged this claim yet",
        reason_zh="还没有复现实验判定这条论断",
    )


def newest_items(ids: Iterable[str], items: Mapping[str, Mapping[str, Item]]) -> list[Item]:
    """The newest version of each item that the base holds; numbers compare as numbers."""
    return [
        max(items[name].values(), key=lambda item: version_key(item.version)) for name in ids if name in items
    ]


def version_key(version: str) -> tuple[int, str]:
    """Order of versions: none, then by number, then by text."""
    is_number = re.fullmatch(r"[0-9]{1,9}", version) is not None
    return (int(version), "") if is_number else (-1, version)


def _reading(topic: str, records: Records) -> list[tuple[Assessment, Item]]:
    """Accepted entries of a topic with their items, one per item (the last decision counts), best first."""
    chosen = {a.item: a for a in records.accepted if topic in a.topics and a.decision is not Decision.DROP}
    found = newest_items(chosen, records.items)
    pairs = [(chosen[item.id], item) for item in found]
    return sorted(
        pairs,
        key=lambda pair: (
            _DECISION_ORDER[pair[0].decision],
            -(pair[0].stars or 0),
            pair[1].title,
            pair[1].id,
        ),
    )
