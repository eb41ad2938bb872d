"""Releases of a repository on GitHub, from its Atom feed, which needs no key.

Query       ``query`` is ``owner/name``; ``url`` may name another feed of the same shape
Identity    the release's page; its title gets the repository's name, because “v0.30” alone says nothing
Dates       GitHub gives only ``updated``, the moment of the release
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from kb.ingest.contract import Entry, NoAnswer, Skip, Task
from kb.ingest.sources import feed

KIND = "github_releases"
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def fetch(task: Task) -> Iterator[feed.Post]:
    """Yield the releases, newest first."""
    url = task.config.url
    if not url:
        if not _REPOSITORY.fullmatch(task.config.query):
            raise NoAnswer("bad-request", task.config.name, f"query {task.config.query!r} is no owner/name")
        url = f"https://github.com/{task.config.query}/releases.atom"
    yield from feed.fetch(dataclasses.replace(task, config=task.config.model_copy(update={"url": url})))


def to_entry(raw: feed.Post, task: Task) -> Entry | Skip:
    """Turn a release into an entry."""
    made = feed.to_entry(raw, task)
    if isinstance(made, Skip):
        return made
    found = re.search(r"github\.com/([\w.-]+)/([\w.-]+)/", made.url)
    name = found[2] if found else task.config.publisher
    has_name = name.lower() in made.title.lower()
    return made if has_name or not name else dataclasses.replace(made, title=f"{name} {made.title}")
