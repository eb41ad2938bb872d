"""Reads XML feeds with feedparser: dialects, encodings that lie, document types with entities, truncation, raw dates.

feedparser is tolerant and is given only bytes, never an address or a path. This module imports nothing that talks to the
network, because it also runs in processes that only parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kb.ingest.text import guess_charset, one_line, plain_text

MAX_FIELD = 2_000_000
"""Characters of one field."""
MAX_TEXT = 200_000
"""Characters of an entry's plain text."""
DATE_FIELDS = ("published", "created", "issued", "updated")
"""feedparser's names in the order in which they are believed; the first that parses counts."""
PARSER_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    AssertionError,
    OverflowError,
)
"""What a parser of hostile input may fail with; it is the input's fault."""
GB = {"gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "gb_2312-80": "gb18030"}
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)[\"']", re.IGNORECASE)
_SUBSET = re.compile(rb"<!DOCTYPE[^\[>]{0,400}\[.*?\]\s*>", re.DOTALL | re.IGNORECASE)
_CLOSED = re.compile(
    rb"</(?:[\w-]+:)?(feed|rss|rdf|channel|cdf)\s*>(?:\s|<!--.*?-->)*\Z", re.DOTALL | re.IGNORECASE
)
_ROOT = re.compile(rb"<(?:[\w-]+:)?(feed|rss|rdf|channel|cdf)[\s>/]", re.IGNORECASE)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE)


