"""Locks of the base: held by whom, left by which other machine."""

from __future__ import annotations

from collections.abc import Iterator

from kb.lock import is_foreign, is_held, read_owner
from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "no lock is in the way"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    for name in ("write", "long"):
        owner = read_owner(patient.base.root, name)
        if owner is not None and is_foreign(owner):
            yield Finding(
                State.FAIL, f"the {name} lock belongs to {owner.what} on {owner.host} since {owner.start}",
                f"look there; if it is dead, kb lock break {name}",
            )  # fmt: skip
        elif owner is not None and is_held(patient.base.root, name):
            yield Finding(
                State.NOTE, f"the {name} lock is held by {owner.what}, pid {owner.pid}, since {owner.start}"
            )
