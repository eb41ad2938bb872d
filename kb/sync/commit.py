"""From a plan to one commit on the fetched tip, by plumbing alone: a temporary index, no working tree, no hooks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kb import clock
from kb.config import UserSettings
from kb.errors import KbError
from kb.sync.git import Git
from kb.sync.history import TRAILER
from kb.sync.planned import Change

LISTED = 20
"""Paths named in a commit message."""


class UnplannedCommit(KbError):
    """A commit would change what was not planned; a bug, stopped before anything left this machine."""

    exit_code = 70


@dataclass(frozen=True)
class TipIndex:
    """A temporary index that holds a commit's tree."""

    git: Git
    path: Path
    nothing: str
    """The id that stands for no object, as long as the repository's ids."""

    @property
    def env(self) -> dict[str, str]:
        """Variables that make git use it."""
        return {"GIT_INDEX_FILE": str(self.path)}

    def filters(self, paths: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Attributes of repository paths as the commit's ``.gitattributes`` give them; unspecified ones are absent."""
        if not paths:
            return {}
        given = b"\0".join(os.fsencode(path) for path in paths) + b"\0"
        raw = self.git.output("check-attr", "--cached", "-z", "--stdin", *names, given=given, env=self.env)
        return parse_attributes(raw)

    def put(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """Set (mode, blob, repository path); mode ``0`` removes."""
        lines = [
            b"%s %s\t%s" % (mode.encode(), (oid or self.nothing).encode(), os.fsencode(path))
            for mode, oid, path in entries
        ]
        if lines:
            given = b"\0".join(lines) + b"\0"
            self.git.output("update-index", "-z", "--index-info", given=given, env=self.env)

    def write_tree(self) -> str:
        """Write its tree and return the id."""
        return self.git.text("write-tree", env=self.env)


def parse_attributes(raw: bytes) -> dict[str, dict[str, str]]:
    """Read the output of ``git check-attr -z``: path → attribute → value."""
    fields = [os.fsdecode(field) for field in raw.split(b"\0")]
    found: dict[str, dict[str, str]] = {}
    for path, name, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
        if value != "unspecified":
            found.setdefault(path, {})[name] = value
    return found


def new_index(git: Git, folder: Path, commit: str) -> TipIndex:
    """Make a temporary index of a commit; those of dead runs, and the last one of this run, are removed.

    Only sync writes there, under its own lock, so whatever lies there is no longer used.
    """
    clear_indexes(folder)
    index = TipIndex(git, folder / f"index.{os.getpid()}", "0" * len(commit))
    git.output("read-tree", commit, env=index.env)
    return index


def clear_indexes(folder: Path) -> None:
    """Remove temporary indexes and their locks."""
    for left in folder.glob("index.*"):
        left.unlink(missing_ok=True)


def write_blobs(git: Git, blobs: Iterable[bytes]) -> None:
    """Write blobs as one pack, synced once."""
    parts = [b"blob\ndata %d\n%s\n" % (len(data), data) for data in blobs]
    if parts:
        git.output("fast-import", "--quiet", "--done", given=b"".join([*parts, b"done\n"]))


def commit_changes(
    index: TipIndex,
    tip: str,
    changes: Sequence[Change],
    place: Mapping[str, str],
    batch: str,
    user: UserSettings,
) -> str:
    """Make the commit of a batch on ``tip`` and prove that it holds the batch and nothing else.

    Args:
        index: Holds ``tip``; afterwards the new tree.
        tip: Parent.
        changes: The batch; its blobs are stored (`write_blobs`).
        place: Path below the base → path in the repository as the branch spells it.
        batch: Id for the trailer.
        user: Identity and signing.

    Raises:
        UnplannedCommit: The commit differs from the plan.
    """
    git = index.git
    index.put(
        ("0" if change.action == "delete" else change.mode, change.new, place[change.path])
        for change in changes
    )
    tree = index.write_tree()
    commit = commit_tree(git, tree, [tip], message_of(changes, batch), user)
    prove(git, tip, commit, {place[change.path]: change.new for change in changes})
    return commit


def commit_tree(git: Git, tree: str, parents: Sequence[str], message: str, user: UserSettings) -> str:
    """Make a commit under sync's own identity; the clock is ``KB_NOW``'s where it is set."""
    when = f"{int(clock.now().timestamp())} +0000"
    env = {
        "GIT_AUTHOR_NAME": user.sync_name, "GIT_AUTHOR_EMAIL": user.sync_email, "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": user.sync_name, "GIT_COMMITTER_EMAIL": user.sync_email, "GIT_COMMITTER_DATE": when,
    }  # fmt: skip
    signing = []
    if user.signing_key:
        git = Git(git.directory, git.bare, {**git.config, "gpg.format": user.signing_format})
        signing = [f"-S{user.signing_key}"]
    over = [part for parent in parents for part in ("-p", parent)]
    return git.text("commit-tree", tree, *over, *signing, given=message.encode(), env=env)


def prove(git: Git, tip: str, commit: str, planned: Mapping[str, str]) -> None:
    """Check that ``commit`` is one step on ``tip`` and changes exactly what was planned.

    Raises:
        UnplannedCommit: It is not, or does not.
    """
    raw = git.output("log", "-1", "-z", "--raw", "--no-renames", "--no-abbrev", "--format=%P", commit)
    head, *fields = raw.split(b"\0")
    parents = head.decode().split()
    fields = [field.lstrip(b"\n") for field in fields if field.lstrip(b"\n")]
    changed = {
        os.fsdecode(path): "" if set(meta.split(b" ")[3]) == {ord("0")} else meta.split(b" ")[3].decode()
        for meta, path in zip(fields[0::2], fields[1::2], strict=True)
    }
    if parents != [tip] or changed != dict(planned):
        odd = sorted(changed.items() ^ planned.items())[:3]
        raise UnplannedCommit(
            "sync: a commit differs from its plan, nothing was pushed",
            cause=f"parents {parents}, unplanned {odd}",
            remedy="report this with the output of kb sync --dry-run --json",
        )


def message_of(changes: Sequence[Change], batch: str) -> str:
    """Subject, the first paths, and the trailer by which the batch is known for ever."""
    counts: dict[str, int] = {}
    for change in changes:
        what = (
            "moved"
            if change.moved_from
            else {"add": "new", "change": "changed", "delete": "removed"}[change.action]
        )
        counts[what] = counts.get(what, 0) + 1
    moved = {change.moved_from for change in changes if change.moved_from}
    counts["removed"] = counts.get("removed", 0) - len(moved)
    subject = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()) if count > 0)
    marks = {"add": "+", "change": "~", "delete": "-"}
    lines = [f"{marks[change.action]} {printable(change.path)}" for change in changes[:LISTED]]
    if len(changes) > LISTED:
        lines.append(f"… and {len(changes) - LISTED} more")
    return f"kb sync: {subject}\n\n" + "\n".join(lines) + f"\n\n{TRAILER}: {batch}\n"


def printable(text: str) -> str:
    """A path that cannot start a new line or trailer in a message."""
    return "".join(char if char.isprintable() else "?" for char in text)
