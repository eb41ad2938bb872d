"""What `kb check` finds, and what its units look at."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kb.curated import Curated, Entry, Line, read_curated
from kb.draft import DraftPath, list_drafts, split_front_matter
from kb.errors import BadConfig, BadInput
from kb.files import decode_text, read_bytes
from kb.model import Claim, Draft, Item
from kb.store import MAX_PAGE_BYTES, Base

SHOWN = 200
"""Characters of a line that a message repeats."""
MIN_WORDS = 3
"""Letters below which two lines are alike by chance."""


@dataclass(frozen=True)
class Finding:
    """One place that a person should look at."""

    file: str
    """Below the base."""
    line: int
    """Counted from 1; 0 where the whole file is meant."""
    code: str
    message: str
    """What is wrong, with the words it is about."""
    stated: str = ""
    """What the text says, where there is something to compare."""
    counted: str = ""
    """What is the case."""
    original_line: int | None = None
    """Where the same words stand in the untouched original of an imported draft."""

    def to_json(self) -> dict[str, Any]:
        """The contract's object."""
        return {
            "file": self.file,
            "line": self.line,
            "code": self.code,
            "message": self.message,
            "stated": self.stated,
            "counted": self.counted,
            "original_line": self.original_line,
        }


@dataclass(frozen=True)
class DraftText:
    """A draft as it stands in the base, read as the text it is."""

    found: DraftPath
    file: str
    record: Draft | None
    values: dict[str, Any] | None
    """Its front matter as written; None where it has none."""
    curated: Curated
    original: tuple[str, ...]
    """Lines of the untouched original beside it; empty where there is none."""
    lines: tuple[str, ...]

    def finding(self, line: int, code: str, message: str, *, stated: str = "", counted: str = "") -> Finding:
        """A finding in this draft, with the line of the original that holds the same words."""
        return Finding(self.file, line, code, message, stated, counted, self._line_before(line, message))

    def _line_before(self, line: int, message: str) -> int | None:
        """Line of the original with the words of ``line``, else with those the message begins with."""
        if not self.original or not 0 < line <= len(self.lines):
            return None
        for text in (
            re.sub(r"^#+\s+[\d.+]+\s+·\s+", "", self.lines[line - 1]),
            message.split(": ", maxsplit=1)[0],
        ):
            wanted = _bare(text)
            hits = (
                n
                for n, old in enumerate(self.original, 1)
                if len(wanted) > MIN_WORDS and wanted in _bare(old)
            )
            if hit := next(hits, None):
                return hit
        return None

    def entry(self, n: str) -> Entry | None:
        """The entry with a number."""
        return next((entry for entry in self.curated.entries if entry.n == n), None)

    def all_lines(self) -> Iterable[Line]:
        """Every logical line, entries' and sections' alike."""
        yield from self.curated.preamble
        for part in self.curated.parts:
            yield from part.lines


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def shown(text: str) -> str:
    """A line of a draft as a message repeats it: one line, cut."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"


@dataclass
class Subject:
    """What all units look at; everything is read once, and only when a unit asks."""

    base: Base
    today: dt.date
    rule_digest: Callable[[Iterable[Claim]], str] | None = None
    """Digest of acceptance rules as the harness hashes them into measurements."""
    unreadable: list[Finding] = field(default_factory=list)
    """What could not be read at all."""

    @cached_property
    def drafts(self) -> list[DraftText]:
        """Every draft that is text; others are in ``unreadable``."""
        read = (self._draft(path) for path in list_drafts(self.base))
        return [text for text in read if text is not None]

    def _draft(self, found: DraftPath) -> DraftText | None:
        from kb.draft import read_draft

        file = self.base.relative(found.path)
        try:
            text = decode_text(read_bytes(found.path, limit=MAX_PAGE_BYTES), found.path.name).replace(
                "\r\n", "\n"
            )
            values, body = split_front_matter(text, found.path.name)
            curated = read_curated(body, found.path.name, 1 + text[: len(text) - len(body)].count("\n"))
        except BadInput as error:
            self._cannot(file, error)
            return None
        try:
            record, _ = read_draft(found.path)
        except BadInput as error:
            self._cannot(file, error)
            record = None
        return DraftText(
            found, file, record, values, curated, self._original(found.path), tuple(text.split("\n"))
        )

    def _cannot(self, file: str, error: BadInput) -> None:
        line = re.search(r":(\d+):", error.what)
        self.unreadable.append(Finding(file, int(line.group(1)) if line else 1, "unreadable", error.cause))

    @staticmethod
    def _original(path: Path) -> tuple[str, ...]:
        beside = path.with_suffix(".orig")
        if not beside.is_file():
            return ()
        return tuple(beside.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n"))

    @cached_property
    def items(self) -> dict[str, dict[str, Item]]:
        """Items by id and version."""
        return self.base.latest_items()

    @cached_property
    def claims(self) -> list[tuple[str, int, Claim]]:
        """(file, line, claim); files that cannot be read are in ``unreadable``."""
        found: list[tuple[str, int, Claim]] = []
        for path in sorted((self.base.root / "claims").glob("*.toml")):
            file = self.base.relative(path)
            try:
                claims = self.base.claims([path.stem])
            except BadConfig as error:
                self.unreadable.append(Finding(file, 1, "unreadable", f"{error.what}: {error.cause}"))
                continue
            text = path.read_text(encoding="utf-8").split("\n")
            lines = {
                m.group(1): n
                for n, line in enumerate(text, 1)
                if (m := re.match(r'id\s*=\s*"([^"]+)"', line))
            }
            found.extend((file, lines.get(claim.id, 1), claim) for claim in claims.values())
        return found
