"""arXiv's announcement feeds: which papers were announced today. A hint, because each feed holds one day.

Feed        https://info.arxiv.org/help/rss.html; ``query`` is a category such as ``cs.DC``, several joined by ``+``
Lookup      ids are looked up through the API, which knows versions, dates and authors better than the feed; what the API
            does not give is taken from the feed
Types       ``new`` and ``cross`` count (``mode = "new"``: only new); ``replace`` is a new version and counts only for
            papers that are known
Quiet days  weekends and holidays have no batch; yesterday's batch served again is reported as stale
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from kb.identity import Work, arxiv_work
from kb.ingest.arxiv_calendar import latest_batch, why_quiet
from kb.ingest.arxivxml import Paper
from kb.ingest.contract import Entry, NoAnswer, Skip, Task, one_line
from kb.ingest.dates import read_date
from kb.ingest.feeds import read_document
from kb.ingest.feedxml import RawEntry
from kb.ingest.sources import arxiv_api, feed
from kb.ingest.tex import plain_tex

KIND = "arxiv_rss"
SERVER_LIMIT = 2000
"""Entries of one announcement feed."""
FEED = "https://rss.arxiv.org/atom/"
_LEAD = re.compile(r"^\s*arXiv:\S+\s+Announce Type:\s*(\S+)\s*(?:Abstract:)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Announced:
    """One paper of a batch."""

    work: Work
    entry: RawEntry
    kind: str
    """new, cross, replace or replace-cross."""
    text: str
    """Abstract as the feed gives it."""
    found: Paper | None = None
    """What the API says."""


def fetch(task: Task) -> Iterator[Announced]:
    """Yield the papers of the batch."""
    url = task.config.url or FEED + (task.config.query or "cs")
    answer = task.get(url, accept="application/atom+xml, application/rss+xml, */*;q=0.5", conditional=True)
    if answer.not_modified:
        task.report.status = "not-modified"
        return
    document = read_document(answer)
    for warning in document.warnings:
        task.report.note(warning)
    if document.title.lower().startswith("feed error"):
        raise NoAnswer("bad-request", url, document.title)
    if document.truncated:
        task.report.fail("truncated", "the feed is cut off")
    feed.report_limit(document, task)
    if len(document.entries) == SERVER_LIMIT:
        # the server drops new papers first
        task.report.fail(
            "partial", f"{SERVER_LIMIT:,} entries is the server's limit; follow smaller categories"
        )
    if not document.entries and (why := why_quiet(task.window.now)):
        task.report.note(why)
    papers = list({paper.work: paper for entry in document.entries if (paper := _read(entry))}.values())
    _look_stale(task, papers)
    wanted = [p for p in papers if not p.kind.startswith("replace") or task.memory.has(p.work.id)]
    task.report.outside += len(papers) - len(wanted)
    task.report.fetched += len(papers) - len(wanted)
    found = _look_up(task, wanted)
    for paper in wanted:
        yield dataclasses.replace(paper, found=found.get(paper.work))


def _read(entry: RawEntry) -> Announced | None:
    work = arxiv_work(entry.guid) or arxiv_work(entry.link.rpartition("/abs/")[2])
    if work is None:
        return None
    text = entry.text
    lead = _LEAD.match(text)
    kind = entry.extra.get("arxiv_announce_type") or (lead[1].lower() if lead else "new")
    return Announced(work, entry, kind, text[lead.end() :] if lead else text)


def _look_stale(task: Task, papers: list[Announced]) -> None:
    new = [paper for paper in papers if paper.kind == "new"]
    dates = [
        date for p in new for _, text in p.entry.published if (date := read_date(text, "America/New_York"))
    ]
    if not new or not dates or not all(task.memory.has(paper.work.id) for paper in new):
        return
    expected = latest_batch(task.window.now)
    if max(date.day for date in dates) < expected:
        task.report.fail(
            "stale-batch",
            f"the feed still holds the batch of {max(d.day for d in dates)}; that of {expected} is due",
        )


def _look_up(task: Task, papers: list[Announced]) -> dict[Work, Paper]:
    """Ask the API for the papers; what it does not give stays as the feed has it."""
    api = task.config.api
    if not api and not (urlsplit(task.config.url or FEED).hostname or "").endswith("arxiv.org"):
        return {}
    if not papers:
        return {}
    ids = tuple(
        f"{p.work.id.removeprefix('arxiv:')}v{p.work.version}" if p.work.version else p.work.id
        for p in papers
    )
    config = task.config.model_copy(update={"ids": ids, "url": api or arxiv_api.URL})
    try:
        results = list(arxiv_api.fetch(dataclasses.replace(task, config=config)))
    except NoAnswer as problem:
        task.report.note(f"the API did not answer ({problem.status}); entries are as the feed has them")
        return {}
    return {
        work: result for result in results if (work := arxiv_work(result.entry_id.rpartition("/abs/")[2]))
    }


def to_entry(raw: Announced, task: Task) -> Entry | Skip:
    """Turn an announcement into an entry: the API's record with the day of the announcement."""
    if raw.kind == "cross" and task.config.mode == "new":
        return Skip("cross-listed", one_line(raw.entry.title), is_outside=True)
    announced = next(
        ((date, name) for name, text in raw.entry.published if (date := read_date(text, "America/New_York"))),
        None,
    )
    if raw.found is not None:
        made = arxiv_api.to_entry(raw.found, task)
        return (
            made
            if isinstance(made, Skip)
            else dataclasses.replace(made, announced=announced, is_stamped=True, wanted=False)
        )
    if not (title := one_line(plain_tex(raw.entry.title))):
        return Skip(f"{raw.work.id} has no title")
    names = [name for author in raw.entry.authors for name in author.split(",")]
    return Entry(
        id=raw.work.id,
        version=raw.work.version,
        url=raw.work.url,
        title=title,
        authors=tuple(dict.fromkeys(one_line(plain_tex(name), 120) for name in names if name.strip())),
        announced=announced,
        is_stamped=True,
        text=raw.text,
    )
