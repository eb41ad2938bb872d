"""Reads pages of arXiv's API: one entry with the `arxiv` package, everything around it with our own checks.

The package accepts truncated pages and error pages as empty results (docs/adr/0014). This module imports nothing that talks
to the network, because it also runs in processes that only parse.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
from typing import TYPE_CHECKING, NamedTuple

from kb.ingest.feedxml import Unreadable, between
from kb.ingest.text import one_line

if TYPE_CHECKING:
    import arxiv

ATOM = "{http://www.w3.org/2005/Atom}"
SEARCH = "{http://a9.com/-/spec/opensearch/1.1/}"


class Paper(NamedTuple):
    """One entry, as the package reads it."""

    entry_id: str
    title: str
    summary: str
    comment: str
    doi: str
    primary_category: str
    authors: tuple[str, ...]
    published: dt.datetime
    """Submission of v1."""
    updated: dt.datetime
    """Submission of this version."""


class Page(NamedTuple):
    """One checked answer."""

    total: int
    papers: list[Paper]
    entries: int
    """Entries in the document, those that could not be used included."""
    complete: bool


def read_page(body: bytes, start: int, expected: int) -> Page | Unreadable:
    """Parse a page and say whether it is whole.

    Args:
        body: The answer.
        start: Offset that was asked.
        expected: Most entries that can be on it.

    Returns:
        Why it is none, where it is no feed, or a feed that tells an error.
    """
    from arxiv import _feed
    from lxml import etree

    logging.getLogger("arxiv").setLevel(logging.ERROR)  # it would print what it skips; the report counts it
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(body, parser=parser) if body.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None or root.tag != f"{ATOM}feed":
        what, status = ("no Atom feed", "not-a-feed") if body.strip() else ("an empty body", "empty-body")
        return Unreadable(status, f"the API answered with {what}")
    if said := error_text(body):
        return Unreadable("bad-request", said)
    papers: list[Paper] = []
    entries = 0
    for element in root.iterfind(f"{ATOM}entry"):
        entries += 1
        with contextlib.suppress(ValueError, OverflowError):  # a date that is none
            if (result := _feed._build_result(element)) is not None:  # noqa: SLF001  the part of the package we use
                papers.append(_paper(result))
    total = root.findtext(f"{SEARCH}totalResults", "0").strip()
    left = max(0, int(total) - start) if total.isdecimal() else 0
    is_closed = body.rstrip().endswith(b"</feed>")
    return Page(left + start, papers, entries, is_closed and entries >= min(expected, left))


def _paper(result: arxiv.Result) -> Paper:
    return Paper(
        result.entry_id,
        result.title,
        " ".join(result.summary.split()),
        result.comment or "",
        result.doi or "",
        result.primary_category or "",
        tuple(author.name for author in result.authors),
        result.published,
        result.updated,
    )


def error_text(body: bytes) -> str:
    """What an error feed says, or nothing; errors come with status 400, formerly with 200."""
    place = body.find(b"/api/errors#")
    found = between(body, b"<summary", b"</summary>", place) if place >= 0 else None
    said = body[found[0] : found[1]].partition(b">")[2] if found else b""
    return one_line(said[:2000].decode("utf-8", "replace"), 300)
