"""Sync's private clone is whole, and nothing damaged lies beside it."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.git import Git

TITLE = "the private clone is whole"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    for aside in sorted(patient.cache.glob("*.damaged-*")):
        yield Finding(
            State.WARN,
            f"{aside} was damaged and set aside; the remote has all that was in it",
            f"rm -r {aside}",
        )
    for private in sorted(patient.cache.glob("*.git")):
        done = Git(private).run("fsck", "--connectivity-only", "--no-dangling", "--no-progress")
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["fsck failed"]
            yield Finding(State.WARN, f"{private}: {said[0]}", "kb sync --once (rebuilds it from the remote)")
