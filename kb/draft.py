"""Draft files: where they stand, their front matter, their entries. Front matter is read, never rewritten."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kb.errors import BadInput, NothingMatches
from kb.files import decode_text, read_bytes
from kb.model import Draft
from kb.store import MAX_PAGE_BYTES, STAGE_FOLDERS, Base

MAX_FRONT_MATTER = 1 << 20
"""Longest front matter that is parsed, in characters."""
STAGE_ORDER = {"dropped": 0, "inbox": 1, "review": 2, "published": 3}
"""How far a stage is; an item's stage is the furthest of the drafts that hold it."""


@dataclass(frozen=True)
class DraftPath:
    """A draft file and where it stands."""

    id: str
    """``curator/date-slug``."""
    stage: str
    """inbox, review, published or dropped."""
    path: Path


def draft_file(base: Base, draft: str, stage: str = "inbox") -> Path:
    """File of a draft ``curator/date-slug`` in a stage; accepted drafts lie flat under ``published/drafts``."""
    curator, _, name = draft.partition("/")
    folder = base.root / STAGE_FOLDERS[stage]
    return folder / f"{name}.md" if stage == "published" else folder / curator / f"{name}.md"


def list_drafts(base: Base) -> list[DraftPath]:
    """Every draft file with its stage, by id; hidden files and ``.orig`` do not count."""
    found: list[DraftPath] = []
    for stage, name in STAGE_FOLDERS.items():
        folder = base.root / name
        paths = (p for p in folder.glob("**/*.md") if not p.name.startswith("."))
        found.extend(DraftPath(_draft_id(path, folder, stage), stage, path) for path in paths)
    return sorted(found, key=lambda draft: (draft.id, draft.stage))


def _draft_id(path: Path, folder: Path, stage: str) -> str:
    name = path.relative_to(folder).with_suffix("").as_posix()
    if stage != "published" or "/" in name:
        return name
    # accepted drafts lie flat: their curator stands in the front matter, read as text so that listing stays cheap
    with path.open("rb") as file:
        head = file.read(4096).decode("utf-8", "replace")
    found = re.search(r"^curator:\s*[\"']?([^\"'\n]+?)[\"']?\s*$", head, re.MULTILINE)
    return f"{found.group(1) if found else 'unknown'}/{name}"


def find_draft(base: Base, wanted: str) -> DraftPath:
    """Look a draft up by id or by its unambiguous ending.

    Raises:
        NothingMatches: None, or more than one, has that id.
    """
    name = unicodedata.normalize("NFC", wanted).removesuffix(".md")
    every = list_drafts(base)
    hits = [d for d in every if d.id == name] or [d for d in every if d.id.endswith("/" + name)]
    if len(hits) == 1:
        return hits[0]
    raise NothingMatches(
        f"draft {wanted}: not found",
        cause=f"{len(hits)} drafts match" if hits else "no draft has this id",
        remedy="give the id as kb list drafts prints it",
        next_command="kb list drafts",
    )


def split_front_matter(text: str, name: str) -> tuple[dict[str, Any] | None, str]:
    """Split a Markdown text into its front matter and its body; None where it has none.

    Raises:
        BadInput: There is front matter and it is no YAML mapping.
    """
    if not re.match(r"---[ \t]*\r?\n", text):
        return None, text
    end = re.search(r"^---[ \t]*\r?$\n?", text[4:], re.MULTILINE)
    if end is None:
        raise BadInput(
            f"{name}:1: not read", cause="front matter begins and never ends", remedy="close it with ---"
        )
    import yaml

    source = text[4 : 4 + end.start()].lstrip("\n")
    _refuse_bomb(source, name)
    try:
        # the loader in C reads the same language ten times faster; both refuse tags
        value = yaml.load(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        problem = getattr(error, "problem", None) or type(error).__name__
        raise BadInput(
            f"{name}:{line}: not read", cause=f"its front matter is not YAML: {problem}", remedy="mend it"
        ) from error
    if not isinstance(value, dict):
        raise BadInput(
            f"{name}:1: not read", cause="its front matter is no mapping", remedy="write key: value lines"
        )
    return value, text[4 + end.end() :]


def _refuse_bomb(source: str, name: str) -> None:
    """Aliases can make a few lines of YAML into gigabytes, and no draft needs them."""
    if len(source) > MAX_FRONT_MATTER:
        raise BadInput(
            f"{name}:1: not read",
            cause=f"its front matter has {len(source):,} characters, more than {MAX_FRONT_MATTER:,}",
            remedy="shorten it",
        )
    if re.search(r"(?:^|[\s\[{,:-])\*[\w-]+\s*(?:[,\]}\n]|$)", source) and "&" in source:
        raise BadInput(
            f"{name}:1: not read", cause="its front matter uses YAML aliases", remedy="write it out"
        )


def front_matter(draft: Draft) -> str:
    """Front matter of a new draft, ``---`` lines included: ids quoted, one line per entry, the same bytes every time."""
    values = draft.to_json()
    lines = ["---", f"kb: {values['kb']}"]
    lines.extend(f"{key}: {_quoted(values[key])}" for key in ("curator", "date"))
    if draft.origin is not None:
        lines.append(f"origin: {_quoted(values['origin'])}")
    for key in ("entries", "candidates"):
        lines.append(f"{key}:" if values[key] else f"{key}: []")
        lines.extend(f"  - {_quoted(value)}" for value in values[key])
    return "\n".join([*lines, "---"]) + "\n"


def _quoted(value: Any) -> str:
    """A value as JSON, which YAML reads the same way; what YAML cannot hold is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda m: f"\\u{ord(m.group()):04x}", text)


def read_draft(path: Path) -> tuple[Draft | None, str]:
    """Read a draft file: its `Draft` record (None where it has no front matter of ours) and its body.

    Raises:
        BadInput: Unreadable bytes, or front matter that names ``kb: draft/1`` and does not fit.
    """
    text = decode_text(read_bytes(path, limit=MAX_PAGE_BYTES), path.name)
    values, body = split_front_matter(text, path.name)
    if values is None or "kb" not in values:
        return None, body
    known = {key: value for key, value in values.items() if key in Draft.model_fields}
    known["date"] = str(known.get("date", ""))  # unquoted dates become dates in YAML
    try:
        return Draft.model_validate(known), body
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadInput(
            f"{path.name}: front matter not used", cause=f"{where}: {first['msg']}", remedy="mend it"
        ) from error


def read_drafts(base: Base) -> Iterator[tuple[DraftPath, Draft]]:
    """Every draft that can be read, with its record; those that cannot are a matter for `kb check`."""
    for found in list_drafts(base):
        try:
            draft, _ = read_draft(found.path)
        except BadInput:
            continue
        if draft is not None:
            yield found, draft


def item_stages(base: Base) -> dict[str, str]:
    """Item id → furthest stage of the drafts that hold it; items no draft holds are absent."""
    stages: dict[str, str] = {}
    for found, draft in read_drafts(base):
        for entry in draft.entries:
            if STAGE_ORDER[found.stage] >= STAGE_ORDER.get(stages.get(entry.item, ""), -1):
                stages[entry.item] = found.stage
    return stages
