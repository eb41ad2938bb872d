"""Reads feed documents of every dialect into one shape: RSS 0.9x–2.0, Atom, JSON Feed.

Where many feeds are followed, XML is parsed in processes of its own: parsing is most of the work of an ingest, and threads
of one Python process take turns.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
from collections.abc import Iterator

from kb.http import Answer, NoAnswer
from kb.ingest.feedxml import Body, Document, RawEntry, Unreadable, read_xml

MAX_ENTRIES = 2000
"""Entries taken from one document."""
MANY = 16
"""Feeds from which processes of their own pay for their start."""
PARSE_S = 30.0
"""Longest parsing of one document in another process."""
_pool: concurrent.futures.ProcessPoolExecutor | None = None


@contextlib.contextmanager
def side_by_side(feeds: int) -> Iterator[None]:
    """Parse in other processes inside the block where there are many feeds and more than one core."""
    global _pool  # noqa: PLW0603  one pool per process, for the time of one run
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if feeds < MANY or cores < 2:  # noqa: PLR2004
        yield
        return
    # spawned, not forked: this process has threads
    pool = concurrent.futures.ProcessPoolExecutor(min(cores, 4), multiprocessing.get_context("spawn"))
    _pool = pool
    try:
        yield
    finally:
        _pool = None
        pool.shutdown(cancel_futures=True)


def _parse(body: Body) -> Document | Unreadable:
    pool = _pool
    if pool is None:
        return read_xml(body)
    try:
        return pool.submit(read_xml, body).result(PARSE_S)
    except concurrent.futures.TimeoutError:
        return Unreadable("too-slow", f"parsing took more than {PARSE_S:.0f} s")
    except concurrent.futures.BrokenExecutor:
        return read_xml(body)  # a process died, perhaps for memory; this one is still there


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

        document = read_json_feed(body, answer.url)
    else:
        found = _parse(Body(body, answer.url, answer.media_type, answer.charset))
        if isinstance(found, Unreadable):
            raise NoAnswer(found.status, answer.url, found.detail)
        document = found
    document.entries = _unnested(document.entries)[:MAX_ENTRIES]
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
