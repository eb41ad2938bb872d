"""From decisions to the text of a draft: records in, text out. No files, no clock; every figure in it is counted here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.draft import front_matter
from kb.model import Action, Assessment, Candidate, Decision, Draft, DraftEntry, Item, RuleFired, Text, Topic
from kb.triage.escape import Safe, code, inline, link, one_line

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
MAX_SHOWN = 100
"""Rows of the table below the threshold; the rest is counted, and every one has its decision in ``assessments/``."""
MAX_VALUE = 4
"""Reasons named as engineering value."""


@dataclass(frozen=True)
class Relation:
    """How an entry stands to earlier drafts."""

    kind: str
    """``new``, ``updated``, ``repeated`` or ``contradicted``."""
    draft: str = ""
    """Earlier draft and entry, or the claim that was contradicted."""
    note: str = ""
    """Title or version it refers to."""


@dataclass(frozen=True)
class Note:
    """Words of a model about an item; shown as such, and never part of a decision."""

    summary: str
    why_read: str
    quotes: tuple[str, ...] = ()
    """Passages that stand in the text word for word: candidates for claims."""
    num_refused: int = 0
    """Passages it gave that do not."""


@dataclass(frozen=True)
class Chosen:
    """An item on its way into a draft, or into the table below."""

    item: Item
    assessment: Assessment
    quotes: tuple[str, ...] = ()
    """Sentences that carry its figures, verbatim."""
    relations: tuple[Relation, ...] = ()
    over_budget: bool = False
    note: Note | None = None

    @property
    def score(self) -> float:
        """Sum of what fired."""
        return round(sum(one.weight for one in self.assessment.rules), 3)


@dataclass(frozen=True)
class Neighbourhood:
    """An earlier draft that shares a topic with this one."""

    draft: str
    stage: str
    entries: tuple[str, ...]
    """Its entries on the topic, by number."""


@dataclass(frozen=True)
class Scope:
    """What a whole run looked at, counted."""

    curator: str
    date: str
    time: str
    """Local time with zone."""
    nth: int
    """How many drafts this curator has of this day, this one included."""
    language: str
    says: Mapping[str, Text]
    """Rule → what it says about an item."""
    titles: Mapping[str, Text]
    """Topic → title."""
    decided: Counter[str] = field(default_factory=Counter)
    """Items assessed in this run by decision, ``duplicate`` apart."""
    sources: Counter[str] = field(default_factory=Counter)
    """Items assessed in this run by source."""
    num_known: int = 0
    """Items of the base that had been assessed before."""
    budget: int | None = None

    def of_draft(self, number: int) -> Scope:
        """The same run, for its draft ``number``, counted from 0."""
        return replace(self, nth=self.nth + number)


def compose(
    name: str,
    topic: Topic | None,
    chosen: Sequence[Chosen],
    below: Sequence[Chosen],
    scope: Scope,
    *,
    num_below: int | None = None,
    earlier: Sequence[Neighbourhood] = (),
    updates: Sequence[Chosen] = (),
) -> tuple[Draft, str]:
    """Write one draft.

    Args:
        name: ``curator/date-slug``.
        topic: What it is about; None for what fits no topic.
        chosen: Entries, best first.
        below: What stayed below the threshold or beyond the budget, with its assessment.
        scope: The run it comes from.
        num_below: How many stayed below in all, where ``below`` shows only the best of them.
        earlier: Drafts that share the topic.
        updates: Items of earlier drafts that have a newer version.

    Returns:
        Its record and its whole text.
    """
    numbered = [(str(number), one) for number, one in enumerate(chosen, 1)]
    record = Draft(
        curator=scope.curator,
        date=scope.date,
        entries=tuple(_entry(n, one) for n, one in numbered),
        candidates=tuple(
            Candidate(title=one_line(one.item.title, 300), reason=_plain_reason(one, scope))
            for one in below[:MAX_SHOWN]
        ),
    )
    view = {
        "name": name,
        "scope": scope,
        "topic": topic,
        "topic_title": _word(topic.title, scope) if topic else "",
        "entries": [_view(n, one, scope) for n, one in numbered],
        "below": [_below(one, scope) for one in below[:MAX_SHOWN]],
        "num_below": len(below) if num_below is None else num_below,
        "updates": [{"id": code(one.item.id), "relations": one.relations} for one in updates],
        "earlier": earlier,
        "tags": _tags(numbered),
        "actions_list": _by_action(numbered),
        "draft_path": code(f"inbox/{name}.md"),
        "pages": _pages(numbered),
        "counts": _counts(numbered, below, scope),
        "stars": lambda count: "⭐" * (count or 0),
    }
    body = _templates().get_template(f"draft.{scope.language}.md.j2").render(view).lstrip()
    return record, front_matter(record) + "\n" + body


def _entry(n: str, one: Chosen) -> DraftEntry:
    made = one.assessment
    return DraftEntry(
        n=n,
        item=one.item.id,
        version=int(one.item.version) if one.item.version.isdigit() else None,
        decision=made.decision,
        stars=made.stars,
        credibility=made.credibility,
        action=made.action,
        topics=made.topics,
    )


def _view(n: str, one: Chosen, scope: Scope) -> dict[str, Any]:
    item, made = one.item, one.assessment
    return {
        "n": n,
        "item": item,
        "id": code(item.id),
        "link": link(item.url) if item.url else "",
        "dates": [
            (key, getattr(item, key).at[:10])
            for key in ("submitted", "updated", "announced")
            if getattr(item, key)
        ],
        "made": made,
        "quotes": [Safe(f"“{inline(quote)}”") for quote in one.quotes],
        "note": one.note,
        "note_quotes": [Safe(f"“{inline(quote)}”") for quote in one.note.quotes] if one.note else [],
        "value": _sayings(made.rules, scope, 1),
        "against": _sayings(made.rules, scope, -1),
        "fired": Safe(", ".join(f"{code(rule.rule)} {rule.weight:+g}" for rule in made.rules)),
        "relations": one.relations,
        "pages": [_word(scope.titles[path], scope) for path in made.topics if path in scope.titles],
    }


def _below(one: Chosen, scope: Scope) -> dict[str, Any]:
    made = one.assessment
    return {
        "title": one.item.title,
        "source": one.item.source,
        "decision": made.decision,
        "duplicate_of": [code(other) for other in made.duplicate_of],
        "over_budget": one.over_budget,
        "reasons": _sayings(made.rules, scope, -1),
        "score": one.score,
    }


def _plain_reason(one: Chosen, scope: Scope) -> str:
    if one.assessment.duplicate_of:
        return one_line(f"= {', '.join(one.assessment.duplicate_of)}", 300)
    if one.over_budget:
        return {"zh": "超出预算", "en": "beyond the budget"}[scope.language]
    return one_line("; ".join(_sayings(one.assessment.rules, scope, -1)) or f"score {one.score:g}", 300)


def _sayings(fired: Iterable[RuleFired], scope: Scope, sign: int) -> list[str]:
    """What the rules on one side say, heaviest first; rules without words of their own are left out."""
    ordered = sorted(
        (one for one in fired if one.weight * sign > 0), key=lambda one: (-abs(one.weight), one.rule)
    )
    said = [_word(scope.says[one.rule], scope) for one in ordered if one.rule in scope.says]
    return list(dict.fromkeys(word for word in said if word))[:MAX_VALUE]


def _word(text: Text, scope: Scope) -> str:
    first, second = (text.zh, text.en) if scope.language == "zh" else (text.en, text.zh)
    return first or second


def _tags(numbered: Sequence[tuple[str, Chosen]]) -> list[tuple[str, list[str]]]:
    """Tag → numbers of the entries that carry it, most frequent first."""
    found: dict[str, list[str]] = {}
    for n, one in numbered:
        for tag in one.assessment.tags:
            found.setdefault(tag, []).append(n)
    return sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def _by_action(numbered: Sequence[tuple[str, Chosen]]) -> list[tuple[Action, list[tuple[str, Item]]]]:
    found = [
        (action, [(n, one.item) for n, one in numbered if one.assessment.action is action])
        for action in Action
    ]
    return [(action, items) for action, items in found if items]


def _pages(numbered: Sequence[tuple[str, Chosen]]) -> list[dict[str, Any]]:
    """Topic pages the entries belong to, with the priority their best entry gives them."""
    found: dict[str, list[tuple[str, int]]] = {}
    for n, one in numbered:
        for path in one.assessment.topics:
            found.setdefault(path, []).append((n, one.assessment.stars or 0))
    rows = [
        {
            "topic": path,
            "path": code(f"published/{path}/index.md"),
            "stars": max(s for _, s in held),
            "entries": [n for n, _ in held],
        }
        for path, held in found.items()
    ]
    return sorted(rows, key=lambda row: (-row["stars"], -len(row["entries"]), row["topic"]))


def _counts(numbered: Sequence[tuple[str, Chosen]], below: Sequence[Chosen], scope: Scope) -> dict[str, Any]:
    decisions = Counter(one.assessment.decision for _, one in numbered)
    return {
        "entries": len(numbered),
        "keep": decisions[Decision.KEEP],
        "watch": decisions[Decision.WATCH],
        "below": len(below),
        "over_budget": sum(one.over_budget for one in below),
        "duplicates": sum(bool(one.assessment.duplicate_of) for one in below),
        "assessed": sum(scope.decided.values()),
        "sources": sorted(scope.sources.items()),
        "relations": Counter(relation.kind for _, one in numbered for relation in one.relations),
        "quotes": sum(len(one.quotes) for _, one in numbered),
    }


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # nothing is printed that was not made safe: `finalize` sees every value
    return Environment(  # noqa: S701  autoescape knows HTML only; `_print` escapes for Markdown and HTML
        loader=FileSystemLoader(TEMPLATES),
        finalize=_print,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _print(value: object) -> str:
    if isinstance(value, Safe):
        return value
    return str(value) if isinstance(value, int | float) else inline(str(value))
