"""What the base already knows, by id, version, alias and source: an index of ``items/`` that is safe to delete.

The files are the truth. The index (SQLite under ``.kb/``) follows them: a file that only grew is read from where reading
ended, any other change reads it anew. So a run costs the same whether the base holds ten items or a hundred thousand.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.model import Item
from kb.store import MONTH, Base

SCHEMA = """
create table if not exists file(name text primary key, size integer, mtime integer, inode integer, digest text);
create table if not exists work(id text, version text, content text, source text, first_seen text, dated text,
                                title text, month text, primary key(id, version)) without rowid;
create index if not exists by_source on work(source, dated);
create index if not exists by_month on work(month);
create table if not exists alias(key text primary key, id text) without rowid;
create table if not exists note(key text primary key, value text) without rowid;
"""
VERSION = 3
"""Of the schema; another one is rebuilt."""
ACTS = frozenset({"drop", "release", "merge", "split"})


@dataclass(frozen=True)
class Seen:
    """What is known of one version of a work."""

    content: str
    source: str
    first_seen: str
    title: str


class Known:
    """The index, opened and brought up to date."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.vanished: set[str] = set()
        """Ids that the index held and the files no longer do."""
        self.is_fresh = False
        """The index was made anew, so what vanished before is not known."""
        self._sizes: dict[str, int] = {}
        self._unsettled: set[str] = set()
        self._lock = threading.RLock()
        self._db = self._open(base.cache / "known.sqlite")
        self.dropped, self._merged = self._acts()
        self._follow()

    def _open(self, path: Path) -> sqlite3.Connection:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return self._connect(path)
        except sqlite3.DatabaseError:  # damaged, or of another version: the files have everything
            for suffix in ("", "-journal", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            return self._connect(path)

    def _connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
        db.execute("pragma journal_mode = wal")  # survives the death of the process
        db.execute("pragma synchronous = off")  # what a power cut loses is read again from the files
        version = db.execute("pragma user_version").fetchone()[0]
        if version not in {0, VERSION}:
            db.close()
            raise sqlite3.DatabaseError("another version")
        self.is_fresh = version == 0
        db.executescript(SCHEMA)
        db.execute(f"pragma user_version = {VERSION}")
        return db

    def close(self) -> None:
        """Close the index."""
        self._db.close()

    def __enter__(self) -> Known:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Following the files

    def _follow(self) -> None:
        folder = self.base.root / "items"
        paths = (
            {p.name: p for p in sorted(folder.iterdir()) if MONTH.match(p.name)} if folder.is_dir() else {}
        )
        stored = {
            row[0]: row[1:] for row in self._db.execute("select name, size, mtime, inode, digest from file")
        }
        for name in stored.keys() - paths.keys():
            with self._writing():
                self._forget(name)
                self._db.execute("delete from file where name = ?", (name,))
        for name, path in paths.items():
            stat = path.stat()
            self._sizes[name] = stat.st_size
            if stored.get(name, (None,) * 4)[:3] != (stat.st_size, stat.st_mtime_ns, stat.st_ino):
                self._read(path, stored.get(name))
        self.vanished = {work for work in self.vanished if not self.has(work)}

    def _read(self, path: Path, before: tuple[Any, ...] | None) -> None:
        state = hashlib.blake2b(digest_size=16)
        with path.open("rb") as file, self._writing():
            start = 0
            if before is not None and path.stat().st_size >= before[0]:
                head = file.read(before[0])
                if hashlib.blake2b(head, digest_size=16).hexdigest() == before[3] and head.endswith(b"\n"):
                    start = before[0]
                    state.update(head)
                del head
            if not start:
                file.seek(0)
                self._forget(path.name)
            for line in file:
                if line.endswith(b"\n"):
                    state.update(line)
                    start += len(line)
                    self._take(line, path.stem)
                else:
                    self._take(line, path.stem)  # torn or unfinished: read again next time
            stat = path.stat()
            self._db.execute(
                "insert or replace into file values(?, ?, ?, ?, ?)",
                (
                    path.name,
                    start,
                    stat.st_mtime_ns if start == stat.st_size else 0,
                    stat.st_ino,
                    state.hexdigest(),
                ),
            )

    def _forget(self, name: str) -> None:
        month = Path(name).stem
        ids = [row[0] for row in self._db.execute("select distinct id from work where month = ?", (month,))]
        self.vanished.update(ids)
        self._db.execute("delete from work where month = ?", (month,))
        self._db.executemany("delete from alias where id = ?", ((work,) for work in ids))

    def _take(self, line: bytes, month: str) -> None:
        try:
            value = json.loads(line)
        except ValueError:
            return
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            return
        dated = next(
            (value[k]["at"] for k in ("announced", "submitted") if isinstance(value.get(k), dict)), ""
        )
        first_seen = value.get("first_seen")
        self._store(
            value["id"],
            str(value.get("version", "")),
            str(value.get("content_sha256", "")),
            str(value.get("source", "")),
            str(first_seen.get("at", "")) if isinstance(first_seen, dict) else "",
            str(dated),
            str(value.get("title", "")),
            month,
            [alias for alias in value.get("aliases", []) if isinstance(alias, str)],
        )

    def _store(
        self, work: str, version: str, content: str, source: str, seen: str, dated: str, title: str, month: str,
        aliases: Iterable[str],
    ) -> None:  # fmt: skip
        row = (work, version, content, source, seen, dated, title, month)
        self._db.execute("insert or replace into work values(?, ?, ?, ?, ?, ?, ?, ?)", row)
        self._db.executemany(
            "insert or ignore into alias values(?, ?)", ((alias, work) for alias in aliases if alias != work)
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("begin")
            try:
                yield
            except BaseException:
                self._db.execute("rollback")
                raise
            self._db.execute("commit")

    # The log: what people dropped, merged and split

    def _acts(self) -> tuple[set[str], dict[str, str]]:
        dropped: set[str] = set()
        merged: dict[str, str] = {}
        for entry in self.base.log():
            if entry.act not in ACTS:
                continue
            if entry.act == "drop":
                dropped.add(entry.target)
            elif entry.act == "release":
                dropped.discard(entry.target)
            elif entry.act == "merge":
                merged[entry.target] = entry.to
            elif merged.get(entry.target) == entry.to:
                merged.pop(entry.target)
        return dropped, merged

    # Questions

    def has(self, work: str, version: str = "") -> bool:
        """Whether a work, or one version of it, is known."""
        with self._lock:
            if version:
                found = self._db.execute("select 1 from work where id = ? and version = ?", (work, version))
            else:
                found = self._db.execute("select 1 from work where id = ? limit 1", (work,))
            return found.fetchone() is not None

    def get(self, work: str, version: str) -> Seen | None:
        """What is known of one version."""
        with self._lock:
            row = self._db.execute(
                "select content, source, first_seen, title from work where id = ? and version = ?",
                (work, version),
            ).fetchone()
        return Seen(*row) if row else None

    def first_seen(self, work: str) -> str:
        """When a work was first met; empty for an unknown one."""
        with self._lock:
            row = self._db.execute("select min(first_seen) from work where id = ?", (work,)).fetchone()
        return str(row[0] or "")

    def canonical(self, work: str, aliases: Iterable[str] = ()) -> tuple[str, str]:
        """The id under which a work is kept, and which key led there (empty for its own id)."""
        target = self.follow_merges(work)
        if target != work:
            return target, f"merged: {work}"
        if self.has(work):
            return work, ""
        with self._lock:
            for key in (work, *aliases):
                row = self._db.execute("select id from alias where key = ?", (key,)).fetchone()
                if row or (key != work and not key.startswith("guid:") and self.has(key)):
                    return self.follow_merges(row[0] if row else key), key
        return work, ""

    def follow_merges(self, work: str) -> str:
        """The work that this one was merged into, or itself."""
        seen = {work}
        while (following := self._merged.get(work)) and following not in seen:
            seen.add(following)
            work = following
        return work

    def merged_into(self, work: str) -> str:
        """The work that a person merged this one into; empty for none."""
        return self._merged.get(work, "")

    def source_facts(self, source: str) -> tuple[int, str, str]:
        """Of a source: how many versions it gave, its newest date, and when it was first followed."""
        with self._lock:
            row = self._db.execute(
                "select count(*), max(dated), min(first_seen) from work where source = ?", (source,)
            ).fetchone()
        return int(row[0]), str(row[1] or ""), str(row[2] or "")

    # Learning

    def append(self, items: list[Item]) -> None:
        """Append items to the base and take them in; the caller holds the write lock."""
        months = {item.first_seen.at[:7] for item in items}
        paths = [self.base.root / "items" / f"{month}.jsonl" for month in sorted(months)]
        if any(self._sizes.get(path.name, 0) != _size(path) for path in paths):
            self._follow()  # somebody else appended meanwhile
        self.base.append_items(items)
        with self._writing():
            for item in items:
                dated = item.announced or item.submitted
                self._store(
                    item.id, item.version, item.content_sha256, item.source, item.first_seen.at,
                    dated.at if dated else "", item.title, item.first_seen.at[:7], item.aliases,
                )  # fmt: skip
        for path in paths:
            self._sizes[path.name] = _size(path)
            self._unsettled.add(path.name)

    def settle(self) -> None:
        """Note that the files were read to their ends, so that the next run reads nothing twice."""
        for name in sorted(self._unsettled):
            path = self.base.root / "items" / name
            data = path.read_bytes()
            stat = path.stat()
            if len(data) == stat.st_size == self._sizes[name] and data.endswith(b"\n"):
                row = (
                    name,
                    len(data),
                    stat.st_mtime_ns,
                    stat.st_ino,
                    hashlib.blake2b(data, digest_size=16).hexdigest(),
                )
                self._db.execute("insert or replace into file values(?, ?, ?, ?, ?)", row)
        self._unsettled.clear()

    def note(self, key: str) -> str:
        """A remark kept in the index."""
        row = self._db.execute("select value from note where key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_note(self, key: str, value: str) -> None:
        """Keep a remark in the index."""
        self._db.execute("insert or replace into note values(?, ?)", (key, value))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
