"""A shallow clone: merge bases and pushes of unpushed commits can fail."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "the clone has its whole history"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    if patient.clone is not None and patient.clone.maybe("rev-parse", "--is-shallow-repository") == "true":
        yield Finding(
            State.WARN,
            "the clone is shallow: its history is cut off, so unpushed commits may have no common ancestor",
            f"git -C {patient.clone.directory} fetch --unshallow",
        )
