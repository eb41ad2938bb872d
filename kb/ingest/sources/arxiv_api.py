"""Papers of arXiv by query, category or id list.

API         https://info.arxiv.org/help/api/user-manual.html
Politeness  one request per 3 s on one connection (https://info.arxiv.org/help/api/tou.html), kept by `kb.http`
Identity    ``arxiv:<id>`` with the version beside it; the publisher's DOI is an alias
Dates       ``<published>`` is the submission of v1, ``<updated>`` the submission of the retrieved version; the API does not
            say when a paper was announced. Moderation takes days and the index lags, so windows start seven days early
            and known papers are told by their ids.

The `arxiv` package parses entries; transport, paging and every check of an answer are ours, because the package accepts
truncated pages and error pages as empty results (docs/adr/0014).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from kb.http import NoAnswer
from kb.identity import arxiv_work, doi_work
from kb.ingest.arxivxml import Page, Paper, error_text, read_page
from kb.ingest.contract import Answer, Entry, Skip, Task, one_line
from kb.ingest.dates import ReadDate
from kb.ingest.feedxml import Unreadable
from kb.ingest.workers import parsed

KIND = "arxiv"
URL = "https://export.arxiv.org/api/query"
PAGE = 200
"""Entries per request; the API's own limit is 2,000, long pages fail more often."""
IDS_PER_REQUEST = 50
MAX_WINDOW = 10_000
"""Results of one query above which its window is halved: paging far is unstable, and 30,000 is the API's end."""
TRIES_PER_PAGE = 3
WITHDRAWN = re.compile(
    r"\b(?:this (?:paper|article|submission|work) (?:has been|is|was) )?withdrawn\b|\bretracted\b",
    re.IGNORECASE,
)


UNCHANGED = Page(0, [], 0, complete=True)
"""The answer is what it was when its validators were stored."""


def fetch(task: Task) -> Iterator[Paper]:
    """Yield results: those of the ids where the source lists ids, else those of its query in the window."""
    if task.config.ids:
        yield from _by_id(task, task.config.ids)
    else:
        # to the end of the day: the same address all day long, so that an unchanged answer can be told by its validators
        end = task.window.end.replace(hour=0, minute=0, second=0) + dt.timedelta(days=1)
        yield from _by_query(task, task.window.start - task.requery, end)


def to_entry(raw: Paper, task: Task) -> Entry | Skip:
    """Turn a result into an entry; one whose id is no arXiv id, or which has no title, is unusable."""
    work = arxiv_work(raw.entry_id.rpartition("/abs/")[2] or raw.entry_id)
    if work is None:
        return Skip(f"no arXiv id in {one_line(raw.entry_id, 80)}", one_line(raw.title))
    if not (title := one_line(raw.title)):
        return Skip(f"{work.id} has no title")
    if task.config.mode == "primary" and not _is_primary(raw, task.config.query):
        return Skip(f"cross-listed from {one_line(raw.primary_category, 20)}", title)
    comment = one_line(raw.comment, 300)
    text = raw.summary
    is_withdrawn = bool(WITHDRAWN.search(comment)) or (len(text) < 400 and bool(WITHDRAWN.search(text[:200])))  # noqa: PLR2004
    notices = (f"withdrawn: {comment or one_line(text, 300)}",) if is_withdrawn else ()
    return Entry(
        id=work.id,
        version=work.version,
        url=work.url,
        aliases=(doi_work(raw.doi).id,) if raw.doi else (),
        title=title,
        authors=tuple(one_line(name, 120) for name in raw.authors),
        submitted=(_moment(raw.published), "published"),
        updated=(_moment(raw.updated), "updated"),
        text=text,
        notices=notices,
        wanted=bool(task.config.ids),
    )


def _is_primary(raw: Paper, query: str) -> bool:
    wanted = re.findall(r"\bcat:([\w.-]+)", query)
    return not wanted or raw.primary_category in wanted


def _moment(moment: dt.datetime) -> ReadDate:
    return ReadDate(moment.date(), moment, "")


# By id


def _by_id(task: Task, ids: Sequence[str]) -> Iterator[Paper]:
    works = [(text, arxiv_work(text)) for text in dict.fromkeys(ids)]
    good = [
        work.id.removeprefix("arxiv:") + (f"v{work.version}" if work.version else "")
        for _, work in works
        if work
    ]
    # one bad id spoils a batch, so those that cannot be ids are asked alone
    batches = [[text] for text, work in works if not work]
    batches += [good[i : i + IDS_PER_REQUEST] for i in range(0, len(good), IDS_PER_REQUEST)]
    for batch in batches:
        yield from _batch(task, batch)


def _batch(task: Task, batch: list[str]) -> Iterator[Paper]:
    try:
        page = _page(task, {"id_list": ",".join(batch), "start": 0, "max_results": len(batch)}, len(batch))
    except NoAnswer as problem:
        if problem.status == "bad-request" and len(batch) > 1:
            middle = len(batch) // 2
            yield from _batch(task, batch[:middle])
            yield from _batch(task, batch[middle:])
            return
        task.report.fail(problem.status, f"{', '.join(batch)}: {problem.detail}")
        return
    yield from page.papers
    returned = {_plain_id(result) for result in page.papers}
    if missing := [text for text in batch if not {text, re.sub(r"v\d+$", "", text)} & returned]:
        # an unknown id is answered with 200 and nothing
        task.report.fail("not-found", f"not found: {', '.join(missing)}")


