"""What a check is given and what it says.

A check is one module under ``checks`` with ``TITLE`` and ``check(patient)``. It may have ``fix(patient)``, which is
called for ``kb doctor --fix`` and must not be able to lose text. A check reads, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from kb.config import UserSettings
from kb.errors import KbError
from kb.store import Base
from kb.sync.git import Git
from kb.sync.place import Place, find_clone, find_place


class State(StrEnum):
    """How it stands."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing, nothing to do."""
    WARN = "warn"
    """Will go wrong one day."""
    FAIL = "fail"
    """Goes wrong now."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check saw."""

    state: State
    evidence: str
    """What was seen, with numbers and names."""
    fix: str = ""
    """A command that helps."""
    check: str = ""
    """Name of the check; filled in by `examine`."""
    fixable: bool = False
    """True if ``--fix`` does it; filled in by `examine`."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"check": self.check, "state": self.state.value, "evidence": self.evidence, "fix": self.fix,
                "fixable": self.fixable}  # fmt: skip


@dataclass
class Patient:
    """What checks look at; each part is found when first asked for."""

    base: Base
    user: UserSettings

    @cached_property
    def clone_and_prefix(self) -> tuple[Git, str] | None:
        """The clone and the base's folder in it, None outside git or where git refuses to open it."""
        try:
            return find_clone(self.base)
        except KbError:
            return None

    @property
    def clone(self) -> Git | None:
        """The clone the base lies in."""
        return self.clone_and_prefix[0] if self.clone_and_prefix else None

    @property
    def git_folder(self) -> Path | None:
        """The clone's git directory."""
        return Path(self.clone.text("rev-parse", "--absolute-git-dir")) if self.clone else None

    @cached_property
    def place_or_problem(self) -> Place | KbError:
        """The remote as sync finds it, or why it cannot be reached."""
        try:
            return find_place(self.base, self.user)
        except KbError as error:
            return error

    @property
    def place(self) -> Place | None:
        """The remote as sync finds it; None where it cannot be reached."""
        return self.place_or_problem if isinstance(self.place_or_problem, Place) else None

    @property
    def cache(self) -> Path:
        """Sync's own files."""
        return self.base.cache / "sync"
