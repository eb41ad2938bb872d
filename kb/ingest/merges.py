"""Two ids for one work: a person says so, and can take it back. Only the log changes; no item is rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.errors import NothingMatches, WrongUse
from kb.identity import identify
from kb.ingest.known import Known
from kb.ingest.likeness import Alike, may_be_one, people
from kb.store import Base

NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Act:
    """One line of the log: ``target`` is, or is not, the work ``to``."""

    act: str
    target: str
    to: str

    def to_json(self) -> dict[str, str]:
        """For ``--json``."""
        return {"act": self.act, "target": self.target, "to": self.to}


def plan_merge(base: Base, ids: Sequence[str]) -> list[Act]:
    """What `kb merge` would record: all of the works become the one that was met first.

    Raises:
        NothingMatches: An id is no item of the base.
        WrongUse: Fewer than two different works.
    """
    with Known(base) as known:
        works = _works(known, ids)
        if len(works) < 2:  # noqa: PLR2004  a pair
            raise WrongUse(
                "kb merge: nothing to merge", cause="these are one work already", remedy="give two ids"
            )
        # the first one met keeps its name, so the same call gives the same answer on every machine
        kept = min(works, key=lambda work: (known.first_seen(work), works.index(work)))
        return [Act("merge", work, kept) for work in works if work != kept]


def plan_split(base: Base, ids: Sequence[str]) -> list[Act]:
    """What `kb split` would record: merges are undone, works that were never merged are kept apart for good.

    Raises:
        NothingMatches: An id is no item of the base.
        WrongUse: One id that was never merged into another.
    """
    with Known(base) as known:
        named = [_named(known, text) for text in ids]
        undone = [
            Act("split", work, known.merged_into(work))
            for work in dict.fromkeys(named)
            if known.merged_into(work)
        ]
        if undone:
            return undone
        works = list(dict.fromkeys(named))
        if len(works) < 2:  # noqa: PLR2004  a pair
            raise WrongUse(
                f"kb split {works[0]}: nothing to split",
                cause="it was never merged",
                remedy="give the two ids to keep apart",
            )
        return [Act("split", work, works[0]) for work in works[1:]]


def proposals(base: Base, known: Known, works: Sequence[str]) -> dict[str, list[Alike]]:
    """Work → works that may be the same: titles alike, numbers equal, authors that do not speak against it.

    A person answers with `kb merge` or `kb split`; either ends the proposal.
    """
    found = {work: alike for work in works if (alike := known.alike(work))}
    if not found:
        return {}
    authors = {
        work: frozenset().union(*(people(item.authors) for item in versions.values()))
        for work, versions in base.latest_items().items()
        if work in found or any(work == one.id for alike in found.values() for one in alike)
    }
    open_ = {
        work: [one for one in alike if may_be_one(authors.get(work, NOBODY), authors.get(one.id, NOBODY))]
        for work, alike in found.items()
    }
    return {work: alike for work, alike in open_.items() if alike}


def record(base: Base, acts: Sequence[Act], *, reason: str, who: str, at: str) -> None:
    """Append acts to the log; the caller holds the write lock. An act that is already the last word is not repeated."""
    last = {frozenset((e.target, e.to)): e.act for e in base.log() if e.act in {"merge", "split"}}
    for act in acts:
        if last.get(frozenset((act.target, act.to))) != act.act:
            base.append_log(act.act, act.target, who=who, at=at, to=act.to, reason=reason)


def _works(known: Known, ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(known.follow_merges(_named(known, text)) for text in ids))


def _named(known: Known, text: str) -> str:
    work = identify(text)
    for candidate in (text, work.id if work else text):
        if known.has(candidate):
            return candidate
    if work and (found := known.canonical(work.id)[0]) and known.has(found):
        return found
    raise NothingMatches(
        f"{text}: no such item",
        cause="no item has this id or address",
        remedy="give the id as kb list items prints it",
        next_command="kb list items",
    )
