"""Lines of JSON Lines files that readers skip."""

from __future__ import annotations

from collections.abc import Iterator

from kb.store import Base
from kb.triage.findings import Finding, Subject

CODES = {"bad-line": "a line that cannot be read as its record; readers skip it"}


def check(subject: Subject) -> Iterator[Finding]:
    """Items, decisions, the log and every measurement."""
    base = Base(subject.base.root)
    for records in (base.items(), base.assessments()):
        for _ in records:
            pass
    base.log()
    for folder in sorted((base.root / "measurements").glob("*")):
        if folder.is_dir() and folder.name != "env":
            for _ in base.measurements(folder.name):
                pass
    for problem in base.problems:
        yield Finding(base.relative(problem.path), problem.line, "bad-line", problem.why)
