"""Posts of a feed: RSS 0.9x, 1.0 and 2.0, Atom, JSON Feed, whatever its name says.

Identity    the post's own address; where there is none its guid, where that means nothing a digest of title and date.
            Known posts are also recognised by guid, so a renamed post is no new one.
Dates       the first date field that parses; what has only ``updated`` was announced then as far as anybody can tell;
            a post without a date stays without.
Politeness  conditional requests; validators are kept only after everything is committed
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from kb.files import sha256
from kb.identity import Work, find_works, identify
from kb.ingest.contract import Entry, NoAnswer, Skip, Task, one_line
from kb.ingest.dates import ReadDate, read_date
from kb.ingest.feeds import read_document
from kb.ingest.feedxml import Document, RawEntry
from kb.urls import url_key

KIND = "feed"
ACCEPT = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5"
MAX_LINKS = 10
"""Works a post is linked to."""
TITLE_WORDS = 80
"""Characters of the text that stand in for a missing title."""
IS_STAMP = frozenset({"updated", "date_modified"})
"""Fields that say when a post was touched."""
SLACK = dt.timedelta(hours=24)


@dataclass(frozen=True)
class Post:
    """One entry with the document it stood in."""

    entry: RawEntry
    document: Document
    url: str
    """Where the document was found."""


def fetch(task: Task) -> Iterator[Post]:
    """Yield the posts of the feed in its order."""
    if not task.config.url:
        raise NoAnswer(
            "bad-request",
            task.config.name,
            "the source has no url",
            remedy=f"add url to sources/{task.config.name}.toml",
        )
    answer = task.get(task.config.url, accept=ACCEPT, conditional=True)
    if answer.not_modified:
        task.report.status = "not-modified"
        return
    document = read_document(answer)
    yield from posts(document, answer.url, task)


def posts(document: Document, url: str, task: Task) -> Iterator[Post]:
    """Yield a document's posts and report what is wrong with it."""
    for warning in document.warnings:
        task.report.note(warning)
    if document.repeated:
        task.report.note(
            f"{len(document.repeated)} guids or addresses stand for several posts and are not used to know them"
        )
    if document.truncated:
        task.report.fail("truncated", "the document is cut off")
    report_limit(document, task)
    seen: set[tuple[str, ...]] = set()
    for entry in document.entries:
        key = (entry.guid, entry.link, entry.title, entry.markup)
        if key not in seen:
            seen.add(key)
            yield Post(entry, document, url)


def report_limit(document: Document, task: Task) -> None:
    """Tell that a document holds more than is taken from one."""
    if document.left_out:
        taken = len(document.entries)
        task.report.fail(
            "partial", f"{taken + document.left_out:,} entries, of which the first {taken:,} were taken"
        )


def to_entry(raw: Post, task: Task) -> Entry | Skip:
    """Turn a post into an entry; one with neither title nor text, or without anything to know it by, is unusable."""
    entry = raw.entry
    dates = _dates(entry, task.zone)
    guid = "" if entry.guid in raw.document.repeated else entry.guid
    work = _work(raw, task, guid, dates)
    title = one_line(entry.title) or one_line(entry.text, TITLE_WORDS)
    if work and not title and (_is_web(entry.link) or (_is_web(entry.guid) and dates[0])):
        title = work.id.removeprefix("url:")  # it names nothing but a page
    if work is None or not title:
        why = (
            "it has no address, no guid and no date to know it by"
            if title
            else "it has neither title nor text"
        )
        return Skip(why, title)
    announced, updated = dates
    now = task.window.now
    if announced and announced[0].moment and announced[0].moment > now + SLACK:
        task.report.note(f"dated in the future: {announced[0].moment.isoformat()}")
    return Entry(
        id=work.id,
        version=work.version,
        url=work.url,
        aliases=_aliases(raw, guid, work),
        title=title,
        authors=entry.authors,
        announced=announced,
        updated=updated,
        is_stamped=announced is not None and announced[1] in IS_STAMP,
        text=entry.text,
        links=_links(entry.markup, work),
    )


def _dates(entry: RawEntry, zone: str) -> tuple[tuple[ReadDate, str] | None, tuple[ReadDate, str] | None]:
    """(announced, updated), each with its field; a field that cannot be read hides none that can."""
    published = _first(entry.published, zone)
    updated = _first(entry.updated, zone)
    if published is None and updated is not None:
        return updated, None
    return published, updated


def _first(fields: tuple[tuple[str, str], ...], zone: str) -> tuple[ReadDate, str] | None:
    for name, text in fields:
        if date := read_date(text, zone):
            return date, name
    return None


def _work(
    raw: Post, task: Task, guid: str, dates: tuple[tuple[ReadDate, str] | None, tuple[ReadDate, str] | None]
) -> Work | None:
    for address in _addresses(raw.entry, guid, task.config.mode):
        work = identify(address)
        if work and address.partition("#")[0] not in raw.document.repeated:
            return work
        if work:  # a page that holds several posts: their fragments are what tells them apart
            return _part(
                work.id.removeprefix("url:"), address, address if "#" in address else _words(raw.entry, dates)
            )
    known_by = guid or _words(raw.entry, dates)
    return _part(url_key(task.config.url), task.config.url, known_by) if known_by else None


def _words(entry: RawEntry, dates: tuple[tuple[ReadDate, str] | None, tuple[ReadDate, str] | None]) -> str:
    """What a post without an own address is known by; nothing where it says nothing."""
    when = dates[0][0].day.isoformat() if dates[0] else ""
    if entry.title:
        return f"{entry.title}\n{when}"
    return f"{when}\n{entry.markup}" if entry.markup or when else ""


def _part(key: str, url: str, known_by: str) -> Work:
    """A post that is only a part of a page or of a feed."""
    return Work(f"url:{key}{'&' if '?' in key else '?'}entry={sha256(known_by.encode())[:16]}", url=url)


def _addresses(entry: RawEntry, guid: str, mode: str) -> Iterator[str]:
    if mode == "linkblog" and entry.related:
        yield entry.related
    yield from (address for address in (entry.original, entry.link) if _is_web(address))
    if entry.guid_is_link or _is_web(guid):
        yield guid


def _is_web(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def _aliases(raw: Post, guid: str, work: Work) -> tuple[str, ...]:
    found: list[str] = []
    if guid and (named := identify(guid) if _is_web(guid) else None) != work:
        found.append(named.id if named else f"guid:{urlsplit(raw.url).hostname}/{one_line(guid, 200)}")
    for address in (
        (raw.entry.link, raw.entry.original) if "?entry=" not in work.id and "&entry=" not in work.id else ()
    ):
        other = identify(address) if _is_web(address) else None
        if other and other.id != work.id:
            found.append(other.id)
    doi = raw.entry.extra.get("prism_doi") or raw.entry.extra.get("dc_identifier", "")
    named = identify(doi if doi.lower().startswith(("doi:", "http")) else f"doi:{doi}") if doi else None
    if named and named.id.startswith("doi:") and named.id != work.id:
        found.append(named.id)
    return tuple(dict.fromkeys(found))


def _links(markup: str, work: Work) -> tuple[str, ...]:
    """Papers a post speaks of: it is linked to them, never merged with them."""
    ids = [
        found.id
        for found in find_works(markup)
        if found.id.startswith(("arxiv:", "doi:")) and found.id != work.id
    ]
    return tuple(dict.fromkeys(ids))[:MAX_LINKS]