@dataclass
class RawEntry:
    """One entry as its document gives it."""

    guid: str = ""
    guid_is_link: bool = False
    link: str = ""
    original: str = ""
    """``feedburner:origLink``."""
    related: str = ""
    """The entry's own page where ``link`` is someone else's article."""
    title: str = ""
    authors: tuple[str, ...] = ()
    published: tuple[tuple[str, str], ...] = ()
    """(field, raw text) in the order in which they are believed."""
    updated: tuple[tuple[str, str], ...] = ()
    markup: str = ""
    """Full content where there is any, else the summary; HTML."""
    text: str = ""
    """The same as one line of plain text."""
    origin: str = ""
    """Address of the feed an aggregator took it from."""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Document:
    """A feed document."""

    title: str = ""
    link: str = ""
    version: str = ""
    entries: list[RawEntry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    truncated: bool = False
    left_out: int = 0
    """Entries beyond the most that are taken from one document."""
    repeated: frozenset[str] = frozenset()
    """Guids and addresses (without fragment) that stand for several works here, so they name none."""


@dataclass(frozen=True)
class Body:
    """Bytes of a feed and what HTTP said about them."""

    body: bytes
    url: str
    media_type: str = ""
    charset: str = ""


@dataclass(frozen=True)
class Unreadable:
    """Why bytes are no feed: a status of `kb.vocab.SOURCE_STATUS` and what was observed."""

    status: str
    detail: str


def read_xml(answer: Body) -> Document | Unreadable:
    """Read an XML feed; a result of plain data, because it may come from another process."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of feedparser about itself
        return _read(answer)


def parse(answer: Body, warnings: list[str]) -> Any:
    """What feedparser makes of bytes whose encoding and entity definitions were looked at first."""
    import feedparser

    charset = _charset(answer, warnings)
    # the content type is ours: many servers send text/plain or text/xml, which says nothing about the document
    headers = {
        "content-location": answer.url,
        "content-type": f"application/xml; charset={charset}" if charset else "application/xml",
    }
    return feedparser.parse(_mended(answer.body, warnings), response_headers=headers)


def _read(answer: Body) -> Document | Unreadable:
    body = answer.body
    head = body[:4096]
    is_utf16 = body[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\0" in head[:64]
    if not is_utf16 and not _ROOT.search(head) and (_HTML.search(head) or not _ROOT.search(body)):
        return Unreadable("not-a-feed", _what_else(answer))
    document = Document()
    try:
        parsed = parse(answer, document.warnings)
    except PARSER_ERRORS as error:
        return Unreadable("not-a-feed", f"no parser can read it: {type(error).__name__}: {error}")
    if not parsed.version and not parsed.entries:
        return Unreadable("not-a-feed", _what_else(answer))
    document.version = parsed.version
    document.title = one_line(parsed.feed.get("title", ""))
    document.link = str(parsed.feed.get("link", ""))
    document.truncated = bool(parsed.bozo) and not is_utf16 and not _is_closed(answer.body)
    entries = list(parsed.entries)
    if document.truncated and not entries:
        return Unreadable(
            "truncated", f"the document ends before its first entry is complete ({document.title})"
        )
    if document.truncated and not _ends_complete(answer.body):
        entries.pop()  # the last one was cut off in the middle
        document.warnings.append("the document is cut off in its last entry, which is left out")
    if parsed.bozo:
        problem = type(parsed.get("bozo_exception", ValueError())).__name__
        document.warnings.append(f"not well-formed ({problem}), {len(entries)} entries could be read")
    document.entries = [_entry(item) for item in entries]
    return document


def _is_closed(body: bytes) -> bool:
    """Whether the document ends with the end of the element it began with."""
    opened, closed = _ROOT.search(body), _CLOSED.search(body[-4096:])
    return bool(opened and closed and opened.group(1).lower() == closed.group(1).lower())


def _what_else(answer: Body) -> str:
    kind = answer.media_type or "no content type"
    said = between(answer.body[:65536].lower(), b"<title", b"</title>")
    title = ""
    if said:
        markup = answer.body[said[0] : said[1]].partition(b">")[2]
        title = one_line(plain_text(markup.decode("utf-8", "replace")), 80)
    return f"the answer is no feed ({kind}{f', titled “{title}”' if title else ''})"


def _ends_complete(body: bytes) -> bool:
    last = max(body.rfind(b"<item"), body.rfind(b"<entry"))
    closed = max(body.rfind(b"</item>"), body.rfind(b"</entry>"))
    return closed > last


def _charset(answer: Body, warnings: list[str]) -> str:
    """The charset to tell feedparser: GB family widened, a declaration that UTF-8 bytes disprove overruled."""
    declared = _DECLARED.match(answer.body[:512].lstrip())
    name = answer.charset or (declared.group(1).decode("ascii").lower() if declared else "")
    if name in GB:
        return GB[name]
    if (
        name
        and name not in {"utf-8", "utf8", "us-ascii", "ascii"}
        and not name.startswith(("utf-16", "utf-32", "ucs"))
    ):
        try:
            text = answer.body.decode("utf-8")
        except UnicodeDecodeError:
            return answer.charset
        if not text.isascii():
            warnings.append(f"declared {name}, but its bytes are UTF-8")
            return "utf-8"
    if not name:
        try:
            answer.body.decode("utf-8")
        except UnicodeDecodeError:
            return guess_charset(answer.body)
    return answer.charset


def _mended(body: bytes, warnings: list[str]) -> bytes:
    head = body[:65536]
    start = head.lower().find(b"<!doctype")
    if start >= 0 and b"<!ENTITY" in head.upper() and (subset := _SUBSET.match(head, start)):
        warnings.append("entity definitions were ignored")
        body = body[:start] + body[subset.end() :]
    return _without_escaped_cdata(body)


def _without_escaped_cdata(body: bytes) -> bytes:
    """The document with the text of ``&lt;![CDATA[text]]&gt;`` as it is; one pass, because a pattern would take one per opening."""
    kept: list[bytes] = []
    place = 0
    while found := between(body, b"&lt;![CDATA[", b"]]&gt;", place):
        kept += [body[place : found[0] - len(b"&lt;![CDATA[")], body[found[0] : found[1]]]
        place = found[1] + len(b"]]&gt;")
    return b"".join([*kept, body[place:]]) if kept else body


def between(body: bytes, opening: bytes, closing: bytes, place: int = 0) -> tuple[int, int] | None:
    """Where the first text between two marks begins and ends, or None; linear, whatever the bytes are."""
    start = body.find(opening, place)
    end = body.find(closing, start + len(opening)) if start >= 0 else -1
    return (start + len(opening), end) if end >= 0 else None


def _entry(item: Any) -> RawEntry:
    markup = max((part.get("value", "") or "" for part in item.get("content", [])), key=len, default="")
    markup = markup or item.get("summary", "") or ""
    links = item.get("links", [])
    related = next((link.get("href", "") for link in links if link.get("rel") == "related"), "")
    title = item.get("title", "") or ""
    if item.get("title_detail", {}).get("type", "text/plain") != "text/plain":
        title = plain_text(title)
    source = item.get("source", {})
    return RawEntry(
        guid=one_line(str(item.get("id", "") or ""), 1000),
        guid_is_link=bool(item.get("guidislink")),
        link=_alternate(links) or str(item.get("link", "") or ""),
        original=str(item.get("feedburner_origlink", "") or ""),
        related=str(related or item.get("comments", "") or ""),
        title=title[:MAX_FIELD],
        authors=_authors(item),
        published=_dates(item, DATE_FIELDS[:3]),
        updated=_dates(item, DATE_FIELDS[3:]),
        markup=markup[:MAX_FIELD],
        text=line_of(markup[:MAX_FIELD]),
        origin=str(source.get("href", "") or source.get("id", "") or "") if isinstance(source, dict) else "",
        extra={
            key: str(item.get(key, ""))
            for key in ("arxiv_announce_type", "dc_identifier", "prism_doi")
            if item.get(key)
        },
    )


def line_of(markup: str) -> str:
    """An entry's markup as one line of plain text."""
    return one_line(plain_text(markup), MAX_TEXT)


def _alternate(links: list[Any]) -> str:
    alternates = [link for link in links if link.get("rel", "alternate") == "alternate" and link.get("href")]
    html = [link for link in alternates if "html" in link.get("type", "text/html")]
    return str((html or alternates or [{"href": ""}])[0]["href"])


def _authors(item: Any) -> tuple[str, ...]:
    names = [one_line(author.get("name", "") or "", 120) for author in item.get("authors", [])]
    return tuple(dict.fromkeys(name for name in names if name))


def _dates(item: Any, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    # past feedparser's own `get`, which gives `published` for a missing `updated`
    return tuple((name, str(dict.get(item, name))) for name in names if dict.get(item, name))
