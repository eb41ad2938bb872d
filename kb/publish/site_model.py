"""What the site is made of: the records both languages show, and one language of it as bytes by path."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kb.model import Claim, Item, Text, Topic
from kb.publish.entries import Pair
from kb.publish.inputs import load_records
from kb.publish.page import Records, newest_items, version_key
from kb.publish.pages import shown_pairs
from kb.publish.words import CAUSES, say
from kb.store import Base


@dataclass(frozen=True)
class Shown:
    """What both languages of the site show."""

    records: Records
    pairs: list[Pair]
    """Every claim that may be shown, with its verdict."""
    newest: Mapping[str, Item]
    """Item → its newest version."""
    stale: Mapping[str, list[str]]
    """Claim → why its verdict no longer follows; claims without a cause are absent."""

    def pairs_of(self, topic: Topic) -> list[Pair]:
        """Claims a topic's page shows."""
        return [
            self.records.pairs[claim.id]
            for claim in self.records.claims_of(topic)
            if claim.id in self.records.pairs
        ]


def gather(base: Base, today: dt.date, stale: Mapping[str, Iterable[str]]) -> Shown:
    """Read the records once for both languages.

    Args:
        base: The knowledge base.
        today: Day by which product states expire.
        stale: Claim → causes that `kb stale` found; what claims without a verdict show by themselves is added.
    """
    records = load_records(base)
    pairs = shown_pairs(records)
    newest = {item.id: item for item in newest_items(records.items, records.items)}
    causes = {claim.id: _causes(claim, newest, today, stale.get(claim.id, ())) for claim, _ in pairs}
    return Shown(records, pairs, newest, {name: found for name, found in causes.items() if found})


def _causes(claim: Claim, newest: Mapping[str, Item], today: dt.date, known: Iterable[str]) -> list[str]:
    causes = set(known)
    item = newest.get(claim.item)
    if item is not None and claim.version and version_key(item.version) > version_key(claim.version):
        causes.add("source")
    if claim.valid_until and claim.valid_until < today.isoformat():
        causes.add("age")
    return [cause for cause in CAUSES if cause in causes]


@dataclass
class Site:
    """One language of the site."""

    language: str
    title: str
    is_own: bool
    """Whether it shows the pages that people own; the other language is made from the records."""
    pages: dict[str, bytes] = field(default_factory=dict)
    """Markdown by path below the site's root."""
    titles: dict[str, Text] = field(default_factory=dict)
    """Path of a page of the base → its title."""
    people: dict[str, str] = field(default_factory=dict)
    """Path → what people wrote on it."""
    raw: list[str] = field(default_factory=list)
    """Pages that hold HTML of a person."""
    assets: dict[str, bytes] = field(default_factory=dict)
    """Copied as they are: figures, style, script."""
    beside: dict[str, bytes] = field(default_factory=dict)
    """Written after the pages: feeds, JSON, Markdown twins."""
    nav: list[Any] = field(default_factory=list)
    """mkdocs' menu."""

    @property
    def above(self) -> str:
        """From the root of this language to the root of the site."""
        return "" if self.is_own else "../"

    @property
    def folder(self) -> str:
        """This language below the root of the site, with a final slash; empty for the base's own."""
        return "" if self.is_own else f"{self.language}/"

    def say(self, key: str) -> str:
        """A set phrase in the site's language."""
        return say(key, self.language)
