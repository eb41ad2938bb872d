"""``kb ingest --file``: curators' drafts into the inbox, every entry an item, their bytes kept beside them.

The draft file is written last, so a killed run leaves nothing that a rerun does not complete byte for byte. A draft is
known by the digest of its bytes, in whatever stage it stands; known drafts are left alone.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb import clock
from kb.curated import Curated, read_curated
from kb.curated.header import read_day
from kb.draft import DraftPath, draft_file, front_matter, list_drafts, read_drafts, split_front_matter
from kb.errors import BadInput, KbError, WrongUse
from kb.files import decode_text, read_bytes, sha256
from kb.ingest.contract import DraftText
from kb.ingest.drafts.body import to_markdown
from kb.ingest.drafts.records import to_assessments, to_draft, to_items
from kb.model import Assessment, Item
from kb.store import Base

MAX_DRAFT_BYTES = 1 << 17
"""Larger files are no drafts."""
MAX_SLUG = 80
"""Characters of a slug; it is part of a file name."""
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class DraftReport:
    """What became of one file."""

    draft: str
    """``curator/date-slug``."""
    path: str
    """Draft file below the base; where a known draft stands."""
    sha256: str
    """Of the file's bytes."""
    entries: int
    candidates: int
    unreadable: tuple[tuple[int, str], ...]
    """(line, why) of what could not be taken as meant; its text is kept in the draft."""
    new: int = 0
    """Entries whose work the base did not hold."""
    known: int = 0
    updated: int = 0
    """Entries that brought a new version of a known work."""
    is_known: bool = False
    """True: the same bytes had been ingested before, nothing was written."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The contract's object."""
        unreadable = [{"line": line, "why": why} for line, why in self.unreadable]
        return {
            "path": self.path,
            "sha256": self.sha256,
            "entries": self.entries,
            "candidates": self.candidates,
            "unreadable": unreadable,
        }


@dataclass
class FileReport:
    """What became of all files of one call. Files that failed changed nothing; the others stand."""

    drafts: list[DraftReport] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    """Ids of works the base did not hold."""
    updated: list[str] = field(default_factory=list)
    """Ids of works that gained a version."""
    failed: list[KbError] = field(default_factory=list)
    """One per file that could not be used; the caller prints them and ends with the worst code."""

    def to_json(self) -> dict[str, Any]:
        """``drafts`` and ``items`` of the contract, and one row of ``sources`` per draft."""
        return {
            "sources": [_source_row(draft) for draft in self.drafts],
            "items": {"new": list(self.new), "updated": list(self.updated)},
            "drafts": [draft.to_json() for draft in self.drafts],
        }


def _source_row(draft: DraftReport) -> dict[str, Any]:
    return {
        "name": f"draft:{draft.draft}",
        "status": "not-modified" if draft.is_known else "ok",
        "fetched": draft.entries,
        "new": draft.new,
        "known": draft.known,
        "updated": draft.updated,
        "unusable": 0,
        "requests": 0,
        "bytes": 0,
        "seconds": 0.0,
        "detail": "; ".join(draft.notes),
    }


@dataclass(frozen=True)
class _Read:
    """A file that was read and understood; nothing is written yet."""

    data: bytes
    curated: Curated
    curator: str
    date: str
    slug: str
    notes: tuple[str, ...]


def ingest_files(
    base: Base,
    files: Sequence[Path],
    *,
    curator: str | None = None,
    date: str | None = None,
    slug: str | None = None,
    dry_run: bool = False,
) -> FileReport:
    """Take curators' drafts into the inbox; the caller holds the short write lock.

    Args:
        base: The base.
        files: Drafts as given by people: text or Markdown in UTF-8.
        curator: Who wrote them, where a text does not say.
        date: Their day, ``YYYY-MM-DD``, where a text does not say.
        slug: Name in the inbox; else the file's name.
        dry_run: Say what would be done, write nothing.

    Returns:
        What became of each; a file that cannot be used is in ``failed`` and changes nothing.

    Raises:
        WrongUse: ``date`` or ``slug`` is malformed.
    """
    if date is not None and read_day(date) != date:
        raise WrongUse(
            f"--date {date}: no such day", cause="it must be YYYY-MM-DD", remedy="for example 2026-06-10"
        )
    if slug is not None and (not _SLUG.fullmatch(slug) or len(slug) > MAX_SLUG):
        raise WrongUse(
            f"--slug {slug}: not used",
            cause=f"it must be a-z, 0-9 and single hyphens, at most {MAX_SLUG} characters",
            remedy="for example kv-cache-supplement",
        )
    report = FileReport()
    state = _State(base)
    for path in files:
        try:
            read = _read(_file(path), curator=curator, date=date, slug=slug)
            report.drafts.append(_take(state, read, report, dry_run=dry_run))
        except BadInput as error:
            report.failed.append(error)
    return report


def ingest_texts(base: Base, texts: Sequence[DraftText], *, curator: str | None, dry_run: bool) -> FileReport:
    """Take texts that a source brought into the inbox; the caller holds the short write lock.

    Args:
        base: The base.
        texts: As they were found.
        curator: Who wrote them, where a text does not say.
        dry_run: Say what would be done, write nothing.
    """
    report = FileReport()
    state = _State(base)
    for given in texts:
        try:
            read = _read(given, curator=curator, date=None, slug=None)
            report.drafts.append(_take(state, read, report, dry_run=dry_run))
        except BadInput as error:
            report.failed.append(error)
    return report


