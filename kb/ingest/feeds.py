"""Reads feed documents of every dialect into one shape: RSS 0.9x–2.0, Atom, JSON Feed."""

from __future__ import annotations

from kb.http import Answer, NoAnswer
from kb.ingest.feedxml import Body, Document, RawEntry, Unreadable, read_xml
from kb.ingest.workers import FEED_BYTES, apart, parsed

MAX_ENTRIES = 2000
"""Entries taken from one document."""


def read_document(answer: Answer) -> Document:
    """Read a feed.

    Raises:
        NoAnswer: It is empty, no feed, an unsupported dialect, or cut off before its first entry.
    """
    body = answer.body
    if not body.strip(b"\0\t\r\n \xef\xbb\xbf"):
        raise NoAnswer("empty-body", answer.url, "the answer has no bytes")
    if body.lstrip(b"\xef\xbb\xbf\t\r\n ")[:1] in {b"{", b"["}:
        from kb.ingest.jsonfeed import read_json_feed

        document = read_json_feed(body, answer.url, MAX_ENTRIES)
    else:
        given = Body(body, answer.url, answer.media_type, answer.charset)
        is_short = len(body) < FEED_BYTES
        found = parsed(read_xml, len(body), given) if is_short else apart(read_xml, given)
        if isinstance(found, Unreadable):
            raise NoAnswer(found.status, answer.url, found.detail)
        document = found
    named = _unnested(document.entries)
    document.entries = named[:MAX_ENTRIES]
    document.left_out += max(0, len(named) - MAX_ENTRIES)
    document.repeated = _repeated(document.entries)
    return document


def _unnested(entries: list[RawEntry]) -> list[RawEntry]:
    """Entries that name something; illegally nested items leave shells without link and id."""
    return [
        entry
        for entry in entries
        if entry.link or entry.guid or entry.original or entry.title or entry.markup
    ]


def _repeated(entries: list[RawEntry]) -> frozenset[str]:
    meant: dict[str, set[tuple[str, str]]] = {}
    for entry in entries:
        for name in {entry.guid, entry.link.partition("#")[0]} - {""}:
            meant.setdefault(name, set()).add((entry.link, entry.title))
    return frozenset(name for name, works in meant.items() if len(works) > 1)
