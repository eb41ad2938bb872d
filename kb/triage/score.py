"""From an item and the rules of a base to a decision with every rule that fired. Pure: no files, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kb.config import TriageSettings
from kb.model import Action, Assessment, CodeRule, Decision, RuleFired, Topic, WordRule
from kb.triage.phrases import Phrases
from kb.triage.reading import Found, Reading, lower
from kb.triage.rules import Unit, load_unit
from kb.triage.shelves import Shelf, find_shelves, make_shelves

BASE_CREDIBILITY = 3.0
"""Where nothing is known of a source."""
MAX_TAGS = 6
MAX_EVIDENCE_CHARS = 120
"""One piece of evidence is cut here; a rule's words are short, a line of code may not be."""
STRONG_FIGURES = 0.6
"""Share of a figures rule's weight from which an item is read for its numbers."""


@dataclass(frozen=True)
class Prepared:
    """A rule with its words or its function."""

    rule: WordRule | CodeRule
    phrases: Phrases | None
    unit: Unit | None

    def find(self, reading: Reading) -> Found | None:
        """What the rule sees: strength is the number of words, or 0–1 of a unit."""
        if isinstance(self.rule, WordRule):
            words = self.phrases.find(reading, self.rule.max) if self.phrases else []
            return Found(float(len(words)), tuple(words)) if words else None
        return self.unit(reading, self.rule.options) if self.unit else None


