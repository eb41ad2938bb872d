"""How good the curating is: what is kept, what reviewers overturn, by source, by stars and by rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kb.draft import read_drafts
from kb.model import Assessment
from kb.store import Base
from kb.tables import decision_that_counts
from kb.triage.agreement import Opinion, compare
from kb.triage.known import BY_RULES

VERDICT_OF_STAGE = {"published": "keep", "dropped": "drop"}
"""Stages that mean a person decided: accepted as its front matter says, or dropped whatever it says."""


@dataclass
class Tally:
    """Decisions of the rules in one group, and what people made of them."""

    assessed: int = 0
    kept: int = 0
    reviewed: int = 0
    """A person decided: in a draft of their own, by editing a draft's front matter, or by moving it."""
    overturned: int = 0
    """Of those, decided otherwise than the rules."""

    def to_json(self) -> dict[str, Any]:
        """Counts and rates; null where nothing was counted."""
        return {
            "assessed": self.assessed,
            "kept": self.kept,
            "keep_rate": round(self.kept / self.assessed, 3) if self.assessed else None,
            "reviewed": self.reviewed,
            "overturned": self.overturned,
            "overturn_rate": round(self.overturned / self.reviewed, 3) if self.reviewed else None,
        }


def measure(base: Base) -> dict[str, Any]:
    """Keep rate, agreement and overturns of a whole base; read from its files alone."""
    decided: dict[str, Assessment] = {}
    people: dict[str, list[Assessment]] = defaultdict(list)
    for one in base.assessments():
        if one.by == BY_RULES:
            decided[one.item] = one
        else:
            people[one.item].append(one)
    opinions = _opinions(base, decided, people)
    sources = {name: next(iter(versions.values())).source for name, versions in base.latest_items().items()}
    groups: dict[str, dict[str, Tally]] = {
        key: defaultdict(Tally) for key in ("all", "source", "stars", "rule")
    }
    for name, made in decided.items():
        seats = [("all", "all"), ("source", sources.get(name, "")), ("stars", str(made.stars or ""))]
        seats += [("rule", rule.rule) for rule in made.rules]
        for group, key in seats:
            _count(groups[group][key], made, opinions.get(name))
    pairs = (
        (opinions[name], Opinion(made.decision, made.stars))
        for name, made in decided.items()
        if name in opinions
    )
    return {
        "items": len(sources),
        **groups["all"]["all"].to_json(),
        "agreement": compare(pairs).to_json(),
        "by_source": _rows("source", groups["source"]),
        "by_stars": _rows("stars", groups["stars"]),
        "by_rule": _rows("rule", groups["rule"]),
    }


def _opinions(
    base: Base, decided: dict[str, Assessment], people: dict[str, list[Assessment]]
) -> dict[str, Opinion]:
    """Item → what a person thinks of it: moves before edits before a draft of their own."""
    found: dict[str, Opinion] = {}
    for name, made in people.items():
        counts = decision_that_counts(made)
        if counts is not None and (counts.decision or counts.stars):
            found[name] = Opinion(counts.decision, counts.stars)
    for place, draft in read_drafts(base):
        for entry in draft.entries:
            rules = decided.get(entry.item)
            if rules is None or rules.draft.partition("#")[0] not in {
                place.id,
                draft.taken_from.partition("#")[0],
            }:
                continue
            verdict = "drop" if VERDICT_OF_STAGE.get(place.stage) == "drop" else entry.decision
            is_edited = (entry.decision, entry.stars) != (rules.decision, rules.stars)
            if is_edited or place.stage in VERDICT_OF_STAGE:
                found[entry.item] = Opinion(verdict, entry.stars)
    for act in base.log():
        if act.act == "drop" and act.target in decided:
            found[act.target] = Opinion("drop", None)
    return found


def _count(tally: Tally, made: Assessment, opinion: Opinion | None) -> None:
    tally.assessed += 1
    tally.kept += made.decision == "keep"
    if opinion is not None and opinion.decision is not None:
        tally.reviewed += 1
        tally.overturned += opinion.decision != made.decision


def _rows(name: str, tallies: dict[str, Tally]) -> list[dict[str, Any]]:
    ordered: Iterable[tuple[str, Tally]] = sorted(tallies.items(), key=lambda one: (-one[1].assessed, one[0]))
    return [{name: key, **tally.to_json()} for key, tally in ordered]
