"""Moving drafts between stages: a folder is a state, inbox → review → published, and review cannot be skipped.

The unit that moves is a draft with the untouched bytes beside it; one entry may be taken out into a draft of its own.
Every move is a line in the log. The line is written before the file moves, so that a run killed in between is
completed by the same command and leaves one line, not two.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.draft import DraftPath, draft_file, find_draft, list_drafts, read_draft, split_front_matter
from kb.errors import BadInput, NeedsPerson, NothingMatches, WrongUse
from kb.files import decode_text, read_bytes
from kb.model import LogEntry, Outcome
from kb.store import MAX_PAGE_BYTES, Base

STEPS = {
    "inbox": frozenset({"review", "dropped"}),
    "review": frozenset({"inbox", "published", "dropped"}),
    "published": frozenset({"review", "inbox", "dropped"}),
    "dropped": frozenset({"inbox", "review"}),
}
"""Stage → stages that can be reached from it in one move."""
ORIGINALS = (".orig", ".md.orig")
"""Endings of the untouched bytes of an imported draft."""


@dataclass(frozen=True)
class Move:
    """One move that was made, or would be."""

    id: str
    """Draft, or entry ``curator/date-slug#n`` that is taken out first."""
    draft: str
    """Draft that stands in the new stage."""
    from_stage: str
    to_stage: str
    path: Path
    """Where it stands then."""
    seq: int | None = None
    """Sequence number of the log line; None where nothing had to be done, or for a plan."""

    @property
    def is_done(self) -> bool:
        """True where it stands there already."""
        return self.from_stage == self.to_stage


def plan_move(base: Base, wanted: str, stage: str) -> Move:
    """Say what moving a draft or an entry to a stage would do.

    Raises:
        NothingMatches: No draft, or no entry of it, has this id.
        NeedsPerson: The stage cannot be reached from where the draft stands: review cannot be skipped.
    """
    found, entry = _find(base, wanted)
    if found.stage != stage and stage not in STEPS[found.stage]:
        missing = "review" if stage == "published" else "inbox"
        raise NeedsPerson(
            f"{wanted}: not moved from {found.stage} to {stage}",
            cause=f"{missing} comes between them and cannot be skipped",
            remedy=f"move it to {missing}, let a person read it, then move it on",
            next_command=f"kb move {wanted} --to {missing} --reason …",
        )
    if entry and found.stage == stage:
        raise NothingMatches(
            f"{wanted}: not taken out",
            cause=f"its draft already stands in {stage}",
            remedy="an entry leaves its draft when it goes to another stage",
            next_command=f"kb show {found.id}",
        )
    draft = f"{found.id}-{_slug(entry)}" if entry else found.id
    name = f"{found.id}#{entry}" if entry else found.id
    path = found.path if found.stage == stage else _free_path(base, draft, stage, name)
    return Move(name, draft, found.stage, stage, path)


def move(base: Base, wanted: str, stage: str, *, reason: str, who: str, at: str) -> Move:
    """Move a draft, or one entry of it, to a stage; the caller holds the write lock.

    Args:
        base: The knowledge base.
        wanted: Draft id, an unambiguous ending of one, or ``id#n``.
        stage: inbox, review, published or dropped.
        reason: Why, for the log.
        who: Who moves it.
        at: Moment, UTC.

    Returns:
        The move; without a sequence number where it stood there already.

    Raises:
        NeedsPerson, WrongUse: See `plan_move` and `check_reason`.
    """
    planned = plan_move(base, wanted, stage)
    if planned.is_done:
        return planned
    check_reason(base, wanted, stage, reason)
    line = _unfinished(base, planned, reason) or base.append_log(
        "move", planned.id, who=who, at=at, from_=planned.from_stage, to=stage, reason=reason
    )
    found, entry = _find(base, wanted)
    if entry:
        _take_out(base, found, entry, planned)
    else:
        _rename(base, found, planned.path)
    return dataclasses.replace(planned, seq=line.seq)


def contradicted_claims(base: Base, wanted: str) -> list[str]:
    """Claims of the works that a draft, or one entry of it, speaks of and that our numbers contradict."""
    found, entry = _find(base, wanted)
    draft, _ = read_draft(found.path)
    works = {one.item for one in draft.entries if entry in {"", one.n}} if draft else set()
    verdicts = base.verdicts()
    return sorted(
        claim.id
        for claim in base.claims().values()
        if claim.item in works and claim.id in verdicts and verdicts[claim.id].verdict is Outcome.CONTRADICTED
    )