@dataclass(frozen=True)
class Scorer:
    """Rules, topics and thresholds of one base, ready for many items."""

    rules: tuple[Prepared, ...]
    shelves: tuple[Shelf, ...]
    settings: TriageSettings
    language: str = "en"

    def read(self, reading: Reading, forced: Iterable[str] = ()) -> Reading:
        """Add the topics to a reading."""
        return replace(reading, shelves=find_shelves(reading, self.shelves, forced))

    def assess(self, reading: Reading, *, at: str, forced: Iterable[str] = ()) -> Assessment:
        """Decide about one item.

        Args:
            reading: The item with its text and neighbours.
            at: Moment of the decision, UTC.
            forced: Topics its source belongs to.
        """
        reading = self.read(reading, forced)
        score, credibility = 0.0, BASE_CREDIBILITY
        fired: list[RuleFired] = []
        gained: list[str] = []
        for prepared in self.rules:
            found = prepared.find(reading)
            if found is None or found.strength <= 0:
                continue
            rule = prepared.rule
            score += rule.weight * found.strength
            credibility += rule.credibility * min(found.strength, 1.0)
            gained.extend(rule.topics if isinstance(rule, WordRule) else ())
            fired.append(_fired(rule.name, rule.weight * found.strength, found.evidence))
        return self._assessment(reading, round(score, 3), credibility, fired, gained, at)

    def _assessment(
        self,
        reading: Reading,
        score: float,
        credibility: float,
        fired: list[RuleFired],
        gained: list[str],
        at: str,
    ) -> Assessment:
        decision, stars = decide(score, self.settings)
        topics = dict.fromkeys([*(path for path, _ in reading.shelves), *gained])
        return Assessment(
            item=reading.item.id,
            version=reading.item.version,
            by="rules",
            decision=decision,
            stars=stars,
            credibility=max(1, min(5, round(credibility))),
            action=choose_action(decision, stars, fired, self.weights),
            tags=self.tags_of(reading),
            topics=tuple(topics),
            rules=tuple(fired),
            reason=self.say(score, decision, fired),
            blocked_by=blockers(score, decision, fired, self.settings),
            at=at,
        )

    @cached_property
    def says(self) -> dict[str, str]:
        """Rule → its words in the base's language."""
        return {p.rule.name: getattr(p.rule.says, self.language) for p in self.rules}

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Rule → its full weight."""
        return {prepared.rule.name: prepared.rule.weight for prepared in self.rules}

    def tags_of(self, reading: Reading) -> tuple[str, ...]:
        """Words that drew it to its topics, as the topics spell them."""
        words = (lower(word) for _, found in reading.shelves for word in found)
        return tuple(dict.fromkeys(self.spelling.get(word, word) for word in words))[:MAX_TAGS]

    @cached_property
    def spelling(self) -> dict[str, str]:
        """Word in lower case → as a topic spells it."""
        return {word: tag for shelf in self.shelves for word, tag in shelf.phrases.spelling.items()}

    def say(self, score: float, decision: Decision, fired: Iterable[RuleFired]) -> str:
        """One sentence: the score, then what the rules that have words say for the item and against it."""
        ordered = sorted(fired, key=lambda one: -abs(one.weight))
        words = WORDS[self.language]
        parts = [words["score"].format(score=score, decision=words[decision])]
        for key, sign in (("for", 1), ("against", -1)):
            names = [self.says[one.rule] for one in ordered if one.weight * sign > 0 and self.says[one.rule]]
            if names:
                parts.append(words[key].format(names=words["comma"].join(names)))
        return words["stop"].join(parts)


WORDS: dict[str, dict[str, str]] = {
    "zh": {"score": "得分 {score:g}，{decision}", "for": "加分：{names}", "against": "减分：{names}", "comma": "、", "stop": "；",
           "keep": "保留", "watch": "降级关注", "drop": "放弃"},
    "en": {"score": "score {score:g}, {decision}", "for": "for it: {names}", "against": "against it: {names}", "comma": ", ",
           "stop": "; ", "keep": "keep", "watch": "watch", "drop": "drop"},
}  # fmt: skip


def make_scorer(
    rules: Iterable[WordRule | CodeRule],
    topics: Iterable[Topic],
    settings: TriageSettings,
    language: str = "en",
) -> Scorer:
    """Prepare rules and topics.

    Raises:
        BadConfig: A rule names a unit that does not exist.
    """
    prepared = []
    for rule in sorted(rules, key=lambda rule: rule.name):
        if isinstance(rule, WordRule):
            prepared.append(Prepared(rule, Phrases((*rule.zh, *rule.en)), None))
        else:
            prepared.append(Prepared(rule, None, load_unit(rule.unit)))
    return Scorer(tuple(prepared), tuple(make_shelves(topics)), settings, language)


def _fired(name: str, weight: float, evidence: tuple[str, ...]) -> RuleFired:
    cut = tuple(" ".join(word.split())[:MAX_EVIDENCE_CHARS] for word in evidence)
    return RuleFired(rule=name, weight=round(weight, 3), evidence=cut)


def decide(score: float, settings: TriageSettings) -> tuple[Decision, int]:
    """Decision and stars of a score."""
    stars = 1 + sum(score >= least for least in settings.stars)
    if score >= settings.keep:
        return Decision.KEEP, stars
    return (Decision.WATCH if score >= settings.watch else Decision.DROP), stars


def choose_action(
    decision: Decision, stars: int, fired: Iterable[RuleFired], weights: Mapping[str, float]
) -> Action | None:
    """What a reader is asked to do: adopt a manual, read strong evidence, review the rest, follow what is watched."""
    share = {one.rule: one.weight / weights[one.rule] for one in fired if weights.get(one.rule)}
    if decision is Decision.DROP:
        return None
    if decision is Decision.WATCH:
        return Action.FOLLOW
    if "manual" in share and "commands" in share:
        return Action.ADOPT
    if stars >= TOP_STARS or (stars == TOP_STARS - 1 and share.get("figures", 0) >= STRONG_FIGURES):
        return Action.READ
    return Action.REVIEW if stars == TOP_STARS - 1 or "figures" not in share else Action.FOLLOW


TOP_STARS = 5


def blockers(
    score: float, decision: Decision, fired: Iterable[RuleFired], settings: TriageSettings
) -> tuple[str, ...]:
    """Why an item was not kept: the one rule that decided it, else all that speak against it; and a score too low anyway."""
    if decision is Decision.KEEP:
        return ()
    against = sorted((one for one in fired if one.weight < 0), key=lambda one: (one.weight, one.rule))
    decisive = [f"rule:{one.rule}" for one in against if score - one.weight >= settings.keep]
    if decisive:
        return tuple(decisive)
    without = score - sum(one.weight for one in against)
    too_low = () if without >= settings.keep else (f"score:{score:g}<{settings.keep:g}",)
    return (*(f"rule:{one.rule}" for one in against), *too_low)
