"""Decisions about many items: what a process needs once, what it is asked, what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kb.config import TriageSettings
from kb.model import Assessment, CodeRule, Decision, Item, Topic, WordRule
from kb.store import Base
from kb.texts import text_of
from kb.triage.kin import Kin
from kb.triage.known import Decided, as_decided
from kb.triage.reading import Reading
from kb.triage.score import Scorer, make_scorer


class Ask(NamedTuple):
    """An item to decide about."""

    line: str
    """`Item` as JSON."""
    kin: Kin
    forced: tuple[str, ...]
    """Topics its source belongs to whatever the words say."""


@dataclass(frozen=True)
class Decider:
    """Rules, topics and texts of one base, ready for many items."""

    base: Base
    scorer: Scorer
    at: str
    """Moment of the decisions, UTC."""


@dataclass(frozen=True)
class Recipe:
    """What a process needs to make the same `Decider`."""

    base: Base
    rules: tuple[WordRule | CodeRule, ...]
    topics: tuple[Topic, ...]
    settings: TriageSettings
    language: str
    at: str

    def make(self) -> Decider:
        """The decider.

        Raises:
            BadConfig: A rule names a unit that does not exist.
        """
        scorer = make_scorer(self.rules, self.topics, self.settings, self.language)
        return Decider(self.base, scorer, self.at)


def recipe_of(base: Base, at: str) -> Recipe:
    """What a base says about deciding.

    Raises:
        BadConfig: A rule, a topic or ``kb.toml`` cannot be used.
    """
    settings = base.settings
    rules, topics = tuple(base.rules()), tuple(base.topics().values())
    return Recipe(base, rules, topics, settings.triage, settings.language, at)


def decide_one(decider: Decider, ask: Ask) -> Decided:
    """Decide about one item; what is one work with an earlier item is dropped as its duplicate."""
    reading = read(decider.base, Item.model_validate_json(ask.line), ask.kin)
    made = decider.scorer.assess(reading, at=decider.at, forced=ask.forced)
    return as_decided(_as_duplicate(made, ask.kin.duplicate_of) if ask.kin.duplicate_of else made)


def read(base: Base, item: Item, kin: Kin | None = None) -> Reading:
    """An item with its extracted text where the cache has it, else its summary is what there is."""
    return Reading(item, text_of(base, item.content_sha256), neighbours=kin.neighbours if kin else ())


def _as_duplicate(made: Assessment, others: tuple[str, ...]) -> Assessment:
    changes = {
        "decision": Decision.DROP,
        "action": None,
        "duplicate_of": others,
        "blocked_by": ("duplicate",),
    }
    return made.model_copy(update=changes)
