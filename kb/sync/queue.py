"""What waits: changes a person has to decide on, and changes that cannot be applied as they are.

``.kb/sync/queue.json`` is rewritten by every sync from what it finds; only tries and a person's ``drop`` are memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kb.errors import NothingMatches
from kb.files import digest, write_atomic
from kb.sync.planned import Change, Held

MAX_TRIES = 3
"""Pushes of one item that the server refuses before it is set aside."""
HELD, ASIDE, WAITING = "held", "set-aside", "waiting"


@dataclass(frozen=True)
class Waiting:
    """One item of the queue."""

    id: str
    """Digest of path and block."""
    path: str
    state: str
    """``held``: a person decides. ``set-aside``: it cannot be applied. ``waiting``: not tried yet or again."""
    reason: str
    block: str = ""
    work: str = ""
    """Blob here that waits; another one is another try."""
    tries: int = 0
    """Pushes of it the server refused."""


@dataclass
class Queue:
    """The queue of one base."""

    path: Path
    items: list[Waiting] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    """(path, blob here) that a person dropped; not planned until the file changes again."""

    def refused(self, change: Change) -> Waiting | None:
        """The item under which the server's refusals of this very change are remembered."""
        for item in self.items:
            if item.path == change.path and item.tries and item.work == (change.work or change.old):
                return item
        return None

    def is_dropped(self, path: str, work: str) -> bool:
        """True if a person dropped this version of a file."""
        return (path, work) in self.dropped

    def renew(self, held: Iterable[Held], refused: Iterable[Waiting]) -> None:
        """Replace the items by what this run found."""
        fresh = [
            Waiting(item_id(h.path, h.block), h.path, HELD if h.person else ASIDE, h.reason, h.block, h.work)
            for h in held
        ]
        known = {item.id: item for item in [*fresh, *refused]}
        self.items = sorted(known.values(), key=lambda item: (item.state, item.path, item.block))

    def retry(self, names: Sequence[str]) -> list[Waiting]:
        """Let the next sync try items again.

        Raises:
            NothingMatches: A name is neither an id nor a path of the queue.
        """
        chosen = self._choose(names)
        self.items = [replace(i, state=WAITING, tries=0) if i in chosen else i for i in self.items]
        return chosen

    def drop(self, names: Sequence[str]) -> list[Waiting]:
        """Forget this version of items: they are not planned again until their files change.

        Raises:
            NothingMatches: As `retry`.
        """
        chosen = self._choose(names)
        self.items = [item for item in self.items if item not in chosen]
        self.dropped = sorted({*self.dropped, *((item.path, item.work) for item in chosen)})
        return chosen

    def _choose(self, names: Sequence[str]) -> list[Waiting]:
        chosen = []
        for name in names:
            found = [item for item in self.items if name in {item.id, item.path, item.block}]
            if not found:
                raise NothingMatches(
                    f"{name}: not in the queue",
                    cause="no item has this id, path or block",
                    remedy="take one from the list",
                    next_command="kb queue list",
                )
            chosen.extend(found)
        return chosen

    def save(self) -> None:
        """Write the queue; an unchanged one changes no byte."""
        value = {
            "items": [asdict(item) for item in self.items],
            "dropped": [list(pair) for pair in self.dropped],
        }
        data = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        write_atomic(self.path, data.encode("utf-8", "surrogateescape"), scratch=self.path.parent / "tmp")


def item_id(path: str, block: str = "") -> str:
    """Id of an item."""
    return digest([path, block])[:12]


def load_queue(folder: Path) -> Queue:
    """Read the queue of a base; an absent or damaged one is empty."""
    path = folder / "queue.json"
    try:
        value: Any = json.loads(path.read_bytes())
        items = [Waiting(**item) for item in value["items"]]
        dropped = [(str(one), str(other)) for one, other in value["dropped"]]
    except (OSError, ValueError, KeyError, TypeError):
        return Queue(path)
    return Queue(path, items, dropped)
