"""Two locks of a base: a short one around every write, a long one for a network ingest or a sync.

A lock is a kernel lock (free again the moment its process dies, however it dies) plus an owner record, so that whoever
has to wait can be told for whom. They live in the git directory, or in the runtime directory where there is no git.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from kb.clock import stamp
from kb.errors import Busy

SHORT_WAIT_S = 30.0
"""How long a short write waits for another one."""
LONG_WAIT_S = 1.0
"""How long a second network ingest or sync waits before it gives up; the contract says within 2 s."""


@dataclass(frozen=True)
class Owner:
    """Who holds a lock."""

    pid: int
    host: str
    start: str
    """When it took the lock, UTC."""
    what: str
    """Command, such as ``kb ingest``."""
    boot: str = ""
    """Boot id of the host, so that a pid is not taken for one of an earlier boot."""


def git_folder(root: Path) -> Path | None:
    """Return the git directory that ``root`` lies in (following a worktree's ``.git`` file), or None."""
    for folder in (root, *root.parents):
        entry = folder / ".git"
        if entry.is_dir():
            return entry
        if entry.is_file():
            text = entry.read_text(encoding="utf-8", errors="replace").strip()
            if text.startswith("gitdir:"):
                return (folder / text.removeprefix("gitdir:").strip()).resolve()
    return None


def lock_folder(root: Path) -> Path:
    """Return the folder that holds the locks of the base at ``root``; it differs per base."""
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]
    git = git_folder(root.resolve())
    if git is not None and os.access(git, os.W_OK):
        return git / "kb" / name
    runtime = os.environ.get("XDG_RUNTIME_DIR") or str(Path(tempfile.gettempdir()) / f"kb-{os.getuid()}")
    return Path(runtime) / "kb" / name


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


def read_owner(root: Path, name: str) -> Owner | None:
    """Return who last took the lock ``name``, or None where nobody did or the record cannot be read."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Owner(**json.loads((lock_folder(root) / f"{name}.owner").read_text(encoding="utf-8")))
    return None


def is_held(root: Path, name: str) -> bool:
    """Say whether a living process holds the lock ``name`` now; an owner record left by a killed one does not count."""
    import filelock

    path = lock_folder(root) / f"{name}.lock"
    if not path.exists():
        return False
    lock = filelock.FileLock(str(path), timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        return True
    lock.release()
    return False


def is_foreign(owner: Owner) -> bool:
    """True if a lock's owner ran on another machine, whose death nothing here can prove.

    A container that starts anew has another host name but the boot id of its machine, where the kernel lock decides.
    """
    return owner.host != socket.gethostname() and (not owner.boot or owner.boot != _boot_id())


def break_lock(root: Path, name: str) -> Owner | None:
    """Remove the owner record that a run on another machine left; returns it, None if there was none.

    Raises:
        Busy: A living process on this machine holds the lock: end that process instead.
    """
    owner = read_owner(root, name)
    with hold(root, name, "kb lock break", wait_s=0.0, even_foreign=True):
        return owner


@contextlib.contextmanager
def hold(root: Path, name: str, what: str, *, wait_s: float, even_foreign: bool = False) -> Iterator[None]:
    """Hold the lock ``name`` of the base at ``root``.

    Args:
        root: Folder of the base.
        name: ``write`` or ``long``.
        what: Command that takes it, for the owner record.
        wait_s: Seconds to wait for another holder.
        even_foreign: Take it although a run on another machine did not end properly (`break_lock`).

    Raises:
        Busy: Another process still holds it, or a run on another machine may; the message names pid, host and start.
    """
    import filelock

    folder = lock_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(str(folder / f"{name}.lock"), timeout=wait_s)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        owner = read_owner(root, name)
        who = (
            f"{owner.what}, pid {owner.pid} on {owner.host}, since {owner.start}"
            if owner
            else "another process"
        )
        raise Busy(
            f"{what}: the {name} lock is taken",
            cause=f"held by {who}",
            remedy="wait for it to end, or end that process if it hangs",
            next_command="kb lock show",
        ) from error
    record = folder / f"{name}.owner"
    left = read_owner(root, name)
    if left is not None and is_foreign(left) and not even_foreign:
        # on a network file system a kernel lock may not reach other machines, so a record from one is never overruled
        lock.release()
        raise Busy(
            f"{what}: the {name} lock belongs to another machine",
            cause=f"{left.what}, pid {left.pid} on {left.host}, since {left.start}, has not given it back",
            remedy=f"look on {left.host} whether it still runs; if it surely does not, break the lock",
            next_command=f"kb lock break {name}",
        )
    try:
        # a wall clock on purpose: the owner record never enters the base, and KB_NOW must not hide a real age
        import datetime as dt

        start = stamp(dt.datetime.fromtimestamp(time.time(), dt.UTC))
        owner_now = Owner(os.getpid(), socket.gethostname(), start, what, _boot_id())
        record.write_text(json.dumps(asdict(owner_now)), encoding="utf-8")
        yield
    finally:
        record.unlink(missing_ok=True)
        lock.release()
