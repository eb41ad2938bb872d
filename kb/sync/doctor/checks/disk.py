"""Room for the private clone and for atomic writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "there is room on the disk"
LEAST_BYTES = 1 << 30


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    usage = shutil.disk_usage(patient.base.root)
    free = f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.0f} GB"
    if usage.free < LEAST_BYTES:
        yield Finding(
            State.FAIL,
            f"{free}: a write may fail half-way (it then changes nothing)",
            f"du -sh {patient.base.cache}",
        )
    else:
        yield Finding(State.OK, free)
