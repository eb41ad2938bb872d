"""What a kind of source is: a module under ``kb/ingest/sources`` with two functions and its name.

`fetch` talks to the network and decides nothing; `to_entry` decides and never talks to the network. A module is found
by its ``KIND``, so adding a kind is one file and its test. Everything a source meets is hostile: titles, dates, links and
sizes are checked here, once, when an `Entry` is made into a record.
"""

from __future__ import annotations

import datetime as dt
import importlib
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

from kb.clock import stamp
from kb.errors import BadConfig
from kb.files import sha256
from kb.http import Answer, Client, NoAnswer, Tally, Validators
from kb.ingest.dates import ReadDate
from kb.ingest.text import one_line, plain_text
from kb.model import SourceConfig

SOURCES = Path(__file__).parent / "sources"
SUMMARY_CHARS = 500
"""Publishers' text stays out of git."""
OPEN = dt.timedelta(days=7)
"""How far back archives are asked where no first day was given."""


@dataclass(frozen=True)
class Window:
    """The days that were asked for, and the moments they mean."""

    since: dt.date | None
    """None: whatever feeds hold, and what archives got in the last week."""
    until: dt.date | None
    zone: zoneinfo.ZoneInfo
    now: dt.datetime

    @property
    def start(self) -> dt.datetime:
        """First moment of ``since`` in the zone, UTC; a week ago where no day was given."""
        if self.since is None:
            return self.now - OPEN
        return dt.datetime.combine(self.since, dt.time(), self.zone).astimezone(dt.UTC)

    @property
    def end(self) -> dt.datetime:
        """First moment after ``until``, UTC; now where no end was given."""
        if self.until is None:
            return self.now
        following = self.until + dt.timedelta(days=1)
        return dt.datetime.combine(following, dt.time(), self.zone).astimezone(dt.UTC)

    def holds(self, date: ReadDate) -> bool:
        """Whether a date lies in the window; a bare day is compared as a day, whatever the zone."""
        if date.moment is None:
            return (self.since is None or self.since <= date.day) and (
                self.until is None or date.day <= self.until
            )
        is_late_enough = self.since is None or self.start <= date.moment
        return is_late_enough and (self.until is None or date.moment < self.end)

    def describe(self) -> str:
        """The days and the moments they mean, for people."""
        if self.since is None:
            return "everything that feeds hold; archives from the last seven days"
        last = f" to {self.until}" if self.until else ""
        return f"{self.since}{last} in {self.zone.key}, that is {stamp(self.start)} to {stamp(self.end)}"


@dataclass(frozen=True)
class Entry:
    """What one answer says about one work, before it becomes an `Item`."""

    id: str
    version: str = ""
    url: str = ""
    aliases: tuple[str, ...] = ()
    title: str = ""
    authors: tuple[str, ...] = ()
    submitted: tuple[ReadDate, str] | None = None
    """Date and the field that held it; likewise below."""
    updated: tuple[ReadDate, str] | None = None
    announced: tuple[ReadDate, str] | None = None
    text: str = ""
    """All the text there is; 500 characters of it go into the record, all of it into the content hash."""
    losses: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    wanted: bool = False
    """Asked for by name (an id, an address): the window does not apply."""
    is_stamped: bool = False
    """``announced`` is a stamp that changes without the work: the moment a feed was made, or an ``updated`` field."""
    is_notice: bool = False
    """Only the notices are new: they are added to what is known of the work."""

    @cached_property
    def summary(self) -> str:
        """What goes into the record."""
        return one_line(self.text, SUMMARY_CHARS)

    @cached_property
    def content(self) -> str:
        """Digest of what makes an entry new when it changes; ``updated`` alone does not, feeds stamp it at will.

        The same as `kb.files.digest` gives, five times as fast: lists and texts are the same bytes in both.
        """
        from pydantic_core import to_json

        told = [
            self.title,
            self.authors,
            self.text,
            [_iso(self.submitted), "" if self.is_stamped else _iso(self.announced)],
            self.notices,
            self.links,
            sorted(self.losses.items()),
        ]
        return sha256(to_json(told))


def _iso(date: tuple[ReadDate, str] | None) -> str:
    return "" if date is None else (date[0].moment or date[0].day).isoformat()


@dataclass(frozen=True)
class Skip:
    """Why one answer is no entry."""

    why: str
    title: str = ""
    is_outside: bool = False
    """It is fine, but does not belong to what was asked for."""


@dataclass(frozen=True)
class DraftText:
    """A curator's text, taken into the inbox as a whole."""

    name: str
    """File name; its stem may give the slug."""
    data: bytes


