"""What sync itself wrote to the branch, read from the branch: a person's change of it is a hold.

Whatever sync pushed last for a path and the branch no longer holds was changed or removed by somebody else. Bringing it
back would undo a decision, so it waits until a person writes ``release`` into the log. Nothing here needs the journal:
batches are known by their trailer, so deleting ``.kb`` loses no hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kb.files import write_atomic
from kb.sync.git import Git

TRAILER = "Kb-Batch"
"""Trailer of every commit of sync."""
MAX_VERSIONS = 50
"""Versions per path that are remembered, newest last."""


@dataclass(frozen=True)
class Written:
    """One version that sync pushed for a path."""

    old: str
    """Blob before, all zeros if there was none."""
    new: str
    """Blob after, all zeros if it was removed."""


@dataclass
class History:
    """Path → versions that sync pushed, oldest first."""

    written: dict[str, list[Written]] = field(default_factory=dict)
    scanned: str = ""
    """Commit up to which the branch was read."""

    def last(self, path: str) -> str | None:
        """Blob that sync pushed last; None if it never pushed this path, all zeros if it removed it."""
        versions = self.written.get(path)
        return versions[-1].new if versions else None


def read_history(git: Git, tip: str, prefix: str, *, email: str, memory: Path, earlier: str = "") -> History:
    """Read which versions of which paths sync wrote, up to ``tip``; only what is new since the last call is read.

    Args:
        git: The private clone.
        tip: Commit of the branch.
        prefix: Folder of the base in the repository, ``""`` or ``"folder/"``.
        email: Committer address of sync.
        memory: File that remembers between runs; a damaged one is ignored.
        earlier: A commit that ``tip`` is known to contain.
    """
    history = _read_memory(memory)
    if history.scanned == tip:
        return history
    if history.scanned != earlier and not git.ok("merge-base", "--is-ancestor", history.scanned, tip):
        history = History()
    span = f"{history.scanned}..{tip}" if history.scanned else tip
    raw = git.output(
        "log", "--topo-order", "--reverse", "--raw", "-z", "--no-abbrev", "--no-renames", "--format=",
        "--fixed-strings", f"--committer=<{email}>", f"--grep={TRAILER}: ", "--all-match", span,
    )  # fmt: skip
    for path, old, new in _changes(raw):
        if path.startswith(prefix):
            versions = history.written.setdefault(path[len(prefix) :], [])
            versions.append(Written(old, new))
            del versions[:-MAX_VERSIONS]
    history.scanned = tip
    _write_memory(memory, history)
    return history


def versions_between(git: Git, start: str, tip: str, paths: Iterable[str]) -> dict[str, set[str]]:
    """Every blob that each path had on the branch after ``start``, people's included."""
    wanted = list(paths)
    found: dict[str, set[str]] = {}
    if not wanted or not start:
        return found
    raw = git.output(
        "log",
        "-m",
        "--raw",
        "-z",
        "--no-abbrev",
        "--no-renames",
        "--format=",
        f"{start}..{tip}",
        "--",
        *wanted,
    )
    for path, old, new in _changes(raw):
        found.setdefault(path, set()).update((old, new))
    return found


def last_change(git: Git, tip: str, path: str) -> str:
    """The newest commit that changed a path; empty where none is known."""
    return git.maybe("log", "-1", "--format=%H", tip, "--", path)


def find_batch(git: Git, batch: str, tip: str) -> str:
    """The commit on the branch that carries a batch id, or ``""``."""
    raw = git.text("log", "--fixed-strings", f"--grep={TRAILER}: {batch}", "--format=%H", "-1", tip)
    return raw.strip()


def _changes(raw: bytes) -> Iterable[tuple[str, str, str]]:
    fields = raw.split(b"\0")
    at = 0
    while at + 1 < len(fields):
        meta = fields[at].lstrip(b"\n")
        if not meta.startswith(b":"):
            at += 1
            continue
        _, _, old, new, _ = meta.split(b" ")[:5]
        yield os.fsdecode(fields[at + 1]), old.decode(), new.decode()
        at += 2


def _read_memory(memory: Path) -> History:
    try:
        value = json.loads(memory.read_bytes())
        written = {
            path: [Written(old, new) for old, new in versions] for path, versions in value["written"].items()
        }
        return History(written, str(value["scanned"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return History()


def _write_memory(memory: Path, history: History) -> None:
    written: Mapping[str, object] = {
        path: [[version.old, version.new] for version in versions]
        for path, versions in history.written.items()
    }
    data = json.dumps({"scanned": history.scanned, "written": written}).encode()
    write_atomic(memory, data, scratch=memory.parent)
