"""Checks of a base: one file each, found by looking in this folder.

A unit has ``CODES`` (code → what it means) and ``check(subject)``, which yields findings. It reads, and never writes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from kb.triage.findings import Finding, Subject

HERE = Path(__file__).parent
COMMON_CODES = {"unreadable": "a file that cannot be read as what it should be"}
"""Codes that no single unit owns."""


class Check(Protocol):
    """A unit."""

    CODES: dict[str, str]

    def check(self, subject: Subject) -> Iterable[Finding]:
        """Yield what is wrong."""
        ...


def units() -> Iterator[tuple[str, Check]]:
    """Every unit of the folder, by name."""
    for path in sorted(HERE.glob("[a-z]*.py")):
        yield path.stem, importlib.import_module(f"{__name__}.{path.stem}")


def codes() -> dict[str, str]:
    """Every code with what it means."""
    return COMMON_CODES | {code: why for _, unit in units() for code, why in unit.CODES.items()}


def run_checks(subject: Subject) -> list[Finding]:
    """Run every unit; findings by file and line, each once."""
    found = [finding for _, unit in units() for finding in unit.check(subject)]
    found.extend(subject.unreadable)
    return sorted(set(found), key=lambda f: (f.file, f.line, f.code, f.message))
