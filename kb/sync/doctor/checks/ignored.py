"""Folders of the base that .gitignore hides: git add skips them (sync does not)."""

from __future__ import annotations

from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.git import Git

TITLE = "nothing of the base is ignored, its cache is"
FOLDERS = ("published", "items", "assessments", "log", "measurements", "verdicts", "figures", "claims")


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    if patient.clone_and_prefix is None:
        return
    clone, prefix = patient.clone_and_prefix
    for folder in ("inbox", "review", "dropped", *FOLDERS):
        if is_hidden(clone, f"{prefix}{folder}/x/2026-01-01-x.md"):
            yield Finding(
                State.WARN,
                f"{folder}/ is ignored by git: git add says nothing and leaves it out (sync carries it)",
                f"git check-ignore -v {folder}/x.md, then remove that rule",
            )
    if not is_hidden(clone, f"{prefix}.kb/x"):
        yield Finding(State.WARN, ".kb/ is not ignored: git add --all would commit caches", "kb doctor --fix")


def is_hidden(clone: Git, path: str) -> bool:
    """True if git ignores a path."""
    # check-ignore refuses the literal pathspecs that every other call uses
    return clone.ok("check-ignore", "-q", "--", path, env={"GIT_LITERAL_PATHSPECS": "0"})


def fix(patient: Patient) -> None:
    """Let the cache ignore itself."""
    patient.base.write(patient.base.cache / ".gitignore", "*\n")
