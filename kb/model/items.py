"""What a source gave, and the settings of sources."""

from __future__ import annotations

from pydantic import Field

from kb.model.base import Record


class DateStamp(Record):
    """One date of an item and where it came from."""

    at: str
    """ISO 8601 as precise as the source gave it: ``2026-06-10`` or ``2026-06-10T03:05:00+08:00``."""
    field: str
    """Field of the source that held it: ``published``, ``pubDate``, ``meta:article:published_time``."""
    zone: str = ""
    """Zone it was read in, an IANA name or an offset; empty where the text carried its own."""
    assumed: bool = False
    """True where the zone came from the source's settings and not from the text."""


class Item(Record):
    """What a source gave: one line per (id, version, content hash); the last line per version wins."""

    id: str = Field(min_length=3)
    """``arxiv:2606.06302``, ``doi:10.…``, ``url:host/path`` or ``draft:curator/date-slug#entry``; never a version."""
    version: str = ""
    """Version of the work where its source numbers them: ``"2"`` for arXiv v2; empty otherwise."""
    source: str
    """Name of the source that gave it, or ``draft:curator/date-slug``."""
    url: str = ""
    """Canonical URL; empty where the source names none."""
    aliases: tuple[str, ...] = ()
    """Other ids and URLs of the same work."""
    title: str
    """As the source gives it, white space collapsed."""
    authors: tuple[str, ...] = ()
    """In the source's order."""
    submitted: DateStamp | None = None
    """First submitted or written."""
    updated: DateStamp | None = None
    """Last changed by its authors."""
    announced: DateStamp | None = None
    """Made public: announced, published in a feed."""
    first_seen: DateStamp
    """When this base first met it."""
    summary: str = Field(default="", max_length=500)
    """At most 500 characters; publishers' text stays out of git."""
    content_sha256: str = ""
    """Of the normalised content this line was made from; a change makes a new line."""
    fetched_at: str
    """Moment of the fetch, UTC."""
    losses: dict[str, str] = {}
    """What extraction kept of what it met: ``{"code_blocks": "8/10"}``."""
    notices: tuple[str, ...] = ()
    """Withdrawn, retracted, moved: what a reader of a page built on it must know."""
    links: tuple[str, ...] = ()
    """Ids of other works this one is about, such as the paper a post presents."""


class SourceConfig(Record):
    """Settings of one source, ``sources/<name>.toml``."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """From the file name."""
    kind: str
    """Name of a module under ``kb/ingest/sources/``."""
    url: str = ""
    """Where it is fetched; a setting, so that a replay server can stand in."""
    api: str = ""
    """For kinds that look ids up elsewhere: address of arXiv's API where it is not the usual one."""
    query: str = ""
    """For kinds that search: ``cat:cs.DC``, words."""
    ids: tuple[str, ...] = ()
    """For kinds that look up: arXiv ids."""
    page: int = Field(default=0, ge=0, le=2000)
    """Entries per request, for kinds that page; 0 for the kind's own default."""
    limit: int = Field(default=0, ge=0)
    """Most entries taken in one run; 0 for no limit."""
    mode: str = ""
    """How the kind reads it: ``linkblog`` (the link is someone else's), ``cross`` (arXiv cross-lists too), ``primary``."""
    zone: str = "UTC"
    """IANA zone of dates that carry none."""
    topics: tuple[str, ...] = ()
    """Topics its items belong to whatever the words say."""
    why: str
    """Why it is followed."""
    publisher: str = ""
    """Name shown to readers."""
    enabled: bool = True
    """False: listed, not fetched."""
    note: str = ""
    """For people: for instance that the publisher has no feed."""
    program: str = ""
    """For kind ``exec``: a name the user's own allow-list must permit."""
