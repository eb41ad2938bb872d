"""What sync could not carry."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.queue import ASIDE, HELD, WAITING, load_queue

TITLE = "nothing waits in the queue"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    items = load_queue(patient.cache).items
    for state in (HELD, ASIDE, WAITING):
        found = [item for item in items if item.state == state]
        if found:
            first = f"{found[0].path}: {found[0].reason}"
            yield Finding(State.WARN, f"{len(found)} {state}, the first {first}", "kb queue list")
