"""Submodules and nested repositories: sync never carries their pointers."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "no submodule in the base"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    if patient.clone_and_prefix is None:
        return
    clone, prefix = patient.clone_and_prefix
    raw = clone.output("ls-files", "-z", "--stage", "--full-name")
    links = [os.fsdecode(r.split(b"\t", 1)[1]) for r in raw.split(b"\0") if r.startswith(b"160000 ")]
    dirty = {
        line[3:] for line in clone.maybe("status", "--porcelain", "--ignore-submodules=none").splitlines()
    }
    for link in links:
        where = "in the base" if link.startswith(prefix) else "beside the base"
        state = State.WARN if link in dirty else State.NOTE
        what = "has changes of its own" if link in dirty else "is clean"
        yield Finding(
            state, f"submodule {link} {where} {what}; sync never carries its pointer",
            f"git -C {clone.directory / link} status",
        )  # fmt: skip
