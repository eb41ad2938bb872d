"""A rebase, merge or lock that somebody left half done in the clone."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.bring import unfinished
from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "nothing is half done in the clone"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    clone, folder = patient.clone, patient.git_folder
    if clone is None or folder is None:
        return
    if name := unfinished(clone):
        yield Finding(
            State.WARN, f"a {name} is in progress in {clone.directory}",
            f"git -C {clone.directory} {name} --continue, or --abort",
        )  # fmt: skip
    lock = folder / "index.lock"
    if lock.exists():
        yield Finding(
            State.WARN,
            f"{lock} exists; sync does not need it, but git add and commit do. Its age proves nothing",
            f"see whether a git or an editor still runs there (fuser {lock}), then remove it by hand",
        )
