"""The bands of titles in the index: worked out when they are first asked for, so that taking in many items costs nothing more."""

from __future__ import annotations

import contextlib
import sqlite3

from kb.ingest.likeness import bands

SCHEMA = """
create table if not exists band(key integer, id text, primary key(key, id)) without rowid;
create table if not exists banded(id text primary key, title text) without rowid;
"""
MOST_MET = 200
"""Titles that one is compared with."""
BUSY_MS = 300


def fill(db: sqlite3.Connection) -> None:
    """Work out the bands of titles that have none; left for later where another process is writing to the index."""
    undone = db.execute(
        "select id, max(title) from work where id not in (select id from banded) group by id"
    ).fetchall()
    if not undone:
        return
    is_mine = not db.in_transaction
    db.execute(f"pragma busy_timeout = {BUSY_MS}")
    with contextlib.suppress(sqlite3.OperationalError):
        if is_mine:
            db.execute("begin immediate")
        db.executemany(
            "insert or ignore into band values(?, ?)",
            ((key, work) for work, title in undone for key in bands(title)),
        )
        db.executemany("insert or replace into banded values(?, ?)", undone)
        if is_mine:
            db.execute("commit")
    db.execute("pragma busy_timeout = 30000")


def forget(db: sqlite3.Connection) -> None:
    """Forget all bands: rare, and they are worked out again when they are asked for."""
    db.execute("delete from band")
    db.execute("delete from banded")


def met(db: sqlite3.Connection, work: str) -> tuple[str, list[tuple[str, str]]]:
    """A work's title, and (id, title) of the works that meet it in a band."""
    row = db.execute("select max(title) from work where id = ?", (work,)).fetchone()
    title = str(row[0] or "") if row else ""
    keys = bands(title)
    marks = ",".join("?" * len(keys))
    query = f"""select distinct id, title from band join banded using (id)
        where key in ({marks}) and id != ? order by id limit {MOST_MET}"""  # noqa: S608  only marks
    return title, db.execute(query, (*keys, work)).fetchall() if keys else []
