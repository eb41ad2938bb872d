"""Network file systems, where a kernel lock may not reach other machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "the base is on a local disk"
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"})


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    mounts = Path("/proc/self/mountinfo")
    if not mounts.exists():
        yield Finding(State.NOTE, "not checked: this system has no /proc/self/mountinfo")
        return
    kind, place = find_mount(
        mounts.read_text(encoding="utf-8", errors="replace"), patient.base.root.resolve()
    )
    if kind in NETWORK:
        yield Finding(
            State.WARN, f"{place} is a network file system ({kind}): locks may not hold between machines",
            "run the job on one machine only; a lock another machine left needs kb lock break",
        )  # fmt: skip
    else:
        yield Finding(State.OK, f"{place} is {kind}")


def find_mount(mountinfo: str, path: Path) -> tuple[str, str]:
    """Type and place of the file system that holds ``path``; format: proc(5), mountinfo."""
    best = ("unknown", "/")
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        fields, kind = head.split(" "), tail.split(" ")[0]
        place = fields[4].encode().decode("unicode_escape") if len(fields) > 4 else "/"  # noqa: PLR2004  5th field
        if path.is_relative_to(place) and len(place) >= len(best[1]):
            best = (kind, place)
    return best
