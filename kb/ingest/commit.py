"""Turns entries into items: is the work known, is it new, is it in the window, did its text change?"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import cached_property

from kb.clock import stamp
from kb.ingest.arxiv_calendar import earliest_announcement
from kb.ingest.contract import SUMMARY_CHARS, Entry, Task, Window
from kb.ingest.dates import ReadDate
from kb.ingest.known import Known
from kb.ingest.seen import Seen
from kb.model import DateStamp, Item
from kb.store import Base
from kb.texts import keep_texts

MASS = 0.8
"""Share of a known feed's posts that are unknown and old: then its ids changed, and nothing is news."""
MASS_LEAST = 5


@dataclass
class Taken:
    """What a source's entries became."""

    new: list[Item] = field(default_factory=list)
    updated: list[Item] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    """Works in the base that the answer spoke of."""


class Committer:
    """Judges entries against what is known and appends what is new.

    Args:
        base: Where items go.
        known: What is there.
        window: Days that count.
        dry_run: Judge, write nothing.
    """

    def __init__(self, base: Base, known: Known, window: Window, *, dry_run: bool) -> None:
        self.base = base
        self.known = known
        self.window = window
        self.dry_run = dry_run
        self._at = stamp(window.now)
        self._now = DateStamp(at=self._at, field="first_seen")
        self._view = known.look_up(())
        self._told: set[tuple[str, str]] = set()
        """(id, version) that the present source has spoken of: what it says first counts."""
        self._texts: dict[str, str] = {}
        """Content digest → text longer than a summary."""

    def take(self, task: Task, entries: list[Entry], explained: list[str]) -> Taken:
        """Judge one source's entries, stage what is new and fill in its report."""
        self._told = set()
        facts = self.known.source_facts(task.config.name)
        taken = Taken()
        self._view = self.known.look_up(key for entry in entries for key in (entry.id, *entry.aliases))
        for entry in entries:
            self._judge(task, entry, facts, taken, explained)
        if self._ids_changed(task, entries, taken, facts):
            return Taken()
        self._look_for_gap(task, entries, taken, facts)
        self.known.stage(self._view.items)
        return taken

    def flush(self) -> None:
        """Write what was staged."""
        if self.dry_run:
            return
        keep_texts(self.base, self._texts)
        self._texts = {}
        self.known.flush()

    def _judge(
        self, task: Task, entry: Entry, facts: tuple[int, str, str], taken: Taken, explained: list[str]
    ) -> None:
        report = task.report
        work, key, versions = self._view.resolve(entry.id, entry.aliases)
        if key:
            explained.append(f"{task.config.name}: {entry.id} is {work}, known by {key}")
        if work in self.known.dropped:
            report.dropped += 1
            return
        if entry.is_notice or (not entry.version and versions and work.startswith("arxiv:")):
            self._notice(task, entry, work, taken)
            return
        seen = versions.get(entry.version)
        content = entry.content
        is_told = (work, entry.version) in self._told
        self._told.add((work, entry.version))
        if is_told or (seen and (seen.content == content or not _may_update(seen.source, task.config.name))):
            report.known += 1
            taken.ids.append(work)
            return
        if not versions and not self._counts(task, entry, facts):
            report.outside += 1
            return
        first = min((known.first_seen for known in versions.values()), default=self._at)
        item = self._item(task, entry, work, content, first)
        if notice := self._newer(entry, work, versions):
            item = item.model_copy(update={"notices": (*item.notices, notice)})
            report.note(f"{work}: {notice}")
        self._view.add(item)
        if len(entry.text) > SUMMARY_CHARS:
            self._texts[content] = entry.text
        taken.ids.append(work)
        if versions:
            report.updated += 1
            taken.updated.append(item)
        else:
            report.new += 1
            taken.new.append(item)
        for notice in entry.notices:
            report.note(f"{work}: {notice}")

    def _newer(self, entry: Entry, work: str, versions: dict[str, Seen]) -> str:
        """What a reader of a draft or a page must know: the work has a version that nobody there has read."""
        read = self._read_versions.get(work, set()) if entry.version and versions else set()
        before = max((v for v in versions if v.isdecimal()), key=int, default="")
        if not read or entry.version in read or not before or int(before) >= int(entry.version):
            return ""
        return f"version {entry.version} is out; what was drafted speaks of version {max(read, key=int)}"

    @cached_property
    def _read_versions(self) -> dict[str, set[str]]:
        """Work → versions that drafts in any stage speak of; read once, and only where a work has a new version."""
        from kb.draft import read_drafts

        found: dict[str, set[str]] = {}
        for _, draft in read_drafts(self.base):
            for entry in draft.entries:
                if entry.version:
                    found.setdefault(entry.item, set()).add(str(entry.version))
        return found

    def _notice(self, task: Task, entry: Entry, work: str, taken: Taken) -> None:
        """Add notices to the newest version of a known work; a record without a version tells nothing else new."""
        taken.ids.append(work)
        versions = self.base.latest_items().get(work, {}) if entry.notices else {}
        newest = max(versions.values(), key=lambda item: (len(item.version), item.version), default=None)
        if newest is None or set(entry.notices) <= set(newest.notices):
            task.report.known += 1
            return
        # the digest stays: the text is the same, and the source that gave it must not take the notice for a change
        values = newest.to_json() | {"notices": [*dict.fromkeys([*newest.notices, *entry.notices])]}
        item = Item.model_validate(values | {"fetched_at": self._at})
        self._view.add(item)
        taken.updated.append(item)
        task.report.updated += 1
        for notice in entry.notices:
            task.report.note(f"{work}: {notice}")

    def _counts(self, task: Task, entry: Entry, facts: tuple[int, str, str]) -> bool:
        """Whether an unknown work belongs to the days that were asked for."""
        if entry.wanted or task.wanted:
            return True
        if entry.announced is not None:
            return self.window.holds(entry.announced[0])
        if entry.submitted is None:
            return True  # undated stays undated: it counts once, when it is first seen
        return self._paper_counts(entry.submitted[0], facts)

    def _paper_counts(self, submitted: ReadDate, facts: tuple[int, str, str]) -> bool:
        """Whether a paper of which only the submission is known can have been announced in these days."""
        if self.window.since is None and self.window.until is None:
            return True
        # a bare day means any moment of it; the last one is announced last
        last = dt.datetime.combine(submitted.day, dt.time(23, 59), dt.UTC)
        earliest = earliest_announcement(submitted.moment or last)
        if self.window.until is not None and earliest >= self.window.end:
            return False
        # a paper that could have been announced while we already followed the source, and was not, was held back
        followed = dt.datetime.fromisoformat(facts[2]) if facts[0] and facts[2] else None
        return earliest >= self.window.start or (followed is not None and earliest >= followed)

    def _item(self, task: Task, entry: Entry, work: str, content: str, first: str) -> Item:
        aliases = dict.fromkeys(entry.aliases)
        if work != entry.id:
            aliases[entry.id] = None
        return Item(
            id=work,
            version=entry.version,
            source=task.config.name,
            url=entry.url,
            aliases=tuple(alias for alias in aliases if alias != work),
            title=entry.title,
            authors=entry.authors[:200],
            submitted=_stamp(entry.submitted),
            updated=_stamp(entry.updated),
            announced=_stamp(entry.announced),
            first_seen=self._now if first == self._at else DateStamp(at=first, field="first_seen"),
            summary=entry.summary,
            content_sha256=content,
            fetched_at=self._at,
            losses=entry.losses,
            notices=entry.notices,
            links=entry.links,
        )

    def _ids_changed(
        self, task: Task, entries: list[Entry], taken: Taken, facts: tuple[int, str, str]
    ) -> bool:
        """Whether a followed feed suddenly calls its old posts by new ids (a migration)."""
        old = [
            item
            for item in taken.new
            if item.announced and facts[1] and item.announced.at[:10] <= facts[1][:10]
        ]
        if facts[0] < MASS_LEAST or len(old) < MASS_LEAST or len(old) < MASS * len(entries):
            return False
        report = task.report
        report.fail(
            "mass-id-change",
            f"{len(old)} of {len(entries)} posts are unknown and not newer than what is known: the feed changed its ids; "
            "nothing was taken",
        )
        report.new = report.updated = 0
        report.unusable += len(taken.new) + len(taken.updated)
        return True

    def _look_for_gap(
        self, task: Task, entries: list[Entry], taken: Taken, facts: tuple[int, str, str]
    ) -> None:
        report = task.report
        dates = [entry.announced[0].day.isoformat() for entry in entries if entry.announced]
        is_full = task.config.kind in {"feed", "github_releases"} and dates and facts[0] and not report.known
        since = self.window.since.isoformat() if self.window.since else ""
        if (
            task.config.kind in {"feed", "github_releases"}
            and not facts[0]
            and since
            and dates
            and min(dates) > since
        ):
            report.note(
                f"{len(entries)}-item feed, followed for the first time: items between {since} and {min(dates)} may be missing"
            )
        if is_full and len(taken.new) == len(entries) and facts[1] and min(dates) > facts[1][:10]:
            report.fail(
                "partial",
                f"{len(entries)}-item feed, no known id: items between {facts[1][:10]} and {min(dates)} may be missing",
            )


def _may_update(owner: str, source: str) -> bool:
    """A work belongs to the source that gave it first; what was only named by a draft is taken over by any source."""
    return owner == source or owner.startswith("draft:")


def _stamp(date: tuple[ReadDate, str] | None) -> DateStamp | None:
    return date[0].stamp(date[1]) if date else None
