"""Filter drivers (LFS) that .gitattributes names: sync carries no filtered path, and a missing tool breaks git add."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "no filter rule, or its tool is installed"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    clone = patient.clone
    if clone is None or patient.git_folder is None:
        return
    rules: dict[str, str] = {}
    for path in [*sorted(clone.directory.rglob(".gitattributes")), patient.git_folder / "info/attributes"]:
        if path.is_file():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                for driver in re.findall(r"\bfilter=(\S+)", "" if line.lstrip().startswith("#") else line):
                    rules.setdefault(driver, f"{path.relative_to(clone.directory)}: {line.split()[0]}"
                                     if path.is_relative_to(clone.directory) else str(path))  # fmt: skip
    for driver, where in sorted(rules.items()):
        program = "git-lfs" if driver == "lfs" else _program(patient, driver)
        if program and shutil.which(program):
            yield Finding(State.NOTE, f"{where} is filtered by {driver}; sync carries no such path")
        else:
            yield Finding(
                State.WARN,
                f"{where} asks for the filter {driver}, and {program or 'its program'} is not installed: git add would "
                "store the wrong bytes without an error, so sync carries no such path",
                "apt-get install git-lfs && git lfs install"
                if driver == "lfs"
                else f"git config filter.{driver}.clean",
            )


def _program(patient: Patient, driver: str) -> str:
    assert patient.clone is not None  # noqa: S101  the caller has one
    done = subprocess.run(
        ["git", "-C", str(patient.clone.directory), "config", f"filter.{driver}.clean"],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    return done.stdout.split()[0] if done.stdout.split() else ""
