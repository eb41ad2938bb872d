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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kb.ingest import titles
from kb.ingest.likeness import ALIKE, Alike, share
from kb.ingest.seen import Seen, View, names_of, parts, row, row_of
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
VERSION = 4
"""Of the schema; another one is rebuilt."""
ACTS = frozenset({"drop", "release", "merge", "split"})


class Known:
    """The index, opened and brought up to date."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.vanished: set[str] = set()
        """Ids that the index held and the files no longer do."""
        self.is_fresh = False
        """The index was made anew, so what vanished before is not known."""
        self.pending: list[Item] = []
        """Staged and not yet written."""
        self._sizes: dict[str, int] = {}
        self._unsettled: set[str] = set()
        self._notes: dict[str, str] = {}
        self._lock = threading.RLock()
        self._db = self._open(base.cache / "known.sqlite")
        self.apart: set[frozenset[str]] = set()
        """Pairs that a person keeps apart."""
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
        if self.is_fresh:  # nothing is written otherwise: another process may be in the middle of an ingest
            db.executescript(SCHEMA + titles.SCHEMA)
            db.execute(f"pragma user_version = {VERSION}")
        return db

    def close(self) -> None:
        """Close the index; what was staged and not flushed is forgotten."""
        if self._notes:
            if self._db.in_transaction:
                self._db.execute("rollback")
            self._db.executemany("insert or replace into note values(?, ?)", self._notes.items())
        self._db.close()

    def __enter__(self) -> Known:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Following the files

    def follow(self) -> None:
        """Read what was appended past this index."""
        self._follow()

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
            while lines := file.readlines(1 << 22):
                self._take(lines, path.stem)
                for line in lines:
                    if line.endswith(b"\n"):  # a torn last line is read again next time
                        state.update(line)
                        start += len(line)
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
        titles.forget(self._db)
        self._db.executemany("delete from alias where id = ?", ((work,) for work in ids))

    def _take(self, lines: list[bytes], month: str) -> None:
        rows, names = [], []
        for line in lines:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                rows.append(row_of(value, month))
                aliases = value.get("aliases") or []
                names += [
                    (alias, value["id"])
                    for alias in aliases
                    if isinstance(alias, str) and alias != value["id"]
                ]
        self._store(rows, names)

    def _store(self, rows: list[tuple[str, ...]], names: list[tuple[str, str]]) -> None:
        self._db.executemany("insert or replace into work values(?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._db.executemany("insert or ignore into alias values(?, ?)", names)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            if self._db.in_transaction:  # part of what is staged
                yield
                return
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
                self.apart.discard(frozenset((entry.target, entry.to)))
            elif merged.get(entry.target) == entry.to:
                merged.pop(entry.target)
                self.apart.add(frozenset((entry.target, entry.to)))
            else:
                self.apart.add(frozenset((entry.target, entry.to)))
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

    def has_all(self, works: Iterable[str]) -> bool:
        """Whether all of these works are known or were dropped by a person."""
        wanted = [work for work in dict.fromkeys(works) if work not in self.dropped]
        with self._lock:
            for part in parts(wanted):
                query = f"select count(distinct id) from work where id in ({','.join('?' * len(part))})"  # noqa: S608
                if self._db.execute(query, part).fetchone()[0] != len(part):
                    return False
        return True

    def versions(self, work: str) -> dict[str, Seen]:
        """What is known of a work, by version; empty for an unknown one."""
        with self._lock:
            rows = self._db.execute(
                "select version, content, source, first_seen, title from work where id = ?", (work,)
            ).fetchall()
        return {row[0]: Seen(*row[1:]) for row in rows}

    def canonical(self, work: str, aliases: Sequence[str] = ()) -> tuple[str, str]:
        """The id under which a work is kept, and which key led there (empty for its own id)."""
        return self.look_up([work, *aliases]).resolve(work, aliases)[:2]

    def first_seen(self, work: str) -> str:
        """When a work was first met; empty for an unknown one."""
        return min((seen.first_seen for seen in self.versions(work).values()), default="")

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

    # Learning: staged in one transaction, which ends only after the files have everything

    def look_up(self, keys: Iterable[str]) -> View:
        """What is known of works under any of these ids and aliases, read in few questions.

        Each question lets other threads run, and waiting for one's turn again costs more than the answer.
        """
        wanted = list(dict.fromkeys(k for key in keys for k in (key, self.follow_merges(key))))
        aliases: dict[str, str] = {}
        works: dict[str, dict[str, Seen]] = {}
        with self._lock:
            for part in parts(wanted):
                marks = ",".join("?" * len(part))
                aliases.update(self._db.execute(f"select key, id from alias where key in ({marks})", part))  # noqa: S608
            wanted += [self.follow_merges(work) for work in aliases.values()]
            for part in parts(list(dict.fromkeys(wanted))):
                marks = ",".join("?" * len(part))
                query = (
                    f"select id, version, content, source, first_seen, title from work where id in ({marks})"  # noqa: S608
                )
                for work, version, *rest in self._db.execute(query, part):
                    works.setdefault(work, {})[version] = Seen(*rest)
        return View(self.follow_merges, works, aliases)

    def stage(self, items: Sequence[Item]) -> None:
        """Take in items that are not written yet, in a transaction that `flush` ends."""
        with self._lock:
            if not self._db.in_transaction:
                self._db.execute("begin")
            self._store([row(item) for item in items], [pair for item in items for pair in names_of(item)])
        self.pending += items

    def flush(self) -> None:
        """Append everything staged to the base, then end the transaction; takes the write lock.

        A crash before its end leaves files that are ahead of the index, which then reads them.
        """
        if not self.pending:
            if self._db.in_transaction:
                self._db.execute("commit")
            return
        months = {item.first_seen.at[:7] for item in self.pending}
        paths = [self.base.root / "items" / f"{month}.jsonl" for month in sorted(months)]
        with self.base.writing("kb ingest"):
            if any(self._sizes.get(path.name, 0) != _size(path) for path in paths):
                self._follow()  # somebody else appended meanwhile
                self._store(
                    [row(item) for item in self.pending], [n for i in self.pending for n in names_of(i)]
                )
            self.base.append_items(self.pending)
            for path in paths:
                self._sizes[path.name] = _size(path)
                self._unsettled.add(path.name)
        self._db.execute("commit")
        self.pending.clear()

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

    def alike(self, work: str) -> list[Alike]:
        """Works whose titles are like this one's, most alike first; without those that people merged or keep apart."""
        with self._lock:
            titles.fill(self._db)
            title, others = titles.met(self._db, work)
        mine = self.follow_merges(work)
        found = [
            Alike(name, other, round(share(title, other), 3))
            for name, other in others
            if self.follow_merges(name) != mine and frozenset((name, work)) not in self.apart
        ]
        return sorted((one for one in found if one.share >= ALIKE), key=lambda one: (-one.share, one.id))

    def note(self, key: str) -> str:
        """A remark kept in the index."""
        if key in self._notes:
            return self._notes[key]
        row = self._db.execute("select value from note where key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_note(self, key: str, value: str) -> None:
        """Keep a remark in the index; written when the index is closed, also where nothing else is (a dry run)."""
        self._notes[key] = value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
