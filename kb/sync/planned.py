"""The records a plan is made of: what is compared, what would change, what waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kb.files import digest
from kb.sync.git import Tree
from kb.sync.worktree import Snapshot


@dataclass(frozen=True)
class Change:
    """One path of a commit."""

    path: str
    """Below the base, composed (NFC)."""
    action: Literal["add", "change", "delete"]
    old: str = ""
    """Blob on the branch."""
    new: str = ""
    """Blob it becomes."""
    mode: str = "100644"
    data: bytes = b""
    """Bytes of ``new``."""
    work: str = ""
    """Blob here that this comes from."""
    blocks: tuple[str, ...] = ()
    """For a page: blocks that become ours."""
    moved_from: str = ""
    """For a draft that changed its stage: where it was."""


@dataclass(frozen=True)
class Held:
    """A change that waits."""

    path: str
    reason: str
    work: str = ""
    """Blob here that waits."""
    block: str = ""
    """Block, where only that waits."""
    person: bool = True
    """True: a person decides. False: it cannot be applied as it is."""


@dataclass
class Plan:
    """All that one comparison found."""

    tip: str
    changes: list[Change] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    yours: dict[str, str] = field(default_factory=dict)
    """A person's own changes here → what to do with them; never planned."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Links and submodules → why they are not carried."""
    incoming: set[str] = field(default_factory=set)
    """Paths that only the branch changed."""
    agreed: set[str] = field(default_factory=set)
    """Paths that are equal here and on the branch."""

    @property
    def batch(self) -> str:
        """Id of the batch: a digest of where it starts and what it carries, so a rerun has the same."""
        return digest([self.tip, [[c.path, c.action, c.work] for c in self.changes]])[:16]


@dataclass(frozen=True)
class Sides:
    """The versions that are compared; paths are below the base and composed (NFC)."""

    base: Tree
    work: Snapshot
    tip: Tree
    head: Tree
    """What the clone's HEAD holds; empty without git."""
    shared: Tree = field(default_factory=dict)
    """What HEAD and the branch have in common. In a person's clone a file that is back at it was put back by git
    (a stash, a checkout), so it is stale and no change."""
    owned: bool = False
    """True: the clone belongs to the job, so nobody's own edits are in it."""
    hidden: frozenset[str] = frozenset()
    """Tracked paths that a sparse checkout does not show; never taken for deleted."""
