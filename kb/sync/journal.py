"""What sync was doing, on disk before it does it: a crash between a push and its bookkeeping is recognised by it.

One line per step in ``.kb/sync/journal.jsonl``. Deleting it loses nothing but the words "was already pushed": what the
branch holds is compared anew on every run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb import clock
from kb.files import append_lines, read_lines, write_atomic

KEPT = 500
"""Lines kept when the journal is cut."""
PUSHING, PUSHED, DROPPED = "pushing", "pushed", "dropped"


@dataclass(frozen=True)
class Step:
    """One line of the journal."""

    batch: str
    state: str
    tip: str = ""
    commit: str = ""
    paths: int = 0
    at: str = ""


@dataclass(frozen=True)
class Journal:
    """The journal of one base."""

    path: Path

    def write(self, batch: str, state: str, *, tip: str = "", commit: str = "", paths: int = 0) -> None:
        """Append one step; it is on disk when this returns."""
        at = clock.stamp(clock.now())
        value = {"batch": batch, "state": state, "tip": tip, "commit": commit, "paths": paths, "at": at}
        append_lines(self.path, [value], scratch=self.path.parent / "tmp")

    def steps(self) -> list[Step]:
        """Every readable line, oldest first."""
        found = []
        for _, value in read_lines(self.path):
            known: dict[str, Any] = {key: value[key] for key in Step.__dataclass_fields__ if key in value}
            if isinstance(known.get("batch"), str) and isinstance(known.get("state"), str):
                found.append(Step(**known))
        return found

    def unfinished(self) -> Step | None:
        """The last batch if its push was begun and never concluded."""
        steps = self.steps()
        return steps[-1] if steps and steps[-1].state == PUSHING else None

    def cut(self) -> None:
        """Drop old lines; called between batches."""
        steps = self.steps()
        if len(steps) > 2 * KEPT:
            lines = (json.dumps(step.__dict__, ensure_ascii=False) for step in steps[-KEPT:])
            write_atomic(
                self.path, "".join(f"{line}\n" for line in lines).encode(), scratch=self.path.parent / "tmp"
            )