def check_reason(base: Base, wanted: str, stage: str, reason: str) -> None:
    """See that a move has a reason.

    Raises:
        NeedsPerson: Our numbers contradict what it reports, and no reason says why it is published all the same.
        WrongUse: There is no reason.
    """
    if reason.strip():
        return
    contradicted = contradicted_claims(base, wanted) if stage == "published" else []
    next_command = f'kb move {wanted} --to {stage} --reason "…"'
    if contradicted:
        raise NeedsPerson(
            f"{wanted}: not published",
            cause=f"our numbers contradict {', '.join(contradicted)}",
            remedy="say why it is published all the same",
            next_command=next_command,
        )
    raise WrongUse(
        f"{wanted}: not moved", cause="no reason was given", remedy="say why", next_command=next_command
    )


def _find(base: Base, wanted: str) -> tuple[DraftPath, str]:
    """Find a draft, or the draft an entry stands in with the entry's number, or the draft it became."""
    name, _, entry = wanted.partition("#")
    found = find_draft(base, name)
    if not entry or _holds(found, entry):
        return found, entry
    for candidate in list_drafts(base):
        if candidate.id.endswith(f"-{_slug(entry)}") and _taken_from(candidate.path) == f"{found.id}#{entry}":
            return candidate, ""
    draft, _ = read_draft(found.path)
    numbers = ", ".join(e.n for e in draft.entries) if draft else "none: it has no front matter"
    raise NothingMatches(
        f"{wanted}: not found",
        cause=f"entries of {found.id}: {numbers}",
        remedy="give one of them",
        next_command=f"kb show {found.id}",
    )


def _holds(found: DraftPath, entry: str) -> bool:
    draft, _ = read_draft(found.path)
    return draft is not None and any(e.n == entry for e in draft.entries)


def _taken_from(path: Path) -> str:
    draft, _ = read_draft(path)
    return draft.taken_from if draft else ""