class _State:
    """What the base holds, kept up to date over the files of one call."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.versions: dict[str, set[str]] = {}
        for item in base.items():
            self.versions.setdefault(item.id, set()).add(item.version)
        self.decided = {(a.item, a.by, a.draft) for a in base.assessments()}
        self.names = {found.id for found in list_drafts(base)}
        self.by_digest = {
            draft.origin.sha256: found for found, draft in read_drafts(base) if draft.origin is not None
        }

    def free_name(self, name: str, data: bytes) -> str:
        """``name``, or ``name-2`` and so on where another draft has it."""
        number = 1
        while True:
            tried = name if number == 1 else f"{name}-{number}"
            original = self.base.draft_path(tried).with_suffix(".orig")
            is_other = original.is_file() and original.read_bytes() != data
            if tried not in self.names and not is_other:
                return tried
            number += 1


def _file(path: Path) -> DraftText:
    if path.is_symlink():
        raise BadInput(
            f"{path}: not read", cause="it is a symbolic link", remedy="give the file it points to"
        )
    return DraftText(path.name, read_bytes(path, limit=MAX_DRAFT_BYTES))


def _read(given: DraftText, *, curator: str | None, date: str | None, slug: str | None) -> _Read:
    data = given.data
    text = decode_text(data, given.name)
    text = text.replace("\r\n", "\n")
    values, body = split_front_matter(text, given.name)
    curated = read_curated(body, given.name, 1 + text[: len(text) - len(body)].count("\n"))
    told = {k: str(v) for k, v in (values or {}).items() if k in {"curator", "date"} and v is not None}
    who, who_note = _one_of("curator", told.get("curator", "") or curated.curator, curator)
    day, day_note = _one_of("date", read_day(told.get("date", "")) or curated.date, date)
    for name, value in (("curator", who), ("date", day)):
        if not value:
            raise BadInput(
                f"{given.name}: not ingested",
                cause=f"its header names no {name}",
                remedy=f"add a line to the text, or give --{name}",
                next_command="kb ingest --help",
            )
    notes = tuple(note for note in (who_note, day_note) if note)
    name = slug or slug_of(Path(given.name).stem, day, curated.title, data)
    return _Read(data, curated, folder_of(who), day, name, notes)


def _one_of(name: str, told: str, given: str | None) -> tuple[str, str]:
    """The text's own word wins over the option; a difference is said."""
    if told and given and folder_of(told) != folder_of(given):
        return told, f"--{name} {given} not used: the text says {told}"
    return told or given or "", ""


def folder_of(curator: str) -> str:
    """Curator as a folder: lower-case ASCII; a name without such letters becomes its digest."""
    plain = unicodedata.normalize("NFKD", curator).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].rstrip("-")
    return slug or (f"curator-{hashlib.sha256(curator.encode()).hexdigest()[:8]}" if curator.strip() else "")


def slug_of(stem: str, date: str, title: str, data: bytes) -> str:
    """Slug of a draft: its file name without the day, else the title's ASCII words, else its digest."""
    for text in (stem, title):
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        slug = re.sub(r"[^a-z0-9]+", "-", plain.replace(date, "")).strip("-")[:MAX_SLUG].rstrip("-")
        if re.search("[a-z]", slug):
            return slug
    return f"draft-{sha256(data)[:8]}"


def _take(state: _State, read: _Read, report: FileReport, *, dry_run: bool) -> DraftReport:
    base, digest = state.base, sha256(read.data)
    if known := state.by_digest.get(digest):
        return _report(state, known, read, digest, known=len(read.curated.entries), is_known=True)
    name = state.free_name(f"{read.curator}/{read.date}-{read.slug}", read.data)
    at = clock.stamp(clock.now())
    draft = to_draft(read.curated, name, sha256=digest, topics=base.topics().values())
    items = _unknown(state, to_items(read.curated, name, at=at, zone=base.settings.zone))
    decisions = to_assessments(read.curated, draft, name, at=at)
    path = draft_file(base, name)
    new = [item.id for item in items if item.id not in state.versions]
    updated = [item.id for item in items if item.id in state.versions]
    if not dry_run:
        base.write(path.with_suffix(".orig"), read.data)
        base.append_items(items)
        base.append_assessments(a for a in decisions if (a.item, a.by, a.draft) not in state.decided)
        base.write(path, front_matter(draft) + "\n" + to_markdown(read.curated))
    _remember(state, name, digest, path, items, decisions)
    report.new.extend(dict.fromkeys(new))
    report.updated.extend(dict.fromkeys(updated))
    known_count = len(read.curated.entries) - len(new) - len(updated)
    found = state.by_digest[digest]
    return _report(state, found, read, digest, known=known_count, new=len(new), updated=len(updated))


def _unknown(state: _State, items: Iterable[Item]) -> list[Item]:
    """Items that tell something new: a work, or a version of it. A draft never overwrites what a source gave."""
    return [
        item
        for item in items
        if item.id not in state.versions or (item.version and item.version not in state.versions[item.id])
    ]


def _remember(
    state: _State, name: str, digest: str, path: Path, items: list[Item], decisions: list[Assessment]
) -> None:
    for item in items:
        state.versions.setdefault(item.id, set()).add(item.version)
    state.decided.update((a.item, a.by, a.draft) for a in decisions)
    state.names.add(name)
    state.by_digest[digest] = DraftPath(name, "inbox", path)


def _report(
    state: _State,
    found: DraftPath,
    read: _Read,
    digest: str,
    *,
    known: int,
    new: int = 0,
    updated: int = 0,
    is_known: bool = False,
) -> DraftReport:
    return DraftReport(
        draft=found.id,
        path=state.base.relative(found.path),
        sha256=digest,
        entries=len(read.curated.entries),
        candidates=len(read.curated.candidates),
        unreadable=tuple((u.line, u.why) for u in read.curated.unreadable),
        new=new,
        known=known,
        updated=updated,
        is_known=is_known,
        notes=read.notes,
    )