def _plain_id(result: Paper) -> str:
    work = arxiv_work(result.entry_id.rpartition("/abs/")[2])
    return work.id.removeprefix("arxiv:") if work else ""


# By query


def _by_query(task: Task, start: dt.datetime, end: dt.datetime) -> Iterator[Paper]:
    asked = f"({task.config.query}) AND " if task.config.query else ""
    # the API wants twelve digits, GMT; anything else is answered with 400
    asked += f"submittedDate:[{start:%Y%m%d%H%M} TO {end:%Y%m%d%H%M}]"
    size = task.config.page or PAGE
    if task.config.limit:
        size = min(size, task.config.limit)
    query = {"search_query": asked, "sortBy": "submittedDate", "sortOrder": "descending"}
    first = _page(task, {**query, "start": 0, "max_results": size}, size, conditional=True)
    if first is UNCHANGED:
        # the first page tells the total and the newest papers: where it is the same, so is the rest
        task.report.status = "not-modified"
        return
    if first.total == 0 and not first.entries:
        first = _page(
            task, {**query, "start": 0, "max_results": size}, size
        )  # an empty first page is often a flake
    if first.total > MAX_WINDOW and not task.config.limit and end - start > dt.timedelta(days=1):
        middle = start + (end - start) / 2
        yield from _by_query(task, middle, end)
        yield from _by_query(task, start, middle)
        return
    yield from _pages(task, query, first, size, (start, end))
    if not first.entries:
        _doubt_empty(task, size)


def _pages(
    task: Task, query: dict[str, Any], first: Page, size: int, asked: tuple[dt.datetime, dt.datetime]
) -> Iterator[Paper]:
    limit = task.config.limit or first.total
    if first.total > limit:
        task.report.note(
            f"{first.total:,} results, more than the limit of {limit:,}; narrow the query or the days"
        )
    page, start, seen, lost = first, 0, 0, 0
    while True:
        lost += 0 if page.complete else min(size, limit - start) - page.entries
        for result in page.papers[: limit - seen]:
            _check_range(task, result, asked)
            seen += 1
            yield result
        start += size  # by what was asked, not by what could be parsed
        if start >= min(limit, first.total) or not page.entries:
            break
        page = _page(task, {**query, "start": start, "max_results": size}, min(size, limit - start))
    if lost > 0:
        task.report.fail(
            "truncated", f"truncated response: {lost} of {min(limit, first.total)} entries did not arrive"
        )


def _check_range(task: Task, result: Paper, asked: tuple[dt.datetime, dt.datetime]) -> None:
    slack = dt.timedelta(minutes=1)
    if not asked[0] - slack <= result.published <= asked[1] + slack:
        task.report.fail(
            "server-order-violated",
            f"the API gave papers submitted on {result.published:%Y-%m-%d}, outside the days it was asked for",
        )


def _doubt_empty(task: Task, size: int) -> None:
    """Nothing in a window of at least a week: believe it only if the newest paper of the query is older."""
    if not task.config.query:
        return
    query = {"search_query": task.config.query, "sortBy": "submittedDate", "sortOrder": "descending"}
    newest = _page(task, {**query, "start": 0, "max_results": 1}, min(1, size))
    dates = [result.published for result in newest.papers]
    if not newest.entries:
        task.report.fail(
            "partial",
            f"the API knows no paper at all for {task.config.query!r}: wrong query, or it is failing",
        )
    elif dates and max(dates) >= task.window.start - task.requery:
        task.report.fail(
            "partial", "the API says there is nothing in these days and yet gives a paper of these days"
        )


# One page


def _page(task: Task, query: dict[str, Any], expected: int, *, conditional: bool = False) -> Page:
    """Ask for a page until it is whole; the last answer counts if it never is. `UNCHANGED` for a 304."""
    url = f"{task.config.url or URL}?{urlencode(query)}"
    page: Page | None = None
    for _ in range(TRIES_PER_PAGE):
        answer = _ask(task, url, conditional=conditional)
        if answer.not_modified:
            return UNCHANGED
        page = check(answer.body, int(query["start"]), expected, url)
        if page.complete:
            break
    assert page is not None  # noqa: S101  the loop runs at least once
    if lost := page.entries - len(page.papers):
        task.report.fetched += lost
        task.report.unusable += lost
        task.report.note(f"unusable: {lost} entries without id or date")
    return page


def _ask(task: Task, url: str, *, conditional: bool) -> Answer:
    try:
        return task.get(url, accept="application/atom+xml", conditional=conditional)
    except NoAnswer as problem:
        if problem.http == 400 and (said := error_text(problem.body)):  # noqa: PLR2004  HTTP
            raise NoAnswer("bad-request", problem.url, said, http=400) from problem
        raise


def check(body: bytes, start: int, expected: int, url: str) -> Page:
    """Parse a page and say whether it is whole; see `kb.ingest.arxivxml.read_page`.

    Raises:
        NoAnswer: It is no feed, or a feed that tells an error.
    """
    page = parsed(read_page, len(body), body, start, expected)
    if isinstance(page, Unreadable):
        raise NoAnswer(page.status, url, page.detail)
    return page
