"""Carrying out what a run of triage decided: written down first, so that a run killed at any moment is completed.

The journal holds every draft and every decision of the run. A later run first finishes it, then looks for what is new;
what the files hold then equals an undisturbed run, byte for byte.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from kb.files import read_lines, sync_folder
from kb.model import Assessment
from kb.store import Base

BATCH = 2_000
"""Decisions appended at once."""


def journal_path(base: Base) -> Path:
    """``.kb/triage.journal``."""
    return base.cache / "triage.journal"


def carry_out(base: Base, drafts: Iterable[tuple[str, str]], decisions: Iterable[str]) -> None:
    """Write drafts and append decisions; the caller holds the write lock.

    Args:
        base: The knowledge base.
        drafts: (path below the base, text).
        decisions: `Assessment` records as JSON.
    """
    path = journal_path(base)
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    # streamed: the decisions of a hundred thousand items are never in memory together
    with part.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(
            f"{json.dumps({'write': name, 'text': text}, ensure_ascii=False)}\n" for name, text in drafts
        )
        out.writelines(f'{{"append":{decision}}}\n' for decision in decisions)
        out.flush()
        os.fsync(out.fileno())
        is_empty = out.tell() == 0
    if is_empty:
        part.unlink()
        return
    part.replace(path)
    sync_folder(path.parent)
    _carry_out(base)


def finish(base: Base) -> bool:
    """Complete a journal that was left behind; True if there was one."""
    path = journal_path(base)
    if not path.is_file():
        return False
    _carry_out(base, there=_written(base, path))
    return True


def _carry_out(base: Base, there: Container[tuple[str, ...]] = ()) -> None:
    """Do what the journal says, but for decisions that are ``there``; then it is done with."""
    path = journal_path(base)
    missing = _drafts_first(base, (entry for _, entry in read_lines(path)), there)
    while batch := list(itertools.islice(missing, BATCH)):
        base.append_assessments(batch)
    path.unlink()


def _drafts_first(
    base: Base, entries: Iterable[dict[str, Any]], there: Container[tuple[str, ...]]
) -> Iterator[Assessment]:
    """Write the drafts, which stand first in a journal, and yield the decisions that are missing."""
    for entry in entries:
        if "write" in entry and not (base.root / entry["write"]).exists():
            base.write(base.root / entry["write"], entry["text"])
        elif "append" in entry and _key_of(entry["append"]) not in there:
            yield Assessment.model_validate(entry["append"])


def _written(base: Base, path: Path) -> set[tuple[str, ...]]:
    """Decisions of the journal that stand in their file already."""
    first = next((entry["append"] for _, entry in read_lines(path) if "append" in entry), None)
    if first is None:
        return set()
    lines = read_lines(base.root / "assessments" / f"{first['at'][:7]}.jsonl")
    return {_key_of(value) for _, value in lines if value.get("at") == first["at"]}


def _key_of(value: dict[str, object]) -> tuple[str, ...]:
    return tuple(str(value.get(key, "")) for key in ("item", "version", "by", "draft", "at"))
