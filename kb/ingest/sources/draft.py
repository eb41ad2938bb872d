"""Drafts of curators that lie where a curator leaves them: at an address, or in a folder of the base.

Address     ``url`` of one text, asked conditionally like a feed
Folder      ``query`` is a pattern below the base, such as ``incoming/*.txt``; links and anything outside are not followed
Identity    a draft is known by its bytes: one that was taken in is not taken in twice, a changed one is a new draft
Curator     the text's own header; ``publisher`` where it names nobody. A text without a day is told and left alone
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from kb.errors import BadInput
from kb.files import read_bytes
from kb.ingest.contract import DraftText, NoAnswer, Skip, Task, one_line

KIND = "draft"
MAX_FILES = 200
"""Drafts of a folder that are looked at in one run."""
OWN = ("inbox", "review", "published", "dropped", "items", "log", "assessments")
"""Folders of the base whose files are no drafts on their way in."""


def fetch(task: Task) -> Iterator[DraftText | Skip]:
    """Yield the texts."""
    if task.config.url:
        answer = task.get(task.config.url, accept="text/plain, text/markdown, */*;q=0.5", conditional=True)
        if answer.not_modified:
            task.report.status = "not-modified"
            return
        if not answer.body.strip():
            raise NoAnswer("empty-body", answer.url, "the answer has no bytes")
        yield DraftText(Path(urlsplit(answer.url).path).name or task.config.name, answer.body)
        return
    pattern, root = task.config.query, task.root
    if root is None or not pattern or pattern.startswith("/") or ".." in Path(pattern).parts:
        raise NoAnswer(
            "bad-request",
            task.config.name,
            f"query {one_line(pattern, 80)!r} is no pattern below the base",
            remedy="for example incoming/*.txt",
        )
    try:
        files = sorted(path for path in root.glob(pattern) if path.is_file())
    except (ValueError, OSError) as error:
        raise NoAnswer(
            "bad-request", task.config.name, f"query {one_line(pattern, 80)!r}: {error}"
        ) from error
    if len(files) > MAX_FILES:
        task.report.fail("partial", f"{len(files)} files; the first {MAX_FILES} were looked at")
    for path in files[:MAX_FILES]:
        yield _text(path, root)


def _text(path: Path, root: Path) -> DraftText | Skip:
    from kb.ingest.files import MAX_DRAFT_BYTES

    place = path.relative_to(root)
    is_inside = path.resolve() == root.resolve() / place  # no part of the way is a link
    if not is_inside or place.parts[0] in OWN or place.parts[0].startswith("."):
        return Skip("it is no file of a curator", one_line(place.as_posix(), 120))
    try:
        return DraftText(path.name, read_bytes(path, limit=MAX_DRAFT_BYTES))
    except BadInput as problem:
        return Skip(problem.cause, one_line(place.as_posix(), 120))


def to_entry(raw: DraftText | Skip, task: Task) -> DraftText | Skip:  # noqa: ARG001  the protocol's signature
    """A draft goes in as it is; `kb.ingest.files` reads it."""
    return raw
