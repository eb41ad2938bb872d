"""Bytes on disk that survive a crash at any moment: atomic replacement, appends, JSON Lines.

A file is either its old or its new bytes, never a mixture: new bytes go to a temporary file that is synced and renamed.
Temporary files live in ``.kb/tmp`` of the base, so a killed run leaves nothing in a tracked folder. An append may be
cut short by a crash; the next append moves such a torn tail to ``.kb/torn`` before it writes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.errors import BadInput


@dataclass(frozen=True)
class BadLine:
    """A line of a JSON Lines file that cannot be read; readers skip it and report it."""

    path: Path
    line: int
    """Counted from 1."""
    why: str


def sha256(data: bytes) -> str:
    """Hex digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """Hex digest of a JSON value, independent of key order and spacing; 16 characters name records and runs."""
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())


def sync_folder(folder: Path) -> None:
    """Make a rename or a new name in ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomic(path: Path, data: bytes, *, scratch: Path) -> bool:
    """Replace a file by ``data``, or leave it as it is where it already holds these bytes.

    Args:
        path: File to write; its folder is made. A symbolic link is written through, not replaced.
        data: Its new bytes.
        scratch: Folder for the temporary file, best on the same file system.

    Returns:
        True if anything was written.
    """
    path = path.resolve() if path.is_symlink() else path
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch.mkdir(parents=True, exist_ok=True)
    temporary = scratch / f"{sha256(os.fsencode(path))[:16]}.{os.getpid()}"
    _write_synced(temporary, data)
    _keep_mode(path, temporary)
    try:
        temporary.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        sibling = path.with_name(f".{path.name[:100]}.kb-tmp")
        _write_synced(sibling, data)
        sibling.replace(path)
        temporary.unlink()
    sync_folder(path.parent)
    return True


def _keep_mode(old: Path, new: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        new.chmod(old.stat().st_mode & 0o7777)


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def append_lines(path: Path, values: Iterable[Any], *, scratch: Path) -> int:
    """Append JSON values, one line each, synced; the caller holds the write lock.

    A last line without its newline is completed if it parses; else it is a torn append and moves to ``torn`` beside
    ``scratch``, so that the file equals one that was never torn and no byte is lost.

    Returns:
        Number of lines written.
    """
    payload = [json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n" for value in values]
    if not payload:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("ab+") as out:
        _mend_tail(out, scratch.parent / "torn")
        out.write("".join(payload).encode())
        out.flush()
        os.fsync(out.fileno())
    if is_new:
        sync_folder(path.parent)
    return len(payload)


def _mend_tail(out: Any, torn: Path) -> None:
    size = out.seek(0, os.SEEK_END)
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(1 << 16, start)
        start -= step
        out.seek(start)
        tail = out.read(step) + tail
    tail = tail[tail.rfind(b"\n") + 1 :]
    if not tail:
        return
    try:
        json.loads(tail)
    except (ValueError, RecursionError):
        torn.mkdir(parents=True, exist_ok=True)
        _write_synced(torn / sha256(tail)[:16], tail)
        out.truncate(size - len(tail))
        out.seek(0, os.SEEK_END)
    else:
        out.seek(0, os.SEEK_END)
        out.write(b"\n")


def read_lines(path: Path, bad: list[BadLine] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a JSON Lines file; bad lines are skipped and added to ``bad``.

    A file that does not exist holds no lines.
    """
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return
    with handle:
        for number, raw in enumerate(handle, 1):
            if not raw.strip():
                continue
            try:
                value = json.loads(raw)
            except (ValueError, RecursionError) as error:
                why = f"not JSON: {error}"
            else:
                if isinstance(value, dict):
                    yield number, value
                    continue
                why = f"a {type(value).__name__} where an object is expected"
            if bad is not None:
                bad.append(BadLine(path, number, why))


def read_text(path: Path, *, limit: int) -> str:
    """Read UTF-8 text (a byte order mark is dropped) of at most ``limit`` bytes.

    Raises:
        BadInput: Missing, a folder, too large, binary or not UTF-8.
    """
    return decode_text(read_bytes(path, limit=limit), path.name)


def read_bytes(path: Path, *, limit: int) -> bytes:
    """Read a file of at most ``limit`` bytes.

    Raises:
        BadInput: Missing, no regular file, not readable, or larger.
    """
    try:
        if not path.is_file():
            raise BadInput(f"{path}: not read", cause="there is no such file", remedy="check the path")
        size = path.stat().st_size
        if size > limit:
            raise BadInput(
                f"{path}: not read",
                cause=f"it has {size:,} bytes, more than the limit of {limit:,}",
                remedy="split it, or check that it is the file you meant",
            )
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: not read", cause=str(error), remedy="check its permissions") from error


def decode_text(data: bytes, name: str) -> str:
    """Decode UTF-8 text; ``name`` is used in errors.

    Raises:
        BadInput: Binary or not UTF-8.
    """
    if b"\0" in data:
        raise BadInput(f"{name}: not read", cause="it is a binary file", remedy="give a text file in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{name}:{line}: not read", cause=f"not UTF-8 ({error.reason})", remedy="save it as UTF-8"
        ) from error


def stat_map(root: Path, folders: Iterable[str], skip: Container[str] = ()) -> dict[str, list[int]]:
    """Size, time and inode of every file below some folders, by path below ``root``; cheap to compare.

    Args:
        root: Where the folders are.
        folders: Below ``root``.
        skip: Names of folders that are passed over, at any depth.
    """
    found: dict[str, list[int]] = {}
    cut = len(str(root)) + 1
    stack = [str(root / folder) for folder in folders]
    while stack:
        try:
            entries = list(os.scandir(stack.pop()))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in skip:
                    stack.append(entry.path)
                continue
            with contextlib.suppress(OSError):
                facts = entry.stat()
                found[entry.path[cut:]] = [facts.st_size, facts.st_mtime_ns, facts.st_ino]
    return found


def stat_digest(root: Path, folders: Iterable[str], skip: Container[str] = ()) -> str:
    """Digest of `stat_map`: changes whenever one of the files may have changed."""
    return sha256(repr(sorted(stat_map(root, folders, skip).items())).encode("utf-8", "backslashreplace"))
