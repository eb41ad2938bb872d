"""A detached HEAD: commits made here belong to no branch. Sync itself does not use HEAD's branch."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "HEAD is on a branch"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    if patient.clone is None:
        return
    if patient.clone.maybe("symbolic-ref", "--quiet", "HEAD"):
        return
    at = patient.clone.maybe("rev-parse", "--short", "HEAD") or "nothing"
    yield Finding(
        State.WARN,
        f"HEAD is detached at {at}: a commit made here is on no branch (sync pushes to the branch all the same)",
        f"git -C {patient.clone.directory} switch main",
    )