@dataclass
class Report:
    """What happened to one source: a funnel with reasons, and one status."""

    name: str
    status: str = "ok"
    fetched: int = 0
    new: int = 0
    known: int = 0
    updated: int = 0
    unusable: int = 0
    outside: int = 0
    """Entries dated outside the window."""
    dropped: int = 0
    """Entries of works a person deleted."""
    tally: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    """Explanations, in the order they came up."""
    moved_to: str = ""
    """New address of the source, where every redirect was permanent."""

    def note(self, text: str) -> None:
        """Add an explanation, once."""
        if text not in self.notes:
            self.notes.append(text)

    def fail(self, status: str, detail: str) -> None:
        """Lower the status; the first failure is the one that is shown, unless nothing was wrong before."""
        if self.status in {"ok", "no-news", "not-modified"}:
            self.status = status
        self.note(detail)

    def to_json(self) -> dict[str, Any]:
        """The source's entry in ``kb ingest --json``."""
        counts = {key: getattr(self, key) for key in ("fetched", "new", "known", "updated", "unusable")}
        return {
            "name": self.name, "status": self.status, **counts, "outside": self.outside, "dropped": self.dropped,
            "requests": self.tally.requests, "bytes": self.tally.bytes, "seconds": round(self.seconds, 3),
            "detail": "; ".join(self.notes),
        }  # fmt: skip


class Memory(Protocol):
    """What a source may ask about the base."""

    def has(self, work: str, version: str = "") -> bool:
        """Whether this work, or this version of it, is known."""
        ...


@dataclass
class Task:
    """One source in one run."""

    config: SourceConfig
    window: Window
    client: Client
    memory: Memory
    report: Report
    validators: dict[str, Validators] = field(default_factory=dict)
    """Address → validators of the last committed answer."""
    received: dict[str, Validators] = field(default_factory=dict)
    """Address → validators to store once everything is committed."""
    bodies: list[bytes] = field(default_factory=list)
    """Bytes to keep under ``.kb/bodies``."""
    drafts: list[DraftText] = field(default_factory=list)
    """Curators' texts to take into the inbox."""
    root: Path | None = None
    """Folder of the base, for kinds that read files which stand in it."""
    wanted: bool = False
    """The ids or addresses were named by the user."""
    stopped: str = ""
    """Why it is not asked at all; empty where it is."""
    requery: dt.timedelta = dt.timedelta(days=7)
    """How far windows overlap: indexes lag and have holes."""

    def get(self, url: str, *, accept: str = "*/*", conditional: bool = False) -> Answer:
        """Fetch an address on behalf of this source.

        Raises:
            NoAnswer: As `kb.http.Client.get`.
        """
        validators = self.validators.get(url) if conditional else None
        answer = self.client.get(url, tally=self.report.tally, validators=validators, accept=accept)
        if answer.moved_to:
            self.report.moved_to = answer.moved_to
        stated = (
            answer.validators if answer.validators.headers() else validators if answer.not_modified else None
        )
        if conditional and stated is not None and stated.headers():
            self.received[url] = stated
        return answer

    def keep_body(self, body: bytes) -> None:
        """Keep fetched bytes by digest, outside git, so that quotes can be checked; written at the commit."""
        self.bodies.append(body)

    @property
    def zone(self) -> str:
        """Zone of dates that carry none."""
        return self.config.zone


class Source(Protocol):
    """A module that is a kind of source."""

    KIND: str
    """Name used in ``sources/*.toml``."""

    def fetch(self, task: Task) -> Iterator[Any]:
        """Yield what the service says, one work at a time. Network here, no decisions.

        Raises:
            NoAnswer: The service failed; what was yielded before is kept.
        """
        ...

    def to_entry(self, raw: Any, task: Task) -> Entry | Skip | DraftText:
        """Turn one answer into an entry, or say why not. Decisions here, no network."""
        ...


@cache
def kinds() -> dict[str, Source]:
    """Kinds of sources by name: every module of the folder that has a ``KIND``."""
    found: dict[str, Source] = {}
    for path in sorted(SOURCES.glob("[a-z]*.py")):
        module: Any = importlib.import_module(f"kb.ingest.sources.{path.stem}")
        if hasattr(module, "KIND"):
            found[module.KIND] = module
    return found


def kind_of(config: SourceConfig) -> Source:
    """The module of a source's kind.

    Raises:
        BadConfig: There is no such kind.
    """
    if config.kind not in kinds():
        raise BadConfig(
            f"sources/{config.name}.toml: kind {config.kind!r} not used",
            cause=f"kinds are {', '.join(sorted(kinds()))}",
            remedy="use one of them, or add kb/ingest/sources/<kind>.py",
            next_command="kb sources list",
        )
    return kinds()[config.kind]


__all__ = [
    "Answer", "DraftText", "Entry", "Memory", "NoAnswer", "Report", "Skip", "Source", "Task", "Validators", "Window", "kind_of", "kinds",
    "one_line", "plain_text",
]  # fmt: skip
