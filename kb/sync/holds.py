"""What people decided against: their reverts, removals and edits of what sync wrote, and what they put on hold.

A hold ends with a ``release`` in the log that is newer than the decision, that is, one the log did not yet hold in the
commit that made it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kb.model import LogEntry
from kb.sync.git import Git, Tree, read_tree
from kb.sync.history import History, last_change
from kb.sync.merge import block_text, missing_lines
from kb.sync.paths import block_of

Read = Callable[[Sequence[str]], dict[str, bytes]]


@dataclass
class Holds:
    """The decisions of people as far as a plan must respect them."""

    log: Sequence[LogEntry]
    """The log as it lies here, in order."""
    history: History
    git: Git
    tip: str
    prefix: str
    tree: Tree
    """What the branch holds."""
    read: Read
    seen: dict[str, frozenset[str]] = field(default_factory=dict)

    def asked(self, *targets: str) -> bool:
        """True if the last word in the log on one of ``targets`` is a hold."""
        last = self._last_act(targets)
        return last is not None and last.act == "hold"

    def undone(self, path: str) -> str:
        """Say how a person changed or removed what sync wrote at ``path`` last; ``""`` for not, or released."""
        last, now = self.history.last(path), self._now(path)
        if last is None or last.strip("0") == "" or last == now:
            return ""
        if now and self._same_text(last, now):
            return ""
        earlier = {version.old for version in self.history.written[path]}
        what = "removed" if not now else "reverted" if now in earlier else "changed"
        return self._unless_released(f"a person {what} it on the branch", path, block_of(path) or path)

    def undone_block(self, path: str, block: str) -> str:
        """Say whether a person took a block back to what it was before sync wrote it; ``""`` for not, or released."""
        versions = self.history.written.get(path, [])
        now = self._now(path)
        if not versions or not now or versions[-1].new == now:
            return ""
        blobs = self._blobs([now, *(v.old for v in versions), *(v.new for v in versions)])
        there = block_text(blobs[now], block)
        for version in reversed(versions):
            old, new = (block_text(blobs.get(oid, b""), block) for oid in (version.old, version.new))
            if old != new:
                if there != old:
                    return ""
                return self._unless_released("a person reverted this block on the branch", path, block)
        return ""

    def undone_lines(self, path: str) -> set[bytes]:
        """Lines of a JSON Lines file that sync wrote and people removed from the branch."""
        versions = self.history.written.get(path, [])
        now = self._now(path)
        if not versions or not now or versions[-1].new == now:
            return set()
        blobs = self._blobs([now, *(version.new for version in versions)])
        gone = missing_lines([blobs.get(version.new, b"") for version in versions], blobs[now])
        return gone if gone and self._unless_released("lines", path, path) else set()

    def _now(self, path: str) -> str:
        entry = self.tree.get(path)
        return entry.oid if entry else ""

    def _blobs(self, oids: list[str]) -> dict[str, bytes]:
        return self.read([oid for oid in dict.fromkeys(oids) if oid.strip("0")])

    def _same_text(self, one: str, other: str) -> bool:
        blobs = self._blobs([one, other])
        return blobs[one].replace(b"\r\n", b"\n") == blobs[other].replace(b"\r\n", b"\n")

    def _last_act(self, targets: Sequence[str]) -> LogEntry | None:
        acts = [entry for entry in self.log if entry.act in {"hold", "release"} and entry.target in targets]
        return acts[-1] if acts else None

    def _unless_released(self, reason: str, path: str, target: str) -> str:
        last = self._last_act([target, path])
        if last is not None and last.act == "release":
            decision = last_change(self.git, self.tip, self.prefix + path)
            if last.id not in self._log_at(decision):
                return ""
        return reason

    def _log_at(self, commit: str) -> frozenset[str]:
        """Ids in the log as a commit holds it."""
        if commit not in self.seen:
            tree = read_tree(self.git, commit, f"{self.prefix}log/") if commit else {}
            ids = set()
            for data in self.read([entry.oid for entry in tree.values()]).values():
                for line in data.splitlines():
                    try:
                        ids.add(str(json.loads(line)["id"]))
                    except (ValueError, KeyError, TypeError):
                        continue  # a line nobody can read releases nothing
            self.seen[commit] = frozenset(ids)
        return self.seen[commit]
