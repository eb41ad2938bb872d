"""git is there and new enough."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.git import MIN_VERSION, version

TITLE = "git 2.38 or newer"


def check(_: Patient) -> Iterator[Finding]:
    """See the module."""
    found = version()
    if found < MIN_VERSION:
        wanted = ".".join(map(str, MIN_VERSION))
        yield Finding(
            State.FAIL, f"git {'.'.join(map(str, found))} is older than {wanted}", "apt-get install git"
        )
    else:
        yield Finding(State.OK, f"git {'.'.join(map(str, found))}")
