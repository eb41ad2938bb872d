"""What triage has read before, so that a run costs what is new and not what is there: a cache that can be rebuilt.

``.kb/triage.db`` holds each item's newest line, what finds texts that are alike (`kin`), what was decided, and which
drafts hold what. Files in git stay the truth: lines are read from where the last run stopped only if everything before
is unchanged, and anything else rebuilds the cache.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from pydantic import ValidationError

from kb.draft import list_drafts, read_draft
from kb.errors import BadInput
from kb.files import BadLine
from kb.model import Assessment, Decision, Item
from kb.store import MONTH, Base
from kb.triage.kin import SCHEMA as KIN_SCHEMA
from kb.triage.kin import Signed, add_items, sign
from kb.triage.many import WORTHWHILE, spread

Row = TypeVar("Row")
SCHEMA = """
create table meta(format integer not null);
create table read(path text primary key, size integer not null, crc integer not null);
create table decided(id text not null, version text not null, decision text, score real not null, topic text not null,
  is_duplicate integer not null, draft text not null, fresh integer not null, line text not null, primary key(id, version));
create index undrafted on decided(decision, draft);
create index fresh on decided(fresh) where fresh;
create table drafts(path text primary key, stamp text not null, id text not null, stage text not null, date text not null);
create table held(path text not null, draft text not null, n text not null, item text not null, version integer,
  decision text, topics text not null);
create index held_by_item on held(item);
"""
FORMAT = 3


def open_cache(base: Base, *, in_memory: bool = False, anew: bool = False) -> sqlite3.Connection:
    """Open the cache, or a copy of it in memory for a dry run; a damaged, outdated or unwanted one is made anew."""
    path = base.cache / "triage.db"
    if in_memory:
        copy = sqlite3.connect(":memory:")
        if path.is_file() and not anew:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as there:
                there.backup(copy)
            there.close()
        return _checked(copy, None)
    base.cache.mkdir(parents=True, exist_ok=True)
    if anew:
        path.unlink(missing_ok=True)
    return _checked(sqlite3.connect(path), path)


def _checked(there: sqlite3.Connection, path: Path | None) -> sqlite3.Connection:
    try:
        row = there.execute("select format from meta").fetchone()
        if row and row[0] == FORMAT:
            return _tuned(there)
    except sqlite3.DatabaseError:
        pass
    there.close()
    if path is not None:
        path.unlink(missing_ok=True)
    fresh = _tuned(sqlite3.connect(path if path is not None else ":memory:"))
    fresh.executescript(SCHEMA + KIN_SCHEMA)
    fresh.execute("insert into meta values (?)", (FORMAT,))
    fresh.commit()
    return fresh


def _tuned(there: sqlite3.Connection) -> sqlite3.Connection:
    # a cache: a crash may lose it, so it need not wait for the disk
    there.execute("pragma synchronous = off")
    there.execute("pragma cache_size = -65536")
    return there


def new_lines(cache: sqlite3.Connection, base: Base, folder: str) -> Iterator[tuple[Path, bytes]]:
    """Yield (path, line) of what a JSON Lines folder holds beyond the last run, and note that it was read.

    Raises:
        Rewritten: Something that was read before has changed.
    """
    place = base.root / folder
    paths = sorted(p for p in place.iterdir() if MONTH.match(p.name)) if place.is_dir() else []
    known = {path: (size, crc) for path, size, crc in cache.execute("select path, size, crc from read")}
    gone = {name for name in known if name.startswith(f"{folder}/")} - {base.relative(path) for path in paths}
    if gone:
        raise Rewritten(min(gone))
    for path in paths:
        name = base.relative(path)
        size, crc = known.get(name, (0, 0))
        end = size
        with path.open("rb") as file:
            if _crc(file, size) != crc:
                raise Rewritten(name)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # torn by a crash: the next append mends it
                end, crc = end + len(line), zlib.crc32(line, crc)
                if line.strip():
                    yield path, line
        if end > size:
            cache.execute("insert or replace into read values (?, ?, ?)", (name, end, crc))


def _crc(file: BinaryIO, size: int) -> int:
    """Checksum of the first bytes; -1 where there are fewer."""
    crc = 0
    while size:
        data = file.read(min(size, 1 << 20))
        if not data:
            return -1
        size, crc = size - len(data), zlib.crc32(data, crc)
    return crc


class Rewritten(Exception):
    """A file that only grows was changed where it had been read: the cache has to be made anew."""


def refresh_drafts(cache: sqlite3.Connection, base: Base) -> None:
    """Bring what drafts hold up to date; only files whose size or time changed are read."""
    stamps = dict(cache.execute("select path, stamp from drafts").fetchall())
    for found in list_drafts(base):
        name = base.relative(found.path)
        stat = found.path.stat()
        stamp = f"{found.id} {found.stage} {stat.st_size} {stat.st_mtime_ns}"
        if stamps.pop(name, "") == stamp:
            continue
        _forget_draft(cache, name)
        try:
            draft, _ = read_draft(found.path)
        except BadInput:
            draft = None
        date = draft.date if draft else ""
        cache.execute("insert into drafts values (?, ?, ?, ?, ?)", (name, stamp, found.id, found.stage, date))
        for entry in draft.entries if draft else ():
            row = (
                name,
                found.id,
                entry.n,
                entry.item,
                entry.version,
                entry.decision,
                json.dumps(entry.topics),
            )
            cache.execute("insert into held values (?, ?, ?, ?, ?, ?, ?)", row)
    for name in stamps:
        _forget_draft(cache, name)


def _forget_draft(cache: sqlite3.Connection, name: str) -> None:
    cache.execute("delete from drafts where path = ?", (name,))
    cache.execute("delete from held where path = ?", (name,))


class Decided(NamedTuple):
    """A decision of the rules as the cache keeps it."""

    id: str
    version: str
    decision: Decision | None
    score: float
    topic: str
    is_duplicate: bool
    draft: str
    line: str
    """The record as JSON, byte for byte as it stands in its file."""


def as_decided(made: Assessment) -> Decided:
    """What the cache keeps of a decision."""
    return Decided(
        made.item,
        made.version,
        made.decision,
        round(sum(one.weight for one in made.rules), 3),
        made.topics[0] if made.topics else "",
        bool(made.duplicate_of),
        made.draft,
        json.dumps(made.to_json(), ensure_ascii=False, separators=(",", ":")),
    )


def add_decided(cache: sqlite3.Connection, made: Decided, *, fresh: bool = False) -> None:
    """Take in a decision of the rules; the last one per version counts."""
    *rest, line = made
    cache.execute("insert or replace into decided values (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*rest, fresh, line))


def refresh(base: Base, *, in_memory: bool = False) -> sqlite3.Connection:
    """Open the cache and bring it up to date with the files; what has changed under it is read again from the start."""
    cache = open_cache(base, in_memory=in_memory)
    try:
        read_new(cache, base)
    except (Rewritten, sqlite3.DatabaseError):
        cache.close()
        cache = open_cache(base, in_memory=in_memory, anew=True)
        read_new(cache, base)
    cache.commit()
    return cache


def read_new(cache: sqlite3.Connection, base: Base) -> None:
    """Read new lines of items and assessments, and drafts that changed.

    Raises:
        Rewritten: What was read before has changed.
    """
    add_items(cache, _rows(cache, base, "items", _sign_line))
    for made in _rows(cache, base, "assessments", _decide_line):
        add_decided(cache, made)
    refresh_drafts(cache, base)


def _rows(
    cache: sqlite3.Connection,
    base: Base,
    folder: str,
    read: Callable[[None, tuple[Path, bytes]], Row | BadLine | None],
) -> Iterator[Row]:
    """New lines of a folder, read on all cores where they are many; bad ones go to the base's problems."""
    lines = new_lines(cache, base, folder)
    # the first ones tell whether others are worth a process of their own
    first = list(itertools.islice(lines, WORTHWHILE))
    for row in spread(read, itertools.chain(first, lines), _nothing, 2 * len(first) - 1):
        if isinstance(row, BadLine):
            base.problems.append(row)
        elif row is not None:
            yield row


