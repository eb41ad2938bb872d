"""The private bare clone: the only repository sync writes into before it pushes. Disposable; rebuilt when damaged."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from kb.errors import CannotRun, NeedsPerson
from kb.files import sync_folder
from kb.sync.git import NETWORK_TIMEOUT_S, Git, GitFailed
from kb.sync.place import Place
from kb.sync.refusal import Kind

BASE_REF = "refs/kb/base"
"""Commit whose tree says what the files here come from; its message holds the branch's commit of that sync."""


def open_private(place: Place) -> Git:
    """Open the private clone, making it first where there is none, and bring it to the remote's tip.

    A half-made clone never counts: it is made under a temporary name and renamed when whole. A damaged one (power loss
    leaves empty objects) is set aside and made anew from the remote.

    Raises:
        GitFailed: The remote cannot be read.
        NeedsPerson: The remote's history was replaced.
    """
    git = Git(place.private, config=place.config)
    remove_dead_locks(place.private)
    if not place.private.exists():
        _make(place)
    elif not _is_whole(git):
        return rebuild_private(place)
    try:
        fetch(git, place, known=place.tip)
    except GitFailed as error:
        if error.kind is not Kind.BROKEN:
            raise
        return rebuild_private(place)
    return git


def remove_dead_locks(folder: Path, *names: str) -> None:
    """Remove locks that killed runs left in a git directory that only sync works in.

    This process holds sync's kernel lock, so the owner is dead unless a git that outlived its kb still runs on this very
    folder. Where that cannot be seen (no ``/proc``), nothing is removed.

    Args:
        folder: The git directory.
        names: Patterns of locks below it; without any, those of refs and of the repository itself.
    """
    patterns = names or ("*.lock", "refs/**/*.lock", "objects/info/**/*.lock")
    locks = [path for pattern in patterns for path in folder.glob(pattern)]
    if locks and not _works_there(folder):
        for path in locks:
            path.unlink(missing_ok=True)


def _works_there(folder: Path) -> bool:
    """True if a git process may be working on a git directory, or in the working tree beside it."""
    processes = Path("/proc")
    if not (processes / "self/cmdline").exists():
        return True
    tree = folder.parent if folder.name == ".git" else folder
    for process in processes.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if Path(os.fsdecode(command.split(b"\0")[0])).name.startswith("git") and (
                os.fsencode(folder) in command or (process / "cwd").readlink().is_relative_to(tree)
            ):
                return True
    return False


def rebuild_private(place: Place) -> Git:
    """Set the private clone aside, damaged as it is, and make it anew from the remote."""
    aside = _set_aside(place.private)
    _make(place)
    git = Git(place.private, config=place.config)
    fetch(git, place)
    if aside is not None:
        # if this can still be read, we go on where we were; else the merge base decides, which at worst holds an item
        git.run(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(aside), f"+{BASE_REF}:{BASE_REF}"
        )
    return git


def fetch(git: Git, place: Place, *, known: str = "") -> str:
    """Bring the private clone to the remote's tip and return that commit.

    Args:
        git: The private clone.
        place: Remote and branch.
        known: What the branch held a moment ago, if known: nothing is transferred where it is here already.

    Raises:
        GitFailed: The remote cannot be read.
        NeedsPerson: The branch no longer holds what it held before.
    """
    ref = f"refs/heads/{place.branch}"
    before = git.maybe("rev-parse", "--verify", "--quiet", ref)
    if before and before == known and git.ok("cat-file", "-e", f"{before}^{{tree}}"):
        return before
    args = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", place.url, f"+{ref}:refs/kb/fetched")
    done = git.run(*args, timeout_s=NETWORK_TIMEOUT_S)
    if done.returncode != 0:
        raise GitFailed(args, done.returncode, done.stderr.decode("utf-8", "replace"))
    _check_depth(git, place)
    now = git.text("rev-parse", "refs/kb/fetched")
    if now == before:
        return now
    if before and not git.ok("merge-base", "--is-ancestor", before, now):
        raise NeedsPerson(
            f"{place.branch}: its history was rewritten",
            cause=f"the branch held {before[:12]} and now holds {now[:12]}, which does not contain it",
            remedy="nothing was pushed; ask who rewrote it. If it was meant, remove the folder "
            f"{place.folder} and sync again",
            next_command="kb doctor",
        )
    git.output("update-ref", ref, now)
    return now


def _is_whole(git: Git) -> bool:
    """Cheap start-up check: it is a repository, and the commit and tree of every ref it needs are readable."""
    if git.maybe("rev-parse", "--is-bare-repository") != "true":
        return False
    tips = git.maybe("for-each-ref", "--format=%(objectname)").splitlines()
    return all(git.ok("ls-tree", "-r", "-z", "--name-only", tip) for tip in set(tips))


def _make(place: Place) -> None:
    place.folder.mkdir(parents=True, exist_ok=True)
    _ignore(place.base.cache)
    half = place.private.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    outside = Git(place.folder, bare=False, config=place.config)
    kind = "sha256" if len(place.tip) == 64 else "sha1"  # noqa: PLR2004  hex digits
    outside.output("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", str(half))
    half.rename(place.private)
    sync_folder(place.folder)


def _ignore(cache: Path) -> None:
    """Caches ignore themselves, so that a clone whose ``.gitignore`` says nothing never shows them."""
    note = cache / ".gitignore"
    if not note.exists():
        note.write_text("*\n", encoding="utf-8")


def _set_aside(path: Path) -> Path | None:
    if not path.exists():
        return None
    for number in range(100):
        aside = path.with_name(f"{path.name}.damaged-{number}")
        if not aside.exists():
            path.rename(aside)
            return aside
    raise CannotRun(
        f"{path}: damaged again", cause="100 damaged clones lie beside it", remedy=f"look at {path.parent}"
    )


def _check_depth(git: Git, place: Place) -> None:
    if (git.directory / "shallow").exists():
        raise NeedsPerson(
            f"{place.url}: its history is cut short",
            cause="the remote itself is a shallow clone",
            remedy="name the full repository with KB_REMOTE, or git fetch --unshallow there",
            next_command="kb doctor",
        )
