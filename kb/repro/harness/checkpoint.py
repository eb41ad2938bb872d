"""Finished cases of a run that is still going, in ``.kb/runs``: a killed sweep goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from kb.files import append_lines, read_lines
from kb.model import Measurement
from kb.store import Base

FLUSH_S = 1.0
"""Longest stretch of work that a kill can cost, beside the case that is running."""


@dataclass
class Checkpoint:
    """Cases by the digest of their parameters; the caller holds the lock of the run."""

    base: Base
    path: Path
    at: str
    """Moment the run began, of the first attempt."""
    enabled: bool
    found: dict[str, list[Measurement]] = field(default_factory=dict)
    _waiting: list[dict[str, object]] = field(default_factory=list)
    _flushed: float = field(default_factory=time.monotonic)

    @classmethod
    def open(cls, base: Base, name: str, at: str, *, enabled: bool) -> Checkpoint:
        """Read what an earlier attempt at the same run left; ``name`` is the digest of all that was declared."""
        path = base.cache / "runs" / f"{name}.jsonl"
        checkpoint = cls(base, path, at, enabled)
        if not enabled:
            return checkpoint
        for number, value in read_lines(path):
            if number == 1 and isinstance(value.get("at"), str):
                checkpoint.at = value["at"]
                continue
            try:
                kept = [Measurement.model_validate(one) for one in value.get("taken", [])]
            except (ValidationError, TypeError):
                continue  # a line of a cache that cannot be read is measured again
            checkpoint.found.setdefault(str(value.get("case")), kept)
        if not checkpoint.found:
            checkpoint.discard()
        return checkpoint

    def add(self, case: str, taken: Sequence[Measurement]) -> None:
        """Note a finished case; it reaches the disk within `FLUSH_S`."""
        if not self.enabled:
            return
        self._waiting.append({"case": case, "taken": [one.to_json() for one in taken]})
        if time.monotonic() - self._flushed >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Bring noted cases to the disk."""
        if not self._waiting:
            return
        head = [] if self.path.exists() else [{"at": self.at}]
        append_lines(self.path, [*head, *self._waiting], scratch=self.base.scratch)
        self._waiting.clear()
        self._flushed = time.monotonic()

    def discard(self) -> None:
        """Forget the run: it is stored, or it was wrong."""
        self._waiting.clear()
        self.path.unlink(missing_ok=True)
