"""Full texts of items, kept outside git by content digest: what a summary of 500 characters cannot hold.

One SQLite file under ``.kb/``, because ten thousand small files cost more than fetching them. It is a cache: without it
readers have the summary.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from kb.store import Base

NAME = "texts.sqlite"


def keep_texts(base: Base, texts: Mapping[str, str]) -> None:
    """Keep texts by content digest; those that are there already stay as they are."""
    if not texts:
        return
    base.cache.mkdir(parents=True, exist_ok=True)
    for attempt in (1, 2):
        try:
            with sqlite3.connect(base.cache / NAME, timeout=30) as db:
                db.execute("pragma synchronous = off")  # a cache: what a power cut loses is fetched again
                # with row ids: bodies are appended in order, only the short digests are sorted in
                db.execute("create table if not exists text(digest text primary key, body text)")
                rows = ((key, text.encode("utf-8", "replace").decode()) for key, text in texts.items())
                db.executemany("insert or ignore into text values(?, ?)", rows)
            db.close()
        except sqlite3.DatabaseError:
            (base.cache / NAME).unlink(missing_ok=True)
            if attempt == 2:  # noqa: PLR2004  a fresh file fails too: the disk is the problem, not the cache
                return
        else:
            return


def text_of(base: Base, digest: str) -> str:
    """The full text with this content digest, or nothing where the cache does not have it."""
    path = base.cache / NAME
    if not digest or not path.is_file():
        return ""
    try:
        db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
        row = db.execute("select body from text where digest = ?", (digest,)).fetchone()
        db.close()
    except sqlite3.DatabaseError:
        return ""
    return str(row[0]) if row else ""
