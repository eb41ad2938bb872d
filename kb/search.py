"""Find text in a base: SQLite FTS5 with bigrams for Chinese and whole words for the rest, rebuilt when files change.

Chinese has no spaces, so a run of characters is indexed as its overlapping pairs and asked for as a phrase of pairs:
any word of two or more characters is found, also in the middle of a title. Latin words, numbers and ids are whole
tokens; ``2606.06302`` is a phrase of two. The same function cuts documents and questions. The index lies in ``.kb``.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.draft import item_stages, list_drafts, split_front_matter
from kb.errors import BadInput, CannotRun, WrongUse
from kb.files import decode_text, read_bytes, stat_digest
from kb.model import Record, Text
from kb.store import MAX_PAGE_BYTES, Base

FORMAT = "2"
"""Of the index; another one is rebuilt."""
FOLDERS = ("items", "claims", "published", "inbox", "review", "dropped")
"""What the index is made of."""
SKIPPED = frozenset({".blocks"})
"""Folders in them that hold no document: last machine texts, three times as many files as there are pages."""
CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECES = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_IS_CJK = re.compile(rf"[{CJK}]")
_WORKS = re.compile(r"(\d{4,5})v\d+")
_VERSION = re.compile(r"(\d{4}\.\d{4,5})v\d+\b", re.IGNORECASE)
_MARKUP = (
    (re.compile(r"<!--.*?-->|<a id=[^>]*></a>", re.DOTALL), " "),
    (re.compile(r"\]\((?:<[^>]*>|[^)\s]*)\)"), "]"),
    (re.compile(r"^[#>|\- ]+|\*+|`|\[|\]|\|", re.MULTILINE), " "),
)
"""What is no text for a reader, with what takes its place."""
SNIPPET_CHARS = 96
MAX_HITS = 200


class Hit(Record):
    """One document that matches."""

    kind: str
    """page, claim, item or draft."""
    id: str
    """Page path, claim, item or draft id."""
    title: str
    stage: str
    """inbox, review, published, dropped; empty for what no draft holds."""
    path: str
    """File below the root, where it is one."""
    snippet: str
    """Text around the first match, cut between characters; matches are in « »."""
    score: float
    """Higher is better; comparable within one answer."""


@dataclass(frozen=True)
class Document:
    """One document of the index."""

    kind: str
    id: str
    title: str
    body: str
    stage: str = ""
    path: str = ""
    also: str = ""
    """Other names: aliases, addresses, the item of a claim."""


def tokens(text: str) -> list[str]:
    """Cut a text into what is indexed: pairs of Chinese characters, lower-case words and numbers."""
    found: list[str] = []
    for piece in _PIECES.findall(unicodedata.normalize("NFKC", text).lower()):
        if _IS_CJK.match(piece):
            found += [piece] if len(piece) == 1 else [piece[i : i + 2] for i in range(len(piece) - 1)]
        else:
            version = _WORKS.fullmatch(piece)
            found += [version[1], piece.removeprefix(version[1])] if version else [piece]
    return found


def question(words: str) -> str:
    """An FTS5 query: every word must occur, each as a phrase of its tokens; empty where nothing can be asked."""
    phrases = []
    for word in words.split():
        # a version names a state of a work, and not every document that speaks of the work names it
        cut = tokens(_VERSION.sub(r"\1", word))
        if len(cut) == 1 and len(cut[0]) == 1 and _IS_CJK.match(cut[0]):
            phrases.append(f'chars : "{cut[0]}"')
        elif cut:
            phrases.append('{title also body} : "' + " ".join(cut) + '"')
    return " AND ".join(phrases)


def search(base: Base, words: str, *, stage: str = "", limit: int = 20) -> list[Hit]:
    """Search a base; the index is rebuilt first where files changed.

    Args:
        base: The knowledge base.
        words: What a person types; every word must occur.
        stage: Only documents in this stage.
        limit: At most so many hits, best first.

    Raises:
        WrongUse: There is no word in ``words``.
        CannotRun: This Python's SQLite has no FTS5.
    """
    asked = question(words)
    if not asked:
        raise WrongUse(
            f"kb search {words!r}: nothing to look for",
            cause="it holds no letter, digit or Chinese character",
            remedy="give a word",
            next_command="kb search 显存",
        )
    with _opened(base) as index:
        # ranked by numbers alone, which stand in the order of kind and id; texts are read for the hits that are shown
        rows = index.execute(
            "SELECT d.kind, d.id, d.title, d.stage, d.path, d.body, hits.rank FROM ("
            " SELECT rowid AS number, bm25(docs, 10.0, 8.0, 1.0, 0.0) AS rank FROM docs"
            " WHERE docs MATCH :asked"
            " AND (:stage = '' OR rowid IN (SELECT rowid FROM documents WHERE stage = :stage))"
            " ORDER BY rank, number LIMIT :limit"
            ") AS hits JOIN documents d ON d.rowid = hits.number ORDER BY hits.rank, hits.number",
            {"asked": asked, "stage": stage, "limit": max(1, min(limit, MAX_HITS))},
        ).fetchall()
    return [
        Hit(kind=k, id=i, title=t, stage=s, path=p, snippet=snippet(body, words), score=round(-rank, 4))
        for k, i, t, s, p, body, rank in rows
    ]


def snippet(body: str, words: str) -> str:
    """Text around the first word that occurs, in whole characters, with the matches in « »."""
    text = " ".join(body.split())
    parts = [re.escape(word) for word in words.split()]
    pattern = re.compile("|".join(parts), re.IGNORECASE) if parts else None
    first = pattern.search(text) if pattern else None
    start = max(0, first.start() - SNIPPET_CHARS // 3) if first else 0
    # an accent belongs to the character before it
    while start and unicodedata.combining(text[start]):
        start -= 1
    cut = text[start : start + SNIPPET_CHARS]
    marked = pattern.sub(lambda found: f"«{found[0]}»", cut) if pattern else cut
    return ("…" if start else "") + marked + ("…" if start + SNIPPET_CHARS < len(text) else "")


# The index


@contextlib.contextmanager
def _opened(base: Base) -> Iterator[sqlite3.Connection]:
    """The index of a base as its files are now."""
    path = base.cache / "search.sqlite"
    wanted = f"{FORMAT} {stat_digest(base.root, FOLDERS, SKIPPED)}"
    if _stamp(path) != wanted:
        _build(base, path, wanted)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        yield connection
    finally:
        connection.close()


def _stamp(path: Path) -> str:
    if not path.is_file():
        return ""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return str(connection.execute("SELECT value FROM stamp").fetchone()[0])
    except (sqlite3.DatabaseError, TypeError):
        return ""


def _build(base: Base, path: Path, stamp: str) -> None:
    """Write a new index beside the old one, then put it in its place."""
    import os

    base.scratch.mkdir(parents=True, exist_ok=True)
    temporary = base.scratch / f"search.{os.getpid()}.sqlite"
    temporary.unlink(missing_ok=True)
    connection = sqlite3.connect(temporary)
    try:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE documents (kind TEXT, id TEXT, title TEXT, stage TEXT, path TEXT, body TEXT);"
            "CREATE VIRTUAL TABLE docs USING fts5"
            "(title, also, body, chars, content='', tokenize='unicode61 remove_diacritics 0');"
            "CREATE TABLE stamp (value TEXT);"
        )
        for number, one in enumerate(sorted(documents(base), key=lambda d: (d.kind, d.id)), 1):
            kept = (number, one.kind, one.id, one.title, one.stage, one.path, one.body)
            connection.execute(
                "INSERT INTO documents (rowid, kind, id, title, stage, path, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
                kept,
            )
            whole = f"{one.title} {one.also} {one.body}"
            columns = [" ".join(tokens(part)) for part in (one.title, f"{one.id} {one.also}", one.body)]
            chars = " ".join(sorted(set(_IS_CJK.findall(whole))))
            connection.execute(
                "INSERT INTO docs (rowid, title, also, body, chars) VALUES (?, ?, ?, ?, ?)",
                (number, *columns, chars),
            )
        connection.execute("INSERT INTO stamp VALUES (?)", (stamp,))
        connection.commit()
    except sqlite3.OperationalError as error:
        raise CannotRun(
            "kb search: no index was made", cause=str(error), remedy="use a Python whose SQLite has FTS5"
        ) from error
    finally:
        connection.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(path)


def documents(base: Base) -> Iterator[Document]:
    """Everything that can be found: pages, claims, items, drafts."""
    yield from _pages(base)
    for claim in base.claims().values():
        yield Document(
            "claim", claim.id, _both(claim.statement), " ".join(
                [claim.quote, claim.locator, claim.metric, claim.baseline, *claim.conditions.values(), claim.planned]
            ), path=f"claims/{claim.id.partition('/')[0]}.toml", also=claim.item,
        )  # fmt: skip
    stages = item_stages(base)
    for name, versions in base.latest_items().items():
        item = list(versions.values())[-1]
        also = " ".join([item.url, *item.aliases, *(f"{name}v{v}" for v in versions if v)])
        body = " ".join([*item.authors, item.summary])
        yield Document("item", name, item.title, body, stage=stages.get(name, ""), also=also)
    for draft in list_drafts(base):
        text = _text(draft.path)
        if text is not None:
            yield Document(
                "draft",
                draft.id,
                _title(text) or draft.id,
                plain(text),
                draft.stage,
                base.relative(draft.path),
            )


def _both(text: Text) -> str:
    return " · ".join(dict.fromkeys(part for part in (text.zh, text.en) if part))


def _pages(base: Base) -> Iterable[Document]:
    folder = base.root / "published"
    for path in sorted(folder.glob("**/*.md")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") for part in parts) or parts[0] == "drafts":
            continue
        text = _text(path)
        if text is not None:
            name = path.parent.relative_to(folder).as_posix()
            yield Document("page", name, _title(text) or name, plain(text), "published", base.relative(path))


def plain(markdown: str) -> str:
    """Markdown without its markup, for an index and for snippets."""
    import html

    for pattern, instead in _MARKUP:
        markdown = pattern.sub(instead, markdown)
    return html.unescape(markdown)


def _text(path: Path) -> str | None:
    """Body of a Markdown file; None where it cannot be read, which `kb check` reports."""
    try:
        text = decode_text(read_bytes(path, limit=MAX_PAGE_BYTES), path.name)
    except BadInput:
        return None
    try:
        return split_front_matter(text, path.name)[1]
    except BadInput:
        return text


def _title(text: str) -> str:
    found = re.search(r"^#{1,2}[ \t]+(.+?)[ \t#]*$", text, re.MULTILINE)
    return found[1] if found else ""
