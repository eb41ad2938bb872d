"""What is known of some works, and how a line of ``items/`` becomes a row of the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kb.model import Item


@dataclass(frozen=True)
class Seen:
    """What is known of one version of a work."""

    content: str
    source: str
    first_seen: str
    title: str


class View:
    """What is known of some works, and what one source adds to it; nothing is written."""

    def __init__(
        self, follow: Callable[[str], str], works: dict[str, dict[str, Seen]], aliases: dict[str, str]
    ) -> None:
        self._follow = follow
        self._works = works
        self._aliases = aliases
        self.items: list[Item] = []
        """What was added, in order."""

    def resolve(self, work: str, aliases: Sequence[str] = ()) -> tuple[str, str, dict[str, Seen]]:
        """The id under which a work is kept, the key that led there (empty for its own id), and what is known of it."""
        target = self._follow(work)
        if target != work:
            return target, f"merged: {work}", self._works.get(target, {})
        if found := self._works.get(work):
            return work, "", found
        for key in (work, *aliases):
            named = self._follow(self._aliases.get(key, key))
            if named != work and (found := self._works.get(named)):
                return named, key, found
        return work, "", {}

    def add(self, item: Item) -> None:
        """Count an item as known from now on."""
        self.items.append(item)
        seen = Seen(item.content_sha256, item.source, item.first_seen.at, item.title)
        self._works.setdefault(item.id, {})[item.version] = seen
        for alias, work in names_of(item):
            self._aliases.setdefault(alias, work)


def parts(keys: list[str]) -> Iterator[list[str]]:
    """The keys in portions that one question can hold."""
    for start in range(0, len(keys), 500):
        yield keys[start : start + 500]


def row(item: Item) -> tuple[str, ...]:
    """The index's row of an item."""
    dated = item.announced or item.submitted
    return (
        item.id, item.version, item.content_sha256, item.source, item.first_seen.at, dated.at if dated else "",
        item.title, item.first_seen.at[:7],
    )  # fmt: skip


def names_of(item: Item) -> list[tuple[str, str]]:
    """(alias, id) of an item."""
    return [(alias, item.id) for alias in item.aliases if alias != item.id]


def row_of(value: dict[str, Any], month: str) -> tuple[str, ...]:
    """A row from a line of a file that anybody may have written."""
    dates = (value.get(key) for key in ("announced", "submitted"))
    dated = next((date.get("at", "") for date in dates if isinstance(date, dict)), "")
    seen = value.get("first_seen")
    texts = [str(value.get(key, "")) for key in ("id", "version", "content_sha256", "source")]
    return (
        *texts,
        str(seen.get("at", "")) if isinstance(seen, dict) else "",
        str(dated),
        str(value.get("title", "")),
        month,
    )
