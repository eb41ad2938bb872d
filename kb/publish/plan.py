"""What one run of publish does, decided before a byte is written: files with their bytes, states of blocks, notes."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

from kb.files import sha256
from kb.publish.blocks import BlockState


@dataclass(frozen=True)
class FileChange:
    """One file that a run adds, changes or removes."""

    path: str
    """Below the root of the base."""
    before: bytes | None
    """None: it is added."""
    after: bytes | None
    """None: it is removed."""

    @property
    def action(self) -> str:
        """``add``, ``change`` or ``remove``."""
        return "add" if self.before is None else "remove" if self.after is None else "change"

    def to_json(self) -> dict[str, Any]:
        """What a plan says of it."""
        sums = [None if data is None else sha256(data) for data in (self.before, self.after)]
        return {"path": self.path, "action": self.action, "before": sums[0], "after": sums[1]}

    def diff(self) -> str:
        """Unified diff, for people."""
        old, new = (
            (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
            for data in (self.before, self.after)
        )
        lines = difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}", n=2)
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


@dataclass
class Plan:
    """What one run of publish does, decided before a byte is written."""

    changes: list[FileChange] = field(default_factory=list)
    """In the order they are written."""
    states: dict[str, list[BlockState]] = field(default_factory=dict)
    """Page → its blocks."""
    notes: list[str] = field(default_factory=list)
    """For people: what was left alone, and why."""

    @property
    def held(self) -> list[tuple[str, BlockState]]:
        """Blocks that wait for a person's decision, with their page."""
        return [
            (page, state)
            for page, states in self.states.items()
            for state in states
            if state.state == "held" and not state.asked
        ]

    def to_json(self) -> dict[str, Any]:
        """The plan as data, the same with and without ``--dry-run``."""
        blocks = [
            {"id": s.id, "page": page, "line": s.line, "state": s.state, "why": s.why}
            for page, states in self.states.items()
            for s in states
        ]
        return {"changes": [c.to_json() for c in self.changes], "blocks": blocks, "notes": self.notes}
