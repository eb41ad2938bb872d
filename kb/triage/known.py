"""What triage has read before, so that a run costs what is new and not what is there: a cache that can be rebuilt.

``.kb/triage.db`` holds where each item's newest line stands, signatures to find texts that are alike, what was decided,
and which drafts hold what. Files in git stay the truth: lines are read from where the last run stopped only if everything
before is unchanged, and anything else rebuilds the cache.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kb.draft import list_drafts, read_draft
from kb.errors import BadInput
from kb.files import BadLine
from kb.model import Assessment, Item, Record
from kb.store import MONTH, Base
from kb.tables import newest_version
from kb.texts import text_of
from kb.triage.reading import Neighbour
from kb.triage.sameness import bands, signature, similarity, title_key

R = TypeVar("R", bound=Record)
SCHEMA = """
create table meta(format integer not null);
create table read(path text primary key, size integer not null, crc integer not null);
create table items(seq integer primary key, id text not null unique, version text not null, first_seen text not null,
  title text not null, title_key text not null, source text not null, line text not null, signature blob);
create table names(name text not null, id text not null, primary key(name, id)) without rowid;
create index by_title on items(title_key) where title_key != '';
create table bands(key integer not null, slot integer not null, seq integer not null, primary key(key, slot)) without rowid;
create index bands_of on bands(seq);
create table decided(id text not null, version text not null, decision text, score real not null, topic text not null,
  is_duplicate integer not null, draft text not null, fresh integer not null, line text not null, primary key(id, version))
  without rowid;
create index undrafted on decided(decision, draft);
create index fresh on decided(fresh) where fresh;
create table drafts(path text primary key, stamp text not null, id text not null, stage text not null, date text not null);
create table held(path text not null, draft text not null, n text not null, item text not null, version integer,
  decision text, topics text not null);
create index held_by_item on held(item);
"""
FORMAT = 2
MAX_MATES = 24
"""Texts of one band that are kept; a band with more is boilerplate that says nothing about sameness."""
MOST_ALIKE = 8
"""Items with most bands in common that are compared in full."""
ADD_BAND = """insert into bands select ?1, coalesce(max(slot) + 1, 0), ?2 from bands where key = ?1
    having coalesce(max(slot) + 1, 0) < ?3"""
MATES = """select id, title, title_key, signature, first_seen from items
    where title_key = ? and title_key != '' order by first_seen, id limit ?"""


def open_cache(base: Base, *, in_memory: bool = False) -> sqlite3.Connection:
    """Open the cache, or a copy of it in memory for a dry run; a damaged or outdated one is made anew."""
    path = base.cache / "triage.db"
    if in_memory:
        copy = sqlite3.connect(":memory:")
        if path.is_file():
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as there:
                there.backup(copy)
            there.close()
        return _checked(copy, None)
    base.cache.mkdir(parents=True, exist_ok=True)
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
    fresh.executescript(SCHEMA)
    fresh.execute("insert into meta values (?)", (FORMAT,))
    fresh.commit()
    return fresh


def _tuned(there: sqlite3.Connection) -> sqlite3.Connection:
    # a cache: a crash may lose it, so it need not wait for the disk
    there.execute("pragma synchronous = off")
    there.execute("pragma cache_size = -65536")
    return there


def new_lines(cache: sqlite3.Connection, base: Base, folder: str) -> Iterator[tuple[Path, bytes]]:
    """Yield (path, line) of what a JSON Lines folder holds beyond the last run.

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
        data = path.read_bytes()
        size, crc = known.get(name, (0, 0))
        if len(data) < size or zlib.crc32(data[:size]) != crc:
            raise Rewritten(name)
        end = data.rfind(b"\n") + 1
        if end <= size:
            continue
        yield from ((path, line) for line in data[size:end].split(b"\n") if line.strip())
        cache.execute(
            "insert or replace into read values (?, ?, ?)", (name, end, zlib.crc32(data[size:end], crc))
        )


class Rewritten(Exception):
    """A file that only grows was changed where it had been read: the cache has to be made anew."""


def parse(base: Base, path: Path, line: bytes, kind: type[R]) -> R | None:
    """Read one line; a bad one goes to the base's problems."""
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        base.problems.append(BadLine(path, 0, str(error).partition("\n")[0]))
        return None


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


@dataclass(frozen=True)
class Kin:
    """What an item shares with earlier ones."""

    duplicate_of: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]


SAME_TEXT = 0.8
"""From here on two texts are one text."""
SAME_TITLE = 0.3
"""Two texts with one title are one work from here on."""
OTHER_TEXT = 0.05
"""Below this, two texts with one short title are two works."""
LONG_TITLE = 40
"""Characters of a title that two works hardly share by chance."""
LEAST_SIMILAR = 0.2
"""Less is not reported."""