def _nothing() -> None:
    """Reading a line needs no preparation."""


def _sign_line(_: None, found: tuple[Path, bytes]) -> Signed | BadLine:
    path, line = found
    try:
        return sign(Item.model_validate_json(line), line.decode())
    except (ValidationError, UnicodeDecodeError) as error:
        return BadLine(path, 0, str(error).partition("\n")[0])


def _decide_line(_: None, found: tuple[Path, bytes]) -> Decided | BadLine | None:
    path, line = found
    try:
        made = Assessment.model_validate_json(line)
    except ValidationError as error:
        return BadLine(path, 0, str(error).partition("\n")[0])
    return as_decided(made) if made.by == BY_RULES else None


def settle(cache: sqlite3.Connection, base: Base) -> bool:
    """After a run has written its decisions: if the files hold just these, they count as read; False if they do not."""
    fresh = cache.execute("select line from decided where fresh order by id, version")
    try:
        lines = [
            line.rstrip(b"\n") == next(fresh, ("",))[0].encode()
            for _, line in new_lines(cache, base, "assessments")
        ]
    except Rewritten:
        return False
    if not all(lines) or fresh.fetchone():
        return False
    cache.execute("update decided set fresh = 0 where fresh")
    refresh_drafts(cache, base)
    return True


BY_RULES = "rules"
"""`Assessment.by` of the machine's decisions."""


def day_of(at: str, zone: dt.tzinfo) -> dt.date:
    """Day of a moment in a zone; a bare day is itself."""
    moment = dt.datetime.fromisoformat(at)
    return moment.astimezone(zone).date() if moment.tzinfo else moment.date()
