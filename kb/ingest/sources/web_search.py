"""Pages that a web search finds: Tavily's API (https://docs.tavily.com/) and servers that speak it.

A hit is only a candidate: its page is fetched, dated and named like any other, papers through arXiv's API. The key comes
from ``KB_SEARCH_KEY`` and goes only to Tavily or to the server that ``KB_SEARCH_URL`` names; the address in a source
file is never trusted with it, because a pull request could change it.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kb.identity import identify
from kb.ingest.contract import Entry, NoAnswer, Skip, Task, one_line
from kb.ingest.sources import arxiv_api, page

KIND = "web_search"
URL = "https://api.tavily.com/search"
HITS = 10
KINDS = {arxiv_api.KIND: arxiv_api, page.KIND: page}


@dataclass(frozen=True)
class Hit:
    """What was fetched for a hit, or why nothing was."""

    kind: str
    raw: Any
    why: str = ""
    title: str = ""


def fetch(task: Task) -> Iterator[Hit]:
    """Yield what stands behind the hits."""
    endpoint, key = os.environ.get("KB_SEARCH_URL") or URL, os.environ.get("KB_SEARCH_KEY", "")
    if task.config.url and task.config.url != endpoint:
        raise NoAnswer(
            "refused",
            task.config.url,
            "not the search server of your own settings",
            remedy="KB_SEARCH_URL names it",
        )
    if not key:
        raise NoAnswer("refused", endpoint, "no key: KB_SEARCH_KEY is not set")
    days = max(1, (task.window.now - task.window.start).days)
    asked = {
        "query": task.config.query,
        "max_results": task.config.limit or HITS,
        "days": days,
        "search_depth": "basic",
    }
    answer = task.client.post_json(
        endpoint, asked, tally=task.report.tally, headers={"authorization": f"Bearer {key}"}
    )
    papers: list[str] = []
    for title, url in _hits(answer.body, endpoint):
        work = identify(url)
        if work and work.id.startswith("arxiv:"):
            papers.append(work.id.removeprefix("arxiv:"))
        elif work:
            yield _page(task, url, title)
    if papers:
        for result in arxiv_api.fetch(_with(task, ids=tuple(dict.fromkeys(papers)), url=task.config.api)):
            yield Hit(arxiv_api.KIND, result)


def _hits(body: bytes, url: str) -> list[tuple[str, str]]:
    try:
        results = json.loads(body)["results"]
        return [(one_line(str(hit.get("title", ""))), str(hit["url"])) for hit in results[:50]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoAnswer("unsupported", url, f"not an answer of a search API: {error}") from error


def _page(task: Task, url: str, title: str) -> Hit:
    try:
        found = list(page.fetch(_with(task, url=url)))
    except NoAnswer as problem:
        return Hit(page.KIND, None, f"{problem.status}: {problem.detail}", title)
    return Hit(page.KIND, found[0] if found else None, "not modified", title)


def _with(task: Task, **changes: Any) -> Task:
    return dataclasses.replace(task, config=task.config.model_copy(update=changes))


def to_entry(raw: Hit, task: Task) -> Entry | Skip:
    """Turn a hit into an entry; the window decides about its own date, not about the search's."""
    if raw.raw is None:
        return Skip(raw.why, raw.title)
    made = KINDS[raw.kind].to_entry(raw.raw, task)
    return made if isinstance(made, Skip) else dataclasses.replace(made, wanted=False)
