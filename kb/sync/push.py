"""One push, whose expected tip is named, and what its refusal means.

``--force-with-lease=REF:OLD`` with the full id is the compare-and-swap: the server updates the ref only if it holds OLD
at that very moment. A plain push would compare with whatever the server announces, and would bring back commits that
somebody took off the branch. The lease alone permits a forced update, so it is used only for a commit that `prove`
found to have OLD as its one parent: with both, every accepted update is a fast-forward by one commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb.sync.git import NETWORK_TIMEOUT_S, Git
from kb.sync.place import Place
from kb.sync.refusal import Refusal, explain

BATCH_BRANCH = "kb/batch-"
"""Branches for a protected target; the batch id makes the name, so a leftover never stands in the way."""


@dataclass(frozen=True)
class Lease:
    """A ref of the remote and what it must hold for a push to count."""

    ref: str
    expected: str
    """Commit; empty: the ref must not exist."""


def push(git: Git, place: Place, commit: str, lease: Lease) -> Refusal | None:
    """Push one commit to one ref; None if the remote took it.

    Args:
        git: The private clone.
        place: Where to.
        commit: Its one parent is ``lease.expected``, or the ref is new.
        lease: What the ref must hold.
    """
    done = git.run(
        "push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no",
        f"--force-with-lease={lease.ref}:{lease.expected}", place.push_url, f"{commit}:{lease.ref}",
        timeout_s=NETWORK_TIMEOUT_S,
    )  # fmt: skip
    if done.returncode == 0:
        return None
    status = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("!")]
    said = "\n".join([done.stderr.decode("utf-8", "replace"), *(line.replace("\t", " ") for line in status)])
    return explain(said)


def remote_ref(git: Git, place: Place, ref: str) -> str:
    """What the remote's ref holds now; empty for none."""
    return git.maybe("ls-remote", place.push_url, ref).split("\t")[0]


def batch_branches(git: Git, place: Place) -> dict[str, str]:
    """Batch branches on the remote: name → commit."""
    listing = git.maybe("ls-remote", place.push_url, f"refs/heads/{BATCH_BRANCH}*")
    pairs = (line.split("\t") for line in listing.splitlines() if "\t" in line)
    return {name.removeprefix("refs/heads/"): commit for commit, name in pairs}
