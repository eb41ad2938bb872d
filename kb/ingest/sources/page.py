"""One article or documentation page.

Identity    its own address; a canonical address on the same site is used instead, one elsewhere is an alias
Dates       JSON-LD, meta elements, ``<time>`` or the address; a documentation page has none and gets none
Changes     a documentation page is never “published”: what it says now is known by the digest of its text
Politeness  conditional requests; one meta refresh is followed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kb.http import Answer
from kb.identity import find_works, identify
from kb.ingest.contract import Entry, NoAnswer, Skip, Task, one_line
from kb.ingest.extract import LEAST_PROSE, Extract, extract
from kb.ingest.feedxml import Unreadable
from kb.ingest.workers import PAGE_BYTES, apart

KIND = "page"
ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.5"
MAX_LINKS = 10
READABLE = ("text/", "application/xhtml", "application/xml", "")


@dataclass(frozen=True)
class Raw:
    """A fetched page and its text."""

    extract: Extract
    url: str
    """Address after redirects."""


def fetch(task: Task) -> Iterator[Raw]:
    """Yield the page."""
    answer = task.get(task.config.url, accept=ACCEPT, conditional=True)
    if answer.not_modified:
        task.report.status = "not-modified"
        return
    found = _read(answer, task)
    refresh = found.page.refresh if found else ""
    if found and refresh and found.text_chars < LEAST_PROSE and refresh != answer.url:
        answer = task.get(refresh, accept=ACCEPT)
        found = _read(answer, task)
    if found is None or found.text_chars < LEAST_PROSE:
        chars = found.text_chars if found else 0
        raise NoAnswer(
            "no-main-text", answer.url, f"{chars} characters of prose: empty, or drawn by a script"
        )
    task.keep_body(answer.body)
    yield Raw(found, answer.url)


def _read(answer: Answer, task: Task) -> Extract | None:
    if not answer.body.strip():
        raise NoAnswer("empty-body", answer.url, "the answer has no bytes")
    if not answer.media_type.startswith(READABLE):
        raise NoAnswer("unsupported", answer.url, f"{answer.media_type} is no page")
    is_short = len(answer.body) < PAGE_BYTES
    found = read_plain(answer, task.zone) if is_short else apart(read_plain, answer, task.zone)
    if isinstance(found, Unreadable):
        raise NoAnswer(found.status, answer.url, found.detail)
    return found


def read_plain(answer: Answer, zone: str) -> Extract | None:
    """A page's text and what it says of itself, without its tree."""
    found = extract(answer, zone)
    if found is not None:
        found.page.tree = None
    return found


def to_entry(raw: Raw, task: Task) -> Entry | Skip:
    """Turn a page into an entry."""
    page = raw.extract.page
    work = identify(page.canonical or raw.url) or identify(raw.url)
    title = page.title or one_line(raw.extract.markdown.lstrip("# "), 80)
    if work is None or not title:
        return Skip("it has no title" if work else "its address cannot be used")
    aliases = [
        other.id for url in (raw.url, task.config.url) if (other := identify(url)) and other.id != work.id
    ]
    if page.other and page.other != work.id:
        aliases.append(page.other)
    if page.hidden:
        task.report.note(f"{page.hidden} hidden parts were left out")
    short = {kind: kept for kind, kept in raw.extract.losses.items() if len(set(kept.split("/"))) > 1}
    if short:
        task.report.note("lost: " + ", ".join(f"{kind} {kept}" for kind, kept in sorted(short.items())))
    text = raw.extract.markdown.strip()
    return Entry(
        id=work.id,
        version=work.version,
        url=work.url,
        aliases=tuple(dict.fromkeys(aliases)),
        title=title,
        authors=page.authors,
        announced=page.published,
        updated=page.updated,
        text=text,
        losses=raw.extract.losses,
        notices=raw.extract.notices,
        links=_links(raw.extract.markdown, work.id),
        wanted=True,
    )


def _links(markdown: str, own: str) -> tuple[str, ...]:
    ids = [
        found.id
        for found in find_works(markdown)
        if found.id.startswith(("arxiv:", "doi:")) and found.id != own
    ]
    return tuple(dict.fromkeys(ids))[:MAX_LINKS]
