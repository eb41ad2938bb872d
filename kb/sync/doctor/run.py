"""Runs the checks that lie in the folder ``checks``; adding one is adding a file."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kb.config import UserSettings
from kb.errors import KbError, NothingMatches
from kb.store import Base
from kb.sync.doctor.contract import Finding, Patient, State

CHECKS = Path(__file__).parent / "checks"


def check_names() -> list[str]:
    """Names of all checks, one file each."""
    return sorted(path.stem for path in CHECKS.glob("*.py") if not path.stem.startswith("_"))


def examine(base: Base, user: UserSettings, *, fix: bool = False, only: Sequence[str] = ()) -> list[Finding]:
    """Run the checks and return what they saw, worst first.

    Args:
        base: The base.
        user: The user's settings.
        fix: Let checks mend what they can mend without losing text.
        only: Names of checks; empty for all.

    Raises:
        NothingMatches: A name in ``only`` is no check.
    """
    if unknown := [name for name in only if name not in check_names()]:
        raise NothingMatches(
            f"{unknown[0]}: no such check",
            cause=f"checks are {', '.join(check_names())}",
            remedy="name one of them",
        )
    patient = Patient(base, user)
    found = [finding for name in only or check_names() for finding in _run(patient, name, fix=fix)]
    order = [State.FAIL, State.WARN, State.NOTE, State.OK]
    return sorted(found, key=lambda finding: (order.index(finding.state), finding.check))


def _run(patient: Patient, name: str, *, fix: bool) -> Iterator[Finding]:
    unit: Any = importlib.import_module(f"kb.sync.doctor.checks.{name}")
    mend = getattr(unit, "fix", None)
    try:
        findings = list(unit.check(patient))
        if fix and mend is not None and any(f.state in {State.WARN, State.FAIL} for f in findings):
            mend(patient)
            findings = [replace(f, evidence=f"mended: {f.evidence}") for f in unit.check(patient)]
    except KbError as error:
        findings = [Finding(State.FAIL, f"{error.what}: {error.cause}", error.remedy)]
    except OSError as error:
        findings = [Finding(State.WARN, f"not checked: {error}")]
    for finding in findings or [Finding(State.OK, unit.TITLE)]:
        needs = finding.state in {State.WARN, State.FAIL}
        yield replace(finding, check=name, fixable=needs and mend is not None)
