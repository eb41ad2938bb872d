"""What lies in the base now: every file with its git blob id, read without touching anybody's index.

Ids are remembered with each file's size, times and inode, so that a run over 20,000 unchanged files reads none of them.
A file changed within the clock's grain of the last look is read again (git calls it racy).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kb.files import write_atomic
from kb.sync.git import Entry
from kb.sync.paths import FOLDERS, SETTING_FILES, SETTINGS, is_ignored, nfc

MAX_FILE_BYTES = 32 << 20
"""Larger files are set aside: hosts refuse them, and a base holds text."""
GRAIN_NS = 100_000_000
"""A file changed this shortly before a look may change again with equal times."""


class WorkFile(NamedTuple):
    """One file of the working base."""

    place: str
    """Where it lies."""
    oid: str
    """Blob id of its bytes."""
    lf_oid: str = ""
    """Blob id with CRLF read as LF; empty where there is no CRLF or it is binary."""

    @property
    def path(self) -> Path:
        """Where it lies."""
        return Path(self.place)

    def same(self, entry: Entry | None) -> bool:
        """True if it holds what ``entry`` holds, line endings aside."""
        return entry is not None and entry.oid in {self.oid, self.lf_oid}


@dataclass
class Snapshot:
    """The working base at one moment."""

    files: dict[str, WorkFile] = field(default_factory=dict)
    """NFC path → file."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Path → why sync never carries it: links, submodules."""
    unusable: dict[str, str] = field(default_factory=dict)
    """Path → why it cannot be carried as it is: unreadable, too large, twins."""

    held_bytes: dict[str, bytes] = field(default_factory=dict)
    """Bytes of files that were read for a plan, so that a later write here cannot mix two versions."""

    def read(self, path: str) -> bytes:
        """Bytes of a file as first read for this snapshot."""
        if path not in self.held_bytes:
            self.held_bytes[path] = self.files[path].path.read_bytes()
        return self.held_bytes[path]

    def is_blind(self, path: str) -> bool:
        """True if nothing can be said of ``path``: it, or a folder above it, could not be looked at."""
        parts = path.split("/")
        above = ("/".join(parts[:n]) for n in range(1, len(parts) + 1))
        return any(name in self.left_out or name in self.unusable for name in above)


def blob_id(data: bytes, algorithm: str) -> str:
    """Id git gives a blob; ``algorithm`` is the repository's, ``sha1`` or ``sha256``."""
    found = hashlib.new(algorithm, usedforsecurity=False)
    found.update(b"blob %d\0" % len(data))
    found.update(data)
    return found.hexdigest()


def take_snapshot(root: Path, tracked: Iterable[str], *, algorithm: str, memory: Path) -> Snapshot:
    """Look through the base.

    Args:
        root: Folder of the base.
        tracked: Paths that git tracks; outside the folders of a base only these are looked at.
        algorithm: ``sha1`` or ``sha256``.
        memory: File that remembers ids between runs; a damaged one is ignored.
    """
    known = _read_memory(memory, algorithm)
    looker = _Looker(os.fspath(root), Snapshot(), known, algorithm, time.time_ns())
    folders = {*FOLDERS, *SETTINGS}
    for folder in (*FOLDERS, *SETTINGS):
        looker.look_below(folder)
    for path in dict.fromkeys((*SETTING_FILES, *tracked)):
        if path.split("/", 1)[0] not in folders and not is_ignored(path):
            looker.look_at(path)
    if looker.kept != known:
        value = json.dumps({"algorithm": algorithm, "files": looker.kept}, ensure_ascii=True).encode()
        write_atomic(memory, value, scratch=memory.parent)
    return looker.found


def _read_memory(memory: Path, algorithm: str) -> dict[str, list[object]]:
    try:
        value = json.loads(memory.read_bytes())
    except (OSError, ValueError):
        return {}
    fits = isinstance(value, dict) and value.get("algorithm") == algorithm
    return dict(value.get("files", {})) if fits else {}


@dataclass
class _Looker:
    """Looks through one base; strings instead of paths, because it handles every file of it."""

    root: str
    found: Snapshot
    known: dict[str, list[object]]
    algorithm: str
    taken: int
    """Nanoseconds since 1970 when the look began."""
    kept: dict[str, list[object]] = field(default_factory=dict)

    def look_below(self, folder: str) -> None:
        """Take every file below a folder."""
        try:
            with os.scandir(f"{self.root}/{folder}") as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except PermissionError as error:
            self.found.unusable[folder] = f"not readable: {error.strerror}"
            return
        for entry in entries:
            if not is_ignored(entry.name):
                self._take(entry, f"{folder}/{entry.name}")

    def _take(self, entry: os.DirEntry[str], path: str) -> None:
        if entry.is_symlink():
            self.found.left_out[path] = "a symbolic link; sync carries files only"
        elif entry.is_file():
            self.add(path, entry.path, entry.stat(follow_symlinks=False))
        elif not entry.is_dir():
            self.found.left_out[path] = "no regular file"
        elif os.path.lexists(f"{entry.path}/.git"):
            self.found.left_out[path] = "another git repository (submodule) lies there"
        else:
            self.look_below(path)

    def look_at(self, path: str) -> None:
        """Take one file, if it is one."""
        place = f"{self.root}/{path}"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            info = os.lstat(place)
            if stat.S_ISREG(info.st_mode):
                self.add(path, place, info)

    def add(self, path: str, place: str, info: os.stat_result) -> None:
        """Take a file whose state is known, reading it only if it may have changed."""
        mark = [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]
        old = self.known.get(path)
        if old is not None and old[:4] == mark:
            oid, lf_oid = str(old[4]), str(old[5])
        elif info.st_size > MAX_FILE_BYTES:
            self.found.unusable[path] = f"it has {info.st_size:,} bytes, more than {MAX_FILE_BYTES:,}"
            return
        else:
            try:
                oid, lf_oid = _ids(Path(place).read_bytes(), self.algorithm)
            except FileNotFoundError:
                return
            except OSError as error:
                self.found.unusable[path] = f"not readable: {error.strerror}"
                return
        if max(info.st_mtime_ns, info.st_ctime_ns) < self.taken - GRAIN_NS:
            self.kept[path] = [*mark, oid, lf_oid]
        name = nfc(path)
        if name in self.found.files or name in self.found.unusable:
            self.found.files.pop(name, None)
            self.found.unusable[name] = (
                "two files have this name, once composed and once decomposed (NFC, NFD)"
            )
            return
        self.found.files[name] = WorkFile(place, oid, lf_oid)


def _ids(data: bytes, algorithm: str) -> tuple[str, str]:
    oid = blob_id(data, algorithm)
    if b"\r\n" not in data or b"\0" in data:
        return oid, ""
    return oid, blob_id(data.replace(b"\r\n", b"\n"), algorithm)