def _slug(entry: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", entry.lower()).strip("-") or "entry"


def _free_path(base: Base, draft: str, stage: str, name: str) -> Path:
    """Where a draft goes; accepted drafts of two curators may share a name, then the second keeps its folder."""
    path = draft_file(base, draft, stage)
    places = [path, path.parent / f"{draft}.md"] if stage == "published" else [path]
    if stage == "published" and _was_published(base, draft):
        places = places[1:]  # the address tells of another draft, also after that one was withdrawn
    for place in places:
        # an entry's own draft may be there already: the run that made it was killed before it cut the old one
        if not place.exists() or ("#" in name and _taken_from(place) == name):
            return place
    raise NeedsPerson(
        f"{draft}: not moved to {stage}",
        cause=f"{base.relative(path)} exists already",
        remedy="the same draft stands in two stages; decide which one is right and remove the other",
        next_command="kb list drafts",
    )


def _was_published(base: Base, draft: str) -> bool:
    """Whether another curator's draft of the same name was ever published."""
    name = draft.partition("/")[2]
    return any(
        entry.act == "move"
        and entry.to == "published"
        and entry.target.partition("/")[2] == name
        and entry.target != draft
        for entry in base.log()
    )


def _unfinished(base: Base, planned: Move, reason: str) -> LogEntry | None:
    """Find the log line of the same move that was killed before the file moved."""
    moves = [entry for entry in base.log() if entry.target == planned.id and entry.act == "move"]
    last = moves[-1] if moves else None
    same = last and (last.from_, last.to, last.reason) == (planned.from_stage, planned.to_stage, reason)
    return last if same else None


def _rename(base: Base, found: DraftPath, target: Path) -> None:
    for ending in ORIGINALS:
        original = found.path.with_suffix(ending)
        if original.exists():
            base.rename(original, target.with_suffix(ending))
    base.rename(found.path, target)


def _take_out(base: Base, found: DraftPath, entry: str, planned: Move) -> None:
    """Write the entry's own draft first, then cut it from the old one: a crash in between loses nothing."""
    data = read_bytes(found.path, limit=MAX_PAGE_BYTES)
    text = decode_text(data, found.path.name)
    alone, rest = split_entry(text, entry, taken_from=planned.id)
    base.write(planned.path, alone)
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    base.write(found.path, mark + rest.encode())


def split_entry(text: str, entry: str, *, taken_from: str) -> tuple[str, str]:
    """Split a draft's text into a draft of one entry and the remainder, of which no other byte changes.

    Args:
        text: The draft, front matter and body.
        entry: Number of the entry as the draft prints it.
        taken_from: ``curator/date-slug#n`` for the new front matter.

    Raises:
        BadInput: Front matter or body has no such entry, or it cannot be cut out alone.
    """
    values, body = split_front_matter(text, taken_from)
    listed: list[Any] = (values or {}).get("entries") or []
    mine = [one for one in listed if str(one.get("n")) == entry]
    front = text[: len(text) - len(body)]
    start, end = _entry_span(front, entry, taken_from)
    section, others = _cut_section(body, entry, taken_from)
    rest = front[:start] + front[end:] + others
    left, left_body = split_front_matter(rest, taken_from)
    others_listed = (left or {}).pop("entries", None) or []
    same = {key: value for key, value in (values or {}).items() if key != "entries"}
    if (left_body, left, others_listed) != (others, same, [one for one in listed if one not in mine]):
        raise BadInput(
            f"{taken_from}: not taken out",
            cause="its entry in the front matter cannot be cut out without touching others",
            remedy="write each element of entries by itself, without YAML anchors",
        )
    return _own_draft(values or {}, mine, taken_from) + section, rest


def _own_draft(values: dict[str, Any], entries: list[Any], taken_from: str) -> str:
    import yaml

    kept = {"kb": values.get("kb"), "curator": values.get("curator"), "date": str(values.get("date"))}
    front = yaml.safe_dump(
        {**kept, "taken_from": taken_from, "entries": entries},
        allow_unicode=True,
        sort_keys=False,
        default_flow_style=None,
        width=10_000,
    )
    return f"---\n{front}---\n\n"


def _cut_section(body: str, entry: str, name: str) -> tuple[str, str]:
    """Cut ``## n · title`` up to the next heading of that or a higher level; headings in fenced code do not count."""
    from markdown_it import MarkdownIt

    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", body)
    headings = [
        (token.map[0], inline.content)
        for token, inline in itertools.pairwise(MarkdownIt("commonmark").parse(body))
        if token.type == "heading_open" and token.tag in {"h1", "h2"} and token.level == 0 and token.map
    ]
    for (line, title), following in zip(headings, [*headings[1:], (len(lines), "")], strict=True):
        if re.match(rf"{re.escape(entry)}(?=\s|$)", title):
            end = following[0]
            return "".join(lines[line:end]), "".join(lines[:line] + lines[end:])
    raise BadInput(f"{name}: not taken out", cause=f"its body has no heading ## {entry}", remedy="add it")


def _entry_span(front: str, entry: str, name: str) -> tuple[int, int]:
    """Characters of one element of ``entries`` in the front matter, its dash or comma included."""
    import yaml

    start = front.index("\n") + 1
    end = front.rindex("---")
    root = yaml.compose(front[start:end], Loader=yaml.SafeLoader)
    pairs = {key.value: value for key, value in root.value} if isinstance(root, yaml.MappingNode) else {}
    listed = pairs.get("entries")
    if not isinstance(listed, yaml.SequenceNode):
        raise BadInput(f"{name}: not taken out", cause="its front matter lists no entries", remedy="add them")
    spans = [(start + x.start_mark.index, start + x.end_mark.index) for x in listed.value]
    numbers = [
        {k.value: v.value for k, v in x.value}.get("n") if isinstance(x, yaml.MappingNode) else None
        for x in listed.value
    ]
    if entry not in numbers:
        raise BadInput(
            f"{name}: not taken out", cause=f"its front matter has no entry {entry}", remedy="add it"
        )
    index = numbers.index(entry)
    if listed.flow_style:
        return _flow_span(spans, index)
    first = front.rindex("\n", 0, front.rindex("-", 0, spans[index][0])) + 1
    last = start + _last_mark(listed.value[index])
    line = front.rindex("\n", 0, last) + 1
    # the mark of a text block stands at the next line, every other one behind its last character
    return first, front.index("\n", last) + 1 if front[line:last].strip() else line


def _flow_span(spans: list[tuple[int, int]], index: int) -> tuple[int, int]:
    if index + 1 < len(spans):
        return spans[index][0], spans[index + 1][0]
    return (spans[index - 1][1] if index else spans[index][0]), spans[index][1]


def _last_mark(node: Any) -> int:
    """Where the last character of a node stands: a block's own mark stands at the next key, comments included."""
    while isinstance(node.value, list) and node.value and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)
