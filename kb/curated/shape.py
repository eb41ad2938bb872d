"""The parts of a curator's text. Lines are counted from 1 in the text as it was given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kb.identity import Work

Kind = Literal[
    "entries",
    "candidates",
    "verdicts",
    "tags",
    "complement",
    "paths",
    "references",
    "advice",
    "insight",
    "other",
]
"""What a section holds."""


@dataclass(frozen=True)
class Line:
    """One logical line: a torn table row is one, a flattened list is several with the same number."""

    number: int
    text: str
    """Without bullet, number and pipe decoration."""
    kind: Literal["text", "bullet", "number", "row", "code"] = "text"
    level: int = 0
    """Nesting of a bullet."""
    mark: str = ""
    """Language of code; the number of a numbered line."""


@dataclass(frozen=True)
class Unreadable:
    """A place that could not be taken as it was meant; its text is kept all the same."""

    line: int
    why: str


@dataclass(frozen=True)
class Field:
    """``key：value`` of an entry or of the header."""

    key: str
    """Key of `kb.curated.words.FIELDS`."""
    value: str
    line: int


@dataclass(frozen=True)
class Entry:
    """One numbered entry."""

    n: str
    """``4``, ``10+1``, ``2.1``."""
    title: str
    line: int
    label: str = ""
    """What stands beside the stars: ``must read``."""
    stars: int | None = None
    credibility: int | None = None
    works: tuple[Work, ...] = ()
    """Works it names as its own: by link, by the id in its heading, by its reference. The first is its id."""
    urls: tuple[str, ...] = ()
    """Addresses as written."""
    fields: tuple[Field, ...] = ()
    lines: tuple[Line, ...] = ()
    """Everything below the heading."""

    def value(self, key: str) -> str:
        """Text of the first field ``key``, empty where it has none."""
        return next((f.value for f in self.fields if f.key == key), "")


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, entries excluded."""

    title: str
    kind: Kind
    line: int
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class CandidateRow:
    """A title that was seen and left below the threshold."""

    title: str
    source: str
    reason: str
    line: int


@dataclass(frozen=True)
class VerdictRow:
    """A line of the verdict summary."""

    name: str
    decision: str
    """``keep``, ``watch`` or ``drop``."""
    reason: str
    line: int
    entry: str = ""
    """Number of the entry it speaks of; empty where none fits."""


@dataclass(frozen=True)
class TagCount:
    """A line of the tag table: how many entries a tag has, as stated, and the names it gives."""

    tag: str
    stated: int
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Reference:
    """A line of the reference list."""

    text: str
    url: str
    work: Work | None
    line: int


@dataclass(frozen=True)
class Curated:
    """A whole text."""

    title: str = ""
    curator: str = ""
    date: str = ""
    """``YYYY-MM-DD``, empty where the text names none."""
    zone: str = ""
    """IANA zone, where the text names one."""
    preamble: tuple[Line, ...] = ()
    """Lines before the first section."""
    parts: tuple[Section | Entry, ...] = ()
    """Sections and entries in the order of the text."""
    candidates: tuple[CandidateRow, ...] = ()
    verdicts: tuple[VerdictRow, ...] = ()
    tag_counts: tuple[TagCount, ...] = ()
    references: tuple[Reference, ...] = ()
    actions: dict[str, str] = field(default_factory=dict)
    """Entry number → action, from lists such as “read closely: …”."""
    shelves: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Entry number → topic paths such a list sends it to."""
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Entries in order."""
        return tuple(part for part in self.parts if isinstance(part, Entry))

    @property
    def sections(self) -> tuple[Section, ...]:
        """Sections in order."""
        return tuple(part for part in self.parts if isinstance(part, Section))
