"""core.autocrlf without a rule in .gitattributes rewrites every line of every file on its way in and out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from kb.sync.doctor.checks.union_merge import rules
from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "line endings stay as they are"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    if patient.clone is None:
        return
    done = subprocess.run(
        ["git", "-C", str(patient.clone.directory), "config", "core.autocrlf"],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    value = done.stdout.strip()
    if value in {"true", "input"} and not rules(patient, "text"):
        yield Finding(
            State.WARN, f"core.autocrlf is {value} and .gitattributes has no text rule: lines change by the machine",
            "add the line '* text=auto eol=lf' to .gitattributes and commit it",
        )  # fmt: skip
