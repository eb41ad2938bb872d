"""The remote can be reached, its branch found, and the credential may push."""

from __future__ import annotations

from collections.abc import Iterator

from kb.errors import KbError
from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.git import Git
from kb.sync.place import shown
from kb.sync.refusal import explain

TITLE = "the remote takes our pushes"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    problem = patient.place_or_problem
    if isinstance(problem, KbError):
        yield Finding(State.FAIL, f"{problem.what}: {problem.cause}", problem.remedy)
        return
    place = problem
    git = Git(patient.base.root, bare=False, config=place.config)
    if place.clone is not None and place.head:
        done = place.clone.run(
            "push", "--dry-run", "--porcelain", "--no-verify", place.push_url, "HEAD:refs/heads/kb/batch-doctor",
        )  # fmt: skip
        if done.returncode != 0:
            why = explain(done.stderr.decode("utf-8", "replace"))
            yield Finding(State.FAIL, f"{shown(place.push_url)} takes no push: {why.cause}", why.remedy)
            return
    listing = git.maybe("ls-remote", place.url, "refs/heads/kb/batch-*")
    left = [line.split("\t")[1].removeprefix("refs/heads/") for line in listing.splitlines() if "\t" in line]
    if left:
        yield Finding(
            State.WARN, f"batch branches wait on the remote: {', '.join(left)}",
            f"merge them, or git push {shown(place.push_url)} --delete {left[0]}",
        )  # fmt: skip
    yield Finding(State.OK, f"{shown(place.url)} answers, branch {place.branch} at {place.tip[:12]}")