def add_items(cache: sqlite3.Connection, items: Iterable[Item]) -> None:
    """Take items in; of each only the newest version counts."""
    for item in items:
        row = cache.execute("select seq, version from items where id = ?", (item.id,)).fetchone()
        if row and newest_version((row[1], item.version)) != item.version:
            continue
        if row:
            cache.execute("delete from bands where seq = ?", (row[0],))
            cache.execute("delete from items where seq = ?", (row[0],))
        signed = signature(f"{item.title} {item.summary}")
        values = (
            row[0] if row else None, item.id, item.version, item.first_seen.at, item.title, title_key(item.title),
            item.source, item.model_dump_json(), signed,
        )  # fmt: skip
        seq = cache.execute("insert into items values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values).lastrowid
        cache.executemany(ADD_BAND, [(key, seq, MAX_MATES) for key in bands(signed)])
        names = {name for name in _names(item) if name != item.id}
        cache.executemany("insert or ignore into names values (?, ?)", [(name, item.id) for name in names])


def find_kin(cache: sqlite3.Connection, item: Item) -> Kin:
    """Earlier items that are the same work, or say much the same; earlier is by first sight, then by id."""
    row = cache.execute("select signature, title_key from items where id = ?", (item.id,)).fetchone()
    signed, key = row or (signature(f"{item.title} {item.summary}"), title_key(item.title))
    mates = {
        name: (title, other_key, other or b"")
        for name, title, other_key, other, first_seen in _mates(cache, signed, key)
        if (first_seen, name) < (item.first_seen.at, item.id)
    }
    near = {name: similarity(signed, other) for name, (_, _, other) in mates.items()}
    same = {n for n, (_, k, other) in mates.items() if _is_same(near[n], key, k, bool(signed and other))}
    same |= set(_by_name(cache, item)) - {item.id}
    ordered = sorted(mates, key=lambda name: (-near[name], name))
    neighbours = [
        Neighbour(n, near[n], mates[n][0]) for n in ordered if near[n] >= LEAST_SIMILAR and n not in same
    ]
    return Kin(tuple(sorted(same)), tuple(neighbours[:MAX_MATES]))


def _mates(
    cache: sqlite3.Connection, signed: bytes, key: str
) -> Iterator[tuple[str, str, str, bytes | None, str]]:
    """Items that share a title, or most bands with a text."""
    if key:
        yield from cache.execute(MATES, (key, MAX_MATES))
    keys = bands(signed)
    if keys:
        marks = ",".join("?" * len(keys))
        query = f"""select i.id, i.title, i.title_key, i.signature, i.first_seen from items i join (
            select seq from bands where key in ({marks}) group by seq order by count(*) desc, seq limit {MOST_ALIKE}
            ) using (seq)"""  # noqa: S608  only question marks and a constant
        yield from cache.execute(query, keys)


def _is_same(near: float, key: str, other_key: str, comparable: bool) -> bool:  # noqa: FBT001  two private lines
    if near >= SAME_TEXT:
        return True
    if not key or key != other_key:
        return False
    return near >= SAME_TITLE or not comparable or (len(key) >= LONG_TITLE and near >= OTHER_TEXT)


def _by_name(cache: sqlite3.Connection, item: Item) -> Iterator[str]:
    """Earlier items that another name of this one points to, or that name this one as theirs."""
    names = _names(item)
    marks = ",".join("?" * len(names))
    query = f"""select id, first_seen from items where id in ({marks})
        or id in (select id from names where name in ({marks}))"""  # noqa: S608  only question marks
    for name, first_seen in cache.execute(query, (*names, *names)):
        if (first_seen, name) < (item.first_seen.at, item.id):
            yield name


def _names(item: Item) -> list[str]:
    # a curator's entry lists every link of its text; only a source's own aliases are names of the same work
    aliases = () if item.source.startswith("draft:") else item.aliases
    return [name for name in (item.id, item.url, *aliases) if name]


def add_assessment(cache: sqlite3.Connection, made: Assessment, *, fresh: bool = False) -> None:
    """Take in a decision of the rules; the last one per version counts."""
    score = round(sum(one.weight for one in made.rules), 3)
    topic = made.topics[0] if made.topics else ""
    values = (
        made.item, made.version, made.decision, score, topic, bool(made.duplicate_of), made.draft, fresh,
        made.model_dump_json(by_alias=True),
    )  # fmt: skip
    cache.execute("insert or replace into decided values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def refresh(base: Base, *, in_memory: bool = False) -> sqlite3.Connection:
    """Open the cache and bring it up to date with the files; what has changed under it is read again from the start."""
    cache = open_cache(base, in_memory=in_memory)
    try:
        read_new(cache, base)
    except (Rewritten, sqlite3.DatabaseError):
        cache.close()
        (base.cache / "triage.db").unlink(missing_ok=True)
        cache = open_cache(base, in_memory=in_memory)
        read_new(cache, base)
    cache.commit()
    return cache


def read_new(cache: sqlite3.Connection, base: Base) -> None:
    """Read new lines of items and assessments, and drafts that changed.

    Raises:
        Rewritten: What was read before has changed.
    """
    for path, line in new_lines(cache, base, "items"):
        item = parse(base, path, line, Item)
        if item is not None:
            add_items(cache, [item])
    for path, line in new_lines(cache, base, "assessments"):
        made = parse(base, path, line, Assessment)
        if made is not None and made.by == BY_RULES:
            add_assessment(cache, made)
    refresh_drafts(cache, base)


BY_RULES = "rules"
"""`Assessment.by` of the machine's decisions."""


def day_of(at: str, zone: dt.tzinfo) -> dt.date:
    """Day of a moment in a zone; a bare day is itself."""
    moment = dt.datetime.fromisoformat(at)
    return moment.astimezone(zone).date() if moment.tzinfo else moment.date()


def body_of(base: Base, item: Item) -> str:
    """Extracted text of an item where the cache has it, else nothing: then its summary is what there is."""
    return text_of(base, item.content_sha256)
