"""Why an item stands where it stands: every rule that fired, what it repeats, and what keeps it out of a draft."""

from __future__ import annotations

from typing import Any

from kb.draft import read_drafts
from kb.errors import NothingMatches
from kb.identity import identify
from kb.model import Assessment, Item
from kb.store import Base
from kb.tables import decision_that_counts, newest_version
from kb.triage.known import BY_RULES


def explain(base: Base, wanted: str) -> dict[str, Any]:
    """Explain the decision on an item, named by id, address, alias or ``curator/date-slug#n``.

    Returns:
        ``decision``, ``stars``, ``rules`` (rule, weight, evidence), ``duplicates``, ``blocked_by`` and what else a
        reader may ask for: ``reason``, ``score``, ``thresholds``, who decided, drafts that hold it.

    Raises:
        NothingMatches: No item has this name.
    """
    item, drafts = _find(base, wanted)
    made = [one for one in base.assessments() if one.item == item.id and one.version == item.version]
    by_rules = next((one for one in reversed(made) if one.by == BY_RULES), None)
    counts = decision_that_counts(made)
    settings = base.settings.triage
    score = round(sum(rule.weight for rule in by_rules.rules), 3) if by_rules else None
    return {
        "item": item.id,
        "version": item.version,
        "title": item.title,
        "decision": counts.decision if counts else None,
        "stars": counts.stars if counts else None,
        "by": counts.by if counts else None,
        "reason": counts.reason if counts else "",
        "score": score,
        "thresholds": {"keep": settings.keep, "watch": settings.watch, "stars": list(settings.stars)},
        "rules": [rule.to_json() for rule in (by_rules.rules if by_rules else ())],
        "rules_decided": by_rules.decision if by_rules else None,
        "duplicates": list(by_rules.duplicate_of) if by_rules else [],
        "blocked_by": _blocked(base, item, by_rules, held=bool(drafts)),
        "drafts": drafts,
    }


def _find(base: Base, wanted: str) -> tuple[Item, list[str]]:
    work = identify(wanted)
    names = {wanted, work.id if work else wanted}
    holding = [
        (f"{found.id}#{entry.n}", entry.item) for found, draft in read_drafts(base) for entry in draft.entries
    ]
    names |= {item for place, item in holding if place == wanted}
    for versions in base.latest_items().values():
        item = versions[newest_version(versions)]
        if names & {item.id, item.url, *item.aliases}:
            return item, [place for place, name in holding if name == item.id]
    raise NothingMatches(
        f"{wanted}: not found",
        cause="no item has this id, address or alias, and no draft has this entry",
        remedy="give an id as kb list items prints it",
        next_command="kb list items",
    )


def _blocked(base: Base, item: Item, by_rules: Assessment | None, *, held: bool) -> list[str]:
    """What keeps it from being drafted now: rules, the budget, an earlier work, a person, or that nobody looked yet."""
    if any(entry.act == "drop" and entry.target == item.id for entry in base.log()):
        return ["person:drop"]
    if by_rules is None:
        return [] if held else ["not-assessed"]
    if held:
        return [one for one in by_rules.blocked_by if one != "budget"]
    return [*by_rules.blocked_by, *(["draft-gone"] if by_rules.draft else [])]
