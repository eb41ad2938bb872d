"""What one sync did, as data and as lines to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kb.errors import worst
from kb.sync.planned import Change, Plan
from kb.sync.queue import ASIDE, HELD, Waiting

SHOWN = 30
"""Paths of one kind that are printed; JSON has all."""


@dataclass(frozen=True)
class Batch:
    """One commit that reached the remote."""

    id: str
    commit: str
    branch: str
    paths: int


@dataclass
class Report:
    """The outcome of one sync."""

    root: str
    remote: str = ""
    branch: str = ""
    tip: str = ""
    """What the branch holds at the end."""
    dry_run: bool = False
    changes: list[Change] = field(default_factory=list)
    """What was planned."""
    batches: list[Batch] = field(default_factory=list)
    recovered: str = ""
    """Batch that an earlier, killed run had pushed already."""
    retries: int = 0
    """Races lost and tried again."""
    waiting: list[Waiting] = field(default_factory=list)
    yours: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    brought: int = 0
    """Files of the job's own clone that were brought to the branch's version."""
    behind: int = 0
    """Files here that the branch has in a newer version."""
    protected: str = ""
    """Batch branch that waits to be merged, because the branch takes no direct push."""
    refusal: str = ""
    """Why the remote refused at the end; empty if it did not."""
    notes: list[str] = field(default_factory=list)

    def take(self, plan: Plan) -> None:
        """Note what a plan found beside its changes."""
        self.yours, self.left_out, self.behind = plan.yours, plan.left_out, len(plan.incoming)

    @property
    def exit_code(self) -> int:
        """The contract's code: the first of 7, 3, 4, 0 that applies."""
        codes = [0]
        if self.refusal:
            codes.append(7)
        if self.protected or any(item.state == HELD for item in self.waiting):
            codes.append(3)
        if any(item.state == ASIDE for item in self.waiting):
            codes.append(4)
        return worst(codes)

    def to_json(self) -> dict[str, Any]:
        """The document that ``--json`` prints."""
        return {
            "root": self.root, "remote": self.remote, "branch": self.branch, "tip": self.tip,
            "dry_run": self.dry_run,
            "plan": [
                {"path": c.path, "action": c.action, "blocks": list(c.blocks), "from": c.moved_from, "old": c.old,
                 "new": c.new} for c in self.changes
            ],
            "batches": [
                {"id": b.id, "commit": b.commit, "branch": b.branch, "paths": b.paths} for b in self.batches
            ],
            "recovered": self.recovered, "retries": self.retries, "protected": self.protected,
            "queue": [
                {"id": w.id, "path": w.path, "block": w.block, "state": w.state, "reason": w.reason, "tries": w.tries}
                for w in self.waiting
            ],
            "yours": [{"path": path, "todo": todo} for path, todo in sorted(self.yours.items())],
            "left_out": [{"path": path, "why": why} for path, why in sorted(self.left_out.items())],
            "brought": self.brought, "behind": self.behind, "refusal": self.refusal, "notes": self.notes,
            "exit": self.exit_code,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """The answer for a person."""
        yield f"{self.remote}  {self.branch} {self.tip[:12]}"
        if self.recovered:
            yield f"batch {self.recovered} had reached the remote before an earlier run was killed; recorded"
        marks = {"add": "+", "change": "~", "delete": "-"}
        shown = self.changes if self.dry_run or len(self.changes) <= SHOWN else self.changes[:SHOWN]
        for change in shown:
            more = f"  (from {change.moved_from})" if change.moved_from else ""
            blocks = f"  blocks {', '.join(change.blocks)}" if change.blocks else ""
            yield f"  {marks[change.action]} {change.path}{more}{blocks}"
        if len(shown) < len(self.changes):
            yield f"  … and {len(self.changes) - len(shown)} more"
        if self.dry_run:
            yield f"would push {len(self.changes)} paths" if self.changes else "nothing to push"
        for batch in self.batches:
            yield f"pushed {batch.paths} paths to {batch.branch} as {batch.commit[:12]}, batch {batch.id}"
        if not self.batches and not self.changes and not self.dry_run:
            yield "nothing to push"
        if self.retries:
            times = "1 retry" if self.retries == 1 else f"{self.retries} retries"
            yield f"{times}: somebody pushed at the same moment, which is expected; nothing was lost"
        yield from self._waiting_lines()

    def _waiting_lines(self) -> Iterator[str]:
        if self.protected:
            yield f"{self.branch} takes no direct push: merge {self.protected}"
        if self.refusal:
            yield f"not pushed: {self.refusal}; all of it is kept here and tried again by the next sync"
        for item in self.waiting:
            what = f"{item.path}#{item.block}" if item.block else item.path
            yield f"{item.state} {item.id}  {what}: {item.reason}"
        if self.yours:
            yield "yours, not carried:"
            yield from (f"  {path}: {todo}" for path, todo in sorted(self.yours.items())[:SHOWN])
        if self.left_out:
            yield "not carried:"
            yield from (f"  {path}: {why}" for path, why in sorted(self.left_out.items())[:SHOWN])
        if self.brought:
            yield f"brought {self.brought} files here to the branch's version"
        elif self.behind:
            yield f"the branch has newer versions of {self.behind} files: git pull, or kb sync --absorb"
        yield from self.notes
