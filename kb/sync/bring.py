"""Bringing files here to the branch's version: always in the job's own clone, in a person's only when asked (`absorb`).

A file is replaced only if its bytes are known to be in the branch, or were saved under ``.kb/sync/kept`` first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kb.errors import NeedsPerson
from kb.files import sync_folder, write_atomic
from kb.sync.git import Git, GitFailed, Tree
from kb.sync.private import remove_dead_locks
from kb.sync.sides import View
from kb.sync.worktree import blob_id

UPSTREAM_REF = "refs/kb/upstream"
"""Where a clone gets the branch's commits. Its remote-tracking refs are left alone: moving them behind a person's back
would turn their ``push --force-with-lease`` into a plain force."""


@dataclass(frozen=True)
class Brought:
    """What bringing did."""

    paths: set[str]
    """Files that now hold the branch's version."""
    written: int
    """Files that had to be written or removed for it."""


def bring(view: View, tip_tree: Tree, paths: Iterable[str], *, keep: Iterable[str] = ()) -> Brought:
    """Write the branch's version of ``paths`` here; the caller holds the write lock.

    A file that changed since the snapshot is left for the next run.

    Args:
        view: The run.
        tip_tree: What the branch holds.
        paths: Files to bring.
        keep: Those of them whose bytes here are not in the branch; they are saved first.
    """
    done: set[str] = set()
    written = 0
    keep = set(keep)
    wanted = sorted(set(paths))
    blobs = view.read([tip_tree[path].oid for path in wanted if path in tip_tree])
    for path in wanted:
        file = view.snapshot.files.get(path)
        place = file.path if file else view.place.base.root / view.spelling.get(path, path)
        entry = tip_tree.get(path)
        now = place.read_bytes() if place.is_file() and not place.is_symlink() else None
        known = view.snapshot.held_bytes.get(path)
        if now is not None and (file is None or (now != known and not _holds(now, file.oid))):
            continue
        if now is not None and path in keep:
            _save(view, path, now)
        if entry is None:
            if now is not None:
                place.unlink()
                sync_folder(place.parent)
                written += 1
        elif entry.mode in {"100644", "100755"} and view.place.base.write(place, blobs[entry.oid]):
            written += 1
        done.add(path)
    return Brought(done, written)


def _holds(data: bytes, oid: str) -> bool:
    return blob_id(data, "sha256" if len(oid) == 64 else "sha1") == oid  # noqa: PLR2004  hex digits


def _save(view: View, path: str, data: bytes) -> None:
    kept = view.place.folder / "kept" / blob_id(data, "sha1")[:12] / path
    write_atomic(kept, data, scratch=view.place.folder / "tmp")


def give_commits(git: Git, clone: Git, branch: str) -> None:
    """Put the branch's commits into a clone under `UPSTREAM_REF`, and touch nothing else there.

    Raises:
        GitFailed: The clone cannot be written.
    """
    if clone.maybe("rev-parse", "--verify", "--quiet", UPSTREAM_REF) == git.text(
        "rev-parse", f"refs/heads/{branch}"
    ):
        return
    clone.output(
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules",
        str(git.directory), f"+refs/heads/{branch}:{UPSTREAM_REF}",
    )  # fmt: skip


def unfinished(clone: Git) -> str:
    """The operation that was left half done in a clone: ``rebase``, ``merge``, …; ``""`` for none.

    A rebase is a folder; ``REBASE_HEAD`` alone outlives one that ended.
    """
    marks = {
        "rebase-merge": "rebase", "rebase-apply": "rebase", "MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick",
        "REVERT_HEAD": "revert", "BISECT_LOG": "bisect",
    }  # fmt: skip
    folder = Path(clone.text("rev-parse", "--absolute-git-dir"))
    for mark, name in marks.items():
        place = folder / mark
        if place.is_dir() if mark.startswith("rebase") else place.is_file():
            return name
    return ""


def move_head(view: View, tip: str) -> str:
    """Fast-forward the clone's branch and index to ``tip`` without losing a byte of its files; "" or why not.

    Files that already hold the branch's version are entered into the index first, then git's own two-tree merge moves
    the rest; it refuses where a file here differs from both.
    """
    clone, head = view.place.clone, view.place.head
    if clone is None or head == tip:
        return ""
    if stands := unfinished(clone):
        return f"the clone stays at {head[:12]}: a {stands} is in progress there; clone it anew, or git {stands} --abort"
    if view.place.owned:
        remove_dead_locks(Path(clone.text("rev-parse", "--absolute-git-dir")), "index.lock", "HEAD.lock")
    try:
        give_commits(view.git, clone, view.place.branch)
        if not clone.ok("merge-base", "--is-ancestor", head, tip):
            return "the clone's branch holds commits that the remote lacks: push or remove them"
        lines = _entries_here(view, head, tip)
        given = "\0".join([*lines, ""]).encode("utf-8", "surrogateescape")
        if lines:
            clone.output("update-index", "-z", "--index-info", given=given)
            clone.run("update-index", "-q", "--refresh")
        clone.output("read-tree", "-m", "-u", head, tip)
        clone.output("update-ref", "-m", "kb sync", "HEAD", tip, head)
    except GitFailed as error:
        return f"the clone stays at {head[:12]}: {error.cause}"
    return ""


def _entries_here(view: View, head: str, tip: str) -> list[str]:
    """Index lines for paths between two commits whose file here is the newer one already."""
    before, after = view.tree(head), view.tree(tip)
    lines = []
    for path in before.keys() | after.keys():
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        name = view.in_repository(path)
        place = view.place.base.root / view.spelling.get(path, path)
        now = place.read_bytes() if place.is_file() and not place.is_symlink() else None
        if new is None and now is None:
            lines.append(f"0 {'0' * len(tip)}\t{name}")
        elif new is not None and now is not None and _holds(now, new.oid):
            lines.append(f"{new.mode} {new.oid}\t{name}")
    return lines


def refuse_absorb(view: View, differing: dict[str, str]) -> NeedsPerson:
    """The error of ``--absorb`` where files here hold something the branch lacks."""
    first = ", ".join(sorted(differing)[:5])
    return NeedsPerson(
        f"{len(differing)} files here differ from the branch",
        cause=f"not in the branch: {first}",
        remedy="commit them (git add, git commit), then git pull --rebase; nothing was changed",
        next_command=f"git -C {view.place.base.root} status",
    )
