"""Which items are the same work, or say much the same: looked up by names, titles and signatures, never by reading all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kb.model import Item
from kb.tables import newest_version
from kb.triage.reading import Neighbour
from kb.triage.sameness import BANDS, bands, signature, similarity, title_key

SCHEMA = """
create table items(seq integer primary key, id text not null unique, version text not null, first_seen text not null,
  title text not null, title_key text not null, source text not null, names text not null, line text not null,
  signature blob not null);
create index by_title on items(title_key, first_seen, id) where title_key != '';
create table names(name text not null, id text not null, primary key(name, id)) without rowid;
create table bands(key integer not null, seq integer not null, primary key(key, seq)) without rowid;
"""
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
MAX_MATES = 24
"""Texts of one band, or one title, that are looked at; a band with more is boilerplate that says nothing about sameness."""
MOST_ALIKE = 8
"""Items with most bands in common that are compared in full."""
BATCH = 5_000
"""Items whose bands are written together: sorted, they meet the index in order."""
_ADD = "insert into items values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MATES = """select id, title, title_key, signature, first_seen from items
    where title_key = ? and title_key != '' order by first_seen, id limit ?"""
_IN_BAND = f"select seq from (select seq from bands where key = ? order by seq limit {MAX_MATES})"  # noqa: S608
_ALIKE = f"""select id, title, title_key, signature, first_seen from items join (
    select seq, count(*) as num from ({" union all ".join([_IN_BAND] * BANDS)}) group by seq order by num desc, seq
    limit {MOST_ALIKE}) using (seq) order by num desc, seq"""  # noqa: S608  constants and question marks


class Signed(NamedTuple):
    """An item as the cache keeps it, made without looking at the cache."""

    id: str
    version: str
    first_seen: str
    title: str
    title_key: str
    source: str
    names: str
    """Addresses and ids of the same work, one a line; its own id is not among them."""
    line: str
    signature: bytes


@dataclass(frozen=True)
class Kin:
    """What an item shares with earlier ones."""

    duplicate_of: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]


def sign(item: Item, line: str) -> Signed:
    """What the cache keeps of an item; ``line`` is the record as JSON."""
    names = dict.fromkeys(name for name in _names(item) if name != item.id)
    return Signed(
        item.id,
        item.version,
        item.first_seen.at,
        item.title,
        title_key(item.title),
        item.source,
        "\n".join(" ".join(name.split()) for name in names),
        line,
        signature(f"{item.title} {item.summary}"),
    )


def _names(item: Item) -> list[str]:
    # a curator's entry lists every link of its text; only a source's own aliases are names of the same work
    aliases = () if item.source.startswith("draft:") else item.aliases
    return [name for name in (item.url, *aliases) if name]


def add_items(cache: sqlite3.Connection, items: Iterable[Signed]) -> None:
    """Take items in; of each only the newest version counts."""
    keys: list[tuple[int, int]] = []
    for one in items:
        there = cache.execute("select seq, version, signature from items where id = ?", (one.id,)).fetchone()
        if there and newest_version((there[1], one.version)) != one.version:
            continue
        if there:
            _write_bands(cache, keys)
            old = [(key, there[0]) for key in bands(there[2])]
            cache.executemany("delete from bands where key = ? and seq = ?", old)
            cache.execute("delete from items where seq = ?", (there[0],))
        seq = cache.execute(_ADD, (there[0] if there else None, *one)).lastrowid
        keys.extend((key, seq or 0) for key in bands(one.signature))
        names = [(name, one.id) for name in one.names.split("\n") if name]
        cache.executemany("insert or ignore into names values (?, ?)", names)
        if len(keys) >= BATCH * BANDS:
            _write_bands(cache, keys)
    _write_bands(cache, keys)


def _write_bands(cache: sqlite3.Connection, keys: list[tuple[int, int]]) -> None:
    cache.executemany("insert or ignore into bands values (?, ?)", sorted(keys))
    keys.clear()


def find_kin(cache: sqlite3.Connection, name: str) -> Kin:
    """Earlier items that are the same work as one the cache holds, or say much the same.

    Earlier is by first sight, then by id.
    """
    query = "select first_seen, title_key, signature, names from items where id = ?"
    seen, key, signed, names = cache.execute(query, (name,)).fetchone()
    mates = {
        other: (title, other_key, other_signed)
        for other, title, other_key, other_signed, other_seen in _mates(cache, signed, key)
        if (other_seen, other) < (seen, name)
    }
    near = {other: similarity(signed, theirs) for other, (_, _, theirs) in mates.items()}
    same = {n for n, (_, k, theirs) in mates.items() if _is_same(near[n], key, k, bool(signed and theirs))}
    same |= {n for n, first in _by_name(cache, [name, *names.split("\n")]) if (first, n) < (seen, name)}
    ordered = sorted(mates, key=lambda other: (-near[other], other))
    neighbours = [
        Neighbour(n, near[n], mates[n][0]) for n in ordered if near[n] >= LEAST_SIMILAR and n not in same
    ]
    return Kin(tuple(sorted(same)), tuple(neighbours[:MOST_ALIKE]))


def _mates(cache: sqlite3.Connection, signed: bytes, key: str) -> Iterator[tuple[str, str, str, bytes, str]]:
    """Items that share a title, or most bands with a text."""
    if key:
        yield from cache.execute(_MATES, (key, MAX_MATES))
    if signed:
        yield from cache.execute(_ALIKE, bands(signed))


def _is_same(near: float, key: str, other_key: str, comparable: bool) -> bool:  # noqa: FBT001  two private lines
    if near >= SAME_TEXT:
        return True
    if not key or key != other_key:
        return False
    return near >= SAME_TITLE or not comparable or (len(key) >= LONG_TITLE and near >= OTHER_TEXT)


def _by_name(cache: sqlite3.Connection, names: list[str]) -> Iterator[tuple[str, str]]:
    """(id, first sight) of items that a name points to, or that bear one of the names themselves."""
    for name in filter(None, names):
        yield from cache.execute("select id, first_seen from items where id = ?", (name,))
        yield from cache.execute(
            "select i.id, i.first_seen from names n join items i using (id) where n.name = ?", (name,)
        )
