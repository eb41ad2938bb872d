"""One network ingest: every source asked, every entry accounted for, every result told with its reason.

Sources are fetched side by side and committed one after another in name order, so what is written does not depend on
who answered first. A source that fails stops no other, and what it gave before it failed is kept. Items are appended
first, validators stored last: a crash in between costs a request, never an item.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import datetime as dt
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kb.clock import now, stamp
from kb.errors import CannotRun, KbError, WrongUse, worst
from kb.files import sha256
from kb.http import Client, NoAnswer
from kb.ingest import addresses, validators
from kb.ingest.arxiv_calendar import why_quiet
from kb.ingest.commit import Committer
from kb.ingest.contract import DraftText, Entry, Report, Skip, Task, Window, kind_of
from kb.ingest.known import Known
from kb.ingest.likeness import Alike
from kb.ingest.merges import proposals
from kb.ingest.tombstones import record_deletions
from kb.ingest.workers import side_by_side
from kb.lock import LONG_WAIT_S, hold
from kb.model import Item, SourceConfig
from kb.store import Base
from kb.vocab import FINE_STATUS

WORKERS = 8
"""Sources fetched side by side; one host is never asked twice at once more often than its pace."""
FEED_KINDS = frozenset({"feed", "github_releases"})
BATCH = 5000
"""Items that are written together: one append and one sync to disk for many small feeds."""
MOST_COMPARED = 500
"""New works whose titles are compared at once; after a larger import `kb why` does it one by one."""
FINE = FINE_STATUS | {"moved", "withdrawn"}
"""Statuses that need no rerun: the answer came, and the report says what a person may change."""
UNKNOWN_NAME = frozenset({"not-found", "bad-request"})
Listener = Callable[[dict[str, Any]], None]


@dataclass
class Outcome:
    """What a run did."""

    window: Window
    reports: list[Report] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    """Which key matched what, for ``--explain``."""
    drafts: list[dict[str, Any]] = field(default_factory=list)
    """Drafts that sources brought, as the contract shows them."""
    proposed: dict[str, list[Alike]] = field(default_factory=dict)
    """New works and known ones that may be the same."""

    def to_json(self) -> dict[str, Any]:
        """The document of ``kb ingest --json``, drafts aside."""
        return {
            "window": {
                "since": self.window.since.isoformat() if self.window.since else "",
                "utc": [stamp(self.window.start) if self.window.since else "", stamp(self.window.end)],
            },
            "sources": [report.to_json() for report in self.reports],
            "items": {"new": self.new, "updated": self.updated},
            "drafts": self.drafts,
            "proposed": [
                {"item": work, "like": one.id, "title": one.title, "share": one.share}
                for work, alike in self.proposed.items()
                for one in alike
            ],
        }

    def exit_code(self) -> int:
        """0, 4 where something did not answer, 2 where only names were asked that mean nothing."""
        failed = [report for report in self.reports if report.status not in FINE]
        came = any(report.new or report.known or report.updated for report in self.reports)
        if failed and not came and all(r.name in NAMED and r.status in UNKNOWN_NAME for r in self.reports):
            return 2
        return worst([4 for _ in failed])


NAMED = {"arxiv-id": "arxiv", "url": "page"}
"""Name of the source that an option makes → its kind."""


def named_sources(arxiv_ids: Sequence[str], urls: Sequence[str]) -> list[SourceConfig]:
    """Sources for what the command line names: ids, and addresses, which may be those of papers."""
    from kb.identity import identify

    ids = list(arxiv_ids)
    pages: list[str] = []
    for url in urls:
        work = identify(url)
        if work is not None and work.id.startswith("arxiv:"):
            ids.append(work.id.removeprefix("arxiv:") + (f"v{work.version}" if work.version else ""))
        else:
            pages.append(url)
    found = []
    if ids:
        found.append(
            SourceConfig(
                name="arxiv-id", kind="arxiv", ids=tuple(dict.fromkeys(ids)), why="named by the user"
            )
        )
    found.extend(
        SourceConfig(name=f"url-{n}" if n > 1 else "url", kind="page", url=url, why="named by the user")
        for n, url in enumerate(dict.fromkeys(pages), 1)
    )
    return found


def ingest(
    base: Base,
    sources: Iterable[SourceConfig],
    window: Window,
    client: Client,
    *,
    dry_run: bool = False,
    fresh: bool = False,
    listen: Listener = lambda _: None,
) -> Outcome:
    """Fetch sources and append what is new.

    Args:
        base: Where items go.
        sources: What to ask.
        window: Days that count.
        client: The way out.
        dry_run: Fetch and judge, write nothing.
        fresh: Ask for everything, also for what has not changed since the last run.
        listen: Called with one event per step, for progress.

    Raises:
        Busy: Another network ingest or a sync is running.
        CannotRun: Every source failed because this machine is offline by its settings.
        BadConfig: A source names a kind that does not exist.
    """
    chosen = sorted(sources, key=lambda source: source.name)
    kinds = {source.name: kind_of(source) for source in chosen}
    with hold(base.root, "long", "kb ingest", wait_s=LONG_WAIT_S), Known(base) as known, _few_collections():
        if not dry_run:
            record_deletions(base, known)
        outcome = Outcome(window)
        tasks = [_task(base, source, window, client, known, fresh=fresh) for source in chosen]
        committer = Committer(base, known, window, dry_run=dry_run)
        listen({"event": "start", "sources": [task.config.name for task in tasks]})
        feeds = [task for task in tasks if task.config.kind in FEED_KINDS]
        with (
            side_by_side(len(feeds), sum(not task.validators for task in feeds)),
            concurrent.futures.ThreadPoolExecutor(WORKERS, thread_name_prefix="ingest") as pool,
        ):
            jobs = [pool.submit(_fetch, task, kinds[task.config.name], listen) for task in tasks]
            waiting: list[tuple[Task, list[str]]] = []
            try:
                for task, job in zip(tasks, jobs, strict=True):
                    if not job.done() or len(known.pending) >= BATCH:
                        _settle(waiting, committer)
                    waiting.append((task, _commit(task, job.result(), committer, outcome)))
                    listen({"event": "source", **task.report.to_json()})
                _settle(waiting, committer)
            except BaseException:
                for job in jobs:
                    job.cancel()
                raise
        if not dry_run:
            _close(base, known, outcome)
        listen({"event": "end", "new": len(outcome.new), "updated": len(outcome.updated)})
    _refuse_offline(outcome)
    return outcome


def _close(base: Base, known: Known, outcome: Outcome) -> None:
    with base.writing("kb ingest"):
        known.settle()
    if len(outcome.new) <= MOST_COMPARED:
        outcome.proposed = proposals(base, known, outcome.new)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Look for cyclic garbage seldom: records hold no cycles, and every look goes through all that are there."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _refuse_offline(outcome: Outcome) -> None:
    failed = [report for report in outcome.reports if any("KB_OFFLINE" in note for note in report.notes)]
    if failed and len(failed) == len(outcome.reports):
        raise CannotRun(
            "kb ingest: nothing was asked",
            cause="KB_OFFLINE is set",
            remedy="unset it, or give drafts with --file",
        )


def _task(
    base: Base, source: SourceConfig, window: Window, client: Client, known: Known, *, fresh: bool
) -> Task:
    task = Task(
        config=source,
        window=window,
        client=client,
        memory=known,
        report=Report(source.name),
        validators={} if fresh else validators.load(base, source.name, window, known),
        wanted=source.name in NAMED or source.name.startswith("url-"),
        root=base.root,
    )
    task.stopped = "" if fresh else addresses.stopped(known, task)
    return task


def _fetch(task: Task, kind: Any, listen: Listener) -> list[Entry]:
    """Ask one source; runs in a worker thread and raises nothing a source can cause."""
    started = time.monotonic()
    listen({"event": "fetch", "name": task.config.name})
    entries: list[Entry] = []
    if task.stopped:
        task.report.fail("gone", task.stopped)
        return entries
    try:
        entries.extend(_judged(kind.fetch(task), kind, task))
    except NoAnswer as problem:
        task.report.fail(problem.status, problem.detail)
    except KbError as problem:
        task.report.fail("unsupported", f"{problem.what}: {problem.cause}")
    task.report.seconds = time.monotonic() - started
    return entries


def _judged(raws: Iterator[Any], kind: Any, task: Task) -> Iterator[Entry]:
    for raw in raws:
        task.report.fetched += 1
        made = kind.to_entry(raw, task)
        if isinstance(made, DraftText):
            task.drafts.append(made)
        elif isinstance(made, Skip) and made.is_outside:
            task.report.outside += 1
        elif isinstance(made, Skip):
            task.report.unusable += 1
            task.report.note(f"unusable: {made.why}" + (f" ({made.title})" if made.title else ""))
        else:
            # worked out here, where other sources are still waited for, and not while all wait for the commit
            made.content, made.summary  # noqa: B018
            yield made


def _commit(task: Task, entries: list[Entry], committer: Committer, outcome: Outcome) -> list[str]:
    """Stage what a source gave and complete its report; ids of the works it spoke of."""
    report = task.report
    items = committer.take(task, entries, outcome.explained)
    if task.drafts:
        _take_drafts(task, committer, outcome)
    outcome.reports.append(report)
    outcome.new.extend(item.id for item in items.new)
    outcome.updated.extend(item.id for item in items.updated)
    if report.status == "not-modified" and report.fetched:
        report.status = "ok"  # only a part of it was unchanged
    if report.status == "ok" and not (report.new or report.updated):
        report.status = "no-news"
        if task.config.kind.startswith("arxiv") and (why := why_quiet(task.window.now)):
            report.note(why)
    addresses.remember(committer.known, task)
    return items.ids


def _take_drafts(task: Task, committer: Committer, outcome: Outcome) -> None:
    """Take texts that a source brought into the inbox; their entries are what the source gave."""
    from kb.ingest.files import ingest_texts

    base, report = committer.base, task.report
    committer.flush()
    with base.writing("kb ingest"):
        made = ingest_texts(
            base, task.drafts, curator=task.config.publisher or None, dry_run=committer.dry_run
        )
    committer.known.follow()
    report.fetched += sum(draft.entries for draft in made.drafts) - len(task.drafts)
    report.new += sum(draft.new for draft in made.drafts)
    report.known += sum(draft.known for draft in made.drafts)
    report.updated += sum(draft.updated for draft in made.drafts)
    report.unusable += len(made.failed)
    for draft in made.drafts:
        report.note(f"{draft.path}: {draft.entries} entries" + (", known" if draft.is_known else ""))
    for problem in made.failed:
        report.fail("partial", f"{problem.what}: {problem.cause}")
    outcome.drafts.extend(draft.to_json() for draft in made.drafts if not draft.is_known)
    outcome.new.extend(made.new)
    outcome.updated.extend(made.updated)


def _settle(waiting: list[tuple[Task, list[str]]], committer: Committer) -> None:
    """Write what was staged, then what may only be kept once that is written."""
    committer.flush()
    for task, ids in waiting:
        if committer.dry_run:
            continue
        for body in task.bodies:
            committer.base.write(committer.base.bodies / sha256(body), body)
        if task.report.status in FINE and task.report.status != "not-modified":
            validators.store(committer.base, task.config.name, task.window, task.received, ids)
    waiting.clear()


def open_window(base: Base, since: dt.date | None, until: dt.date | None, zone: str) -> Window:
    """The window of a run in the base's zone, or in ``zone`` where one is given.

    Raises:
        WrongUse: There is no such zone, or the last day lies before the first.
    """
    import zoneinfo

    try:
        place = zoneinfo.ZoneInfo(zone or base.settings.zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise WrongUse(
            f"--tz {zone}: no such zone", cause="it must be an IANA name", remedy="for example Asia/Shanghai"
        ) from error
    if since and until and until < since:
        raise WrongUse(
            f"--until {until}: before --since {since}", cause="the window holds no day", remedy="swap them"
        )
    return Window(since=since, until=until, zone=place, now=now())


__all__ = ["Item", "Outcome", "ingest", "named_sources", "open_window"]
