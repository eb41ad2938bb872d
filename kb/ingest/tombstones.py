"""An item that a person deleted in git stays deleted.

Items are only ever appended, so an id whose line once stood in a committed ``items/*.jsonl`` and stands there no more was
taken out by a person (or by a revert, which is a person's too). It is recorded in ``log/`` as dropped; `kb release ID`
lets it in again. Lines that were never committed are no decision of anybody and are simply forgotten.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from kb.clock import now, stamp
from kb.ingest.known import Known
from kb.lock import git_folder
from kb.store import Base

GIT_S = 60.0


def record_deletions(base: Base, known: Known) -> list[str]:
    """Record works that were deleted since the index last looked; the ids, sorted."""
    if git_folder(base.root) is None or not (known.vanished or known.is_fresh):
        return []
    committed = {work for work in _removed_in_git(base.root) if not known.has(work)}
    gone = sorted(committed - known.dropped)
    if not gone:
        return []
    with base.writing("kb ingest"):
        for work in gone:
            base.append_log(
                "drop", work, who="kb", at=stamp(now()), reason="its line was deleted from items/ in git"
            )
    known.dropped.update(gone)
    return gone


def _removed_in_git(root: Path) -> set[str]:
    """Ids of lines that git saw removed from ``items/``, in history or in the working tree."""
    found: set[str] = set()
    for command in (
        [
            "log",
            "-p",
            "--format=",
            "--no-renames",
            "--unified=0",
            "--no-ext-diff",
            "--no-color",
            "-m",
            "--first-parent",
        ],
        ["diff", "HEAD", "--no-renames", "--unified=0", "--no-ext-diff", "--no-color"],
    ):
        found |= _removed_ids(_git(root, [*command, "--", "items"]))
    return found


def _removed_ids(diff: bytes) -> set[str]:
    found: set[str] = set()
    for line in diff.splitlines():
        if not line.startswith(b"-{"):
            continue
        try:
            work = json.loads(line[1:]).get("id")
        except (ValueError, AttributeError):
            hit = re.match(rb'-\{"id":\s*"([^"\\]+)"', line)
            work = hit.group(1).decode("utf-8", "replace") if hit else None
        if isinstance(work, str):
            found.add(work)
    return found


def _git(root: Path, command: list[str]) -> bytes:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "-c", "core.quotepath=off", *command],
            capture_output=True, env=environment, timeout=GIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
