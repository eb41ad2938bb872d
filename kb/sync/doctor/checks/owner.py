"""The base and its clone belong to the user who runs kb: git opens nobody else's repository."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kb.lock import git_folder
from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "folders belong to this user"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    me = os.geteuid()
    folders = [patient.base.root, *(folder for folder in (git_folder(patient.base.root),) if folder)]
    for folder in folders:
        owner = folder.stat().st_uid
        if owner not in {me, int(os.environ.get("SUDO_UID", me))}:
            yield Finding(
                State.FAIL,
                f"{folder} belongs to user {owner}, kb runs as {me}: git calls that dubious ownership and refuses",
                f"chown -R {me} {folder}, or git config --global --add safe.directory {folder.parent} (never *)",
            )
