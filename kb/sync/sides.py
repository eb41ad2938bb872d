"""Gathers what a plan compares: the trees of git and the files here, all below the base and composed (NFC)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from kb.config import UserSettings
from kb.errors import NeedsPerson
from kb.sync.commit import commit_tree, new_index, write_blobs
from kb.sync.git import Entry, Git, Tree, read_blobs, read_tree
from kb.sync.holds import Read
from kb.sync.paths import nfc
from kb.sync.place import Place
from kb.sync.planned import Plan, Sides
from kb.sync.private import BASE_REF
from kb.sync.worktree import Snapshot, take_snapshot


@dataclass
class Trees:
    """Trees of commits, composed, each read once."""

    git: Git
    place: Place
    spelling: dict[str, str] = field(default_factory=dict)
    """Composed path → spelling in git, where it differs."""
    known: dict[str, Tree] = field(default_factory=dict)

    def of(self, commit: str) -> Tree:
        """A commit's files below the base; two names that compose to one are left alone. Not to be changed."""
        if not commit:
            return {}
        key = self.git.text("rev-parse", f"{commit}^{{tree}}", env=self.place.both)
        if key not in self.known:
            self.known[key] = self.read(commit)
            self.known[commit] = self.known[key]
        return self.known[key]

    def read(self, commit: str) -> Tree:
        """As `of`, without asking whether another commit has the same tree: one git call less before a push."""
        if commit not in self.known:
            tree, spelling = composed(read_tree(self.git, commit, self.place.prefix, env=self.place.both))
            self.spelling |= spelling
            self.known[commit] = tree
        return self.known[commit]


@dataclass(frozen=True)
class Ground:
    """What the files here come from, and what says so."""

    tree: Tree
    """Path → version the file here comes from."""
    shared: Tree
    """What HEAD and the branch have in common."""
    head: Tree
    commit: str
    """Commit to build the next `BASE_REF` on."""


@dataclass
class View:
    """The repository and the files of one run."""

    git: Git
    place: Place
    snapshot: Snapshot
    ground: Ground
    trees: Trees
    hidden: frozenset[str] = frozenset()

    @property
    def spelling(self) -> dict[str, str]:
        """Composed path → the branch's own spelling, where it differs."""
        return self.trees.spelling

    def tree(self, commit: str) -> Tree:
        """A commit's files, composed; a copy."""
        return dict(self.trees.read(commit))

    def sides(self, tip_tree: Tree) -> Sides:
        """What a plan compares with the branch at one tip."""
        return Sides(
            base=self.ground.tree, work=self.snapshot, tip=tip_tree, head=self.ground.head,
            shared=self.ground.shared, owned=self.place.owned, hidden=self.hidden,
        )  # fmt: skip

    @property
    def read(self) -> Read:
        """Reads blobs of the private clone and of the clone the base lies in."""

        def read(oids: Sequence[str]) -> dict[str, bytes]:
            return read_blobs(self.git, oids, env=self.place.both)

        return read

    def in_repository(self, path: str) -> str:
        """A path below the base as the repository spells it."""
        return self.place.prefix + self.spelling.get(path, path)


def composed(tree: Tree) -> tuple[Tree, dict[str, str]]:
    """Key a tree by composed names; returns it and the spellings that differ."""
    if all(path.isascii() for path in tree):
        return tree, {}
    found: Tree = {}
    spelling: dict[str, str] = {}
    twins = set()
    for path, entry in tree.items():
        name = nfc(path)
        if name in found:
            twins.add(name)
        found[name] = entry
        if name != path:
            spelling[name] = path
    return {path: entry for path, entry in found.items() if path not in twins}, spelling


def find_ground(trees: Trees, tip: str) -> Ground:
    """Work out what the files here come from.

    The last sync recorded it per path (`BASE_REF`). Where HEAD holds another version of a path now than it did then, and
    not the recorded one, git has rewritten the file since, and the merge base says what it comes from.

    Raises:
        NeedsPerson: HEAD and the branch have no history in common.
    """
    git, place, env = trees.git, trees.place, trees.place.both
    shared_commit = git.maybe("merge-base", place.head, tip, env=env) if place.head else ""
    if place.head and not shared_commit:
        raise NeedsPerson(
            f"{place.base.root}: this clone and {place.branch} have no history in common",
            cause=f"HEAD {place.head[:12]} and {tip[:12]} share no commit; the remote was replaced, or is another one",
            remedy="nothing was pushed; clone the remote anew, or name the right one with KB_REMOTE. "
            "Never join unrelated histories",
            next_command="kb doctor",
        )
    shared, head = trees.of(shared_commit), trees.of(place.head)
    recorded = git.maybe("rev-parse", "--verify", "--quiet", BASE_REF)
    then = git.maybe("log", "-1", "--format=%s", recorded).removeprefix("head ") if recorded else ""
    if not recorded or (then and not git.ok("cat-file", "-e", f"{then}^{{tree}}", env=env)):
        return Ground(shared, shared, head, shared_commit or "")
    last = trees.of(recorded)
    if then == place.head:
        return Ground(last, shared, head, recorded)
    before = trees.of(then)
    paths = last.keys() | shared.keys()
    kept = {
        path: (last if head.get(path) in (before.get(path), last.get(path)) else shared).get(path)
        for path in paths
    }
    return Ground({path: entry for path, entry in kept.items() if entry}, shared, head, recorded)


@dataclass
class Settled:
    """What one run settled between the files here and the branch."""

    tip_tree: Tree
    """What the branch holds now."""
    head: str
    """The clone's HEAD now."""
    landed: dict[str, tuple[Entry | None, bytes]] = field(default_factory=dict)
    """Path → version here that is in the branch now, with its bytes; None where its removal is."""
    brought: set[str] = field(default_factory=set)
    """Paths whose file here was made equal to the branch's."""


def record_ground(view: View, plan: Plan, settled: Settled, user: UserSettings) -> None:
    """Write down what the files here come from now; nothing is written where nothing changed.

    Args:
        view: The run.
        plan: The plan at the branch's new tip.
        settled: What became of it.
        user: Identity.
    """
    tree = dict(view.ground.tree)
    here = view.snapshot.files
    for path in [path for path in tree if path not in here and path not in settled.tip_tree]:
        del tree[path]  # removed on both sides
    for path in plan.agreed | settled.brought:
        if path in settled.tip_tree:
            tree[path] = settled.tip_tree[path]
        else:
            tree.pop(path, None)
    for path, (entry, _) in settled.landed.items():
        if entry is None:
            tree.pop(path, None)
        else:
            tree[path] = entry
    subject = f"head {settled.head}"
    if tree == view.ground.tree and view.git.maybe("log", "-1", "--format=%s", BASE_REF) == subject:
        return
    write_blobs(view.git, (data for entry, data in settled.landed.values() if entry))
    start = view.ground.commit or view.git.text("rev-parse", f"refs/heads/{view.place.branch}")
    index = new_index(view.git, view.place.folder, start)
    before = view.tree(start)
    changed = {path for path in tree.keys() | before.keys() if tree.get(path) != before.get(path)}
    index.put(_entry(view, tree, path) for path in sorted(changed))
    commit = commit_tree(view.git, index.write_tree(), [], f"{subject}\n", user)
    view.git.output("update-ref", BASE_REF, commit)


def _entry(view: View, tree: Tree, path: str) -> tuple[str, str, str]:
    entry = tree.get(path)
    return (entry.mode if entry else "0", entry.oid if entry else "", view.in_repository(path))


def look(git: Git, place: Place, tip: str) -> View:
    """Take the snapshot of the base; the caller holds the short write lock."""
    trees = Trees(git, place)
    ground = find_ground(trees, tip)
    algorithm = "sha256" if len(tip) == 64 else "sha1"  # noqa: PLR2004  hex digits
    snapshot = take_snapshot(
        place.base.root, ground.head, algorithm=algorithm, memory=place.folder / "files.json"
    )
    return View(git, place, snapshot, ground, trees, _hidden(place))


def _hidden(place: Place) -> frozenset[str]:
    """Tracked paths a sparse checkout does not show."""
    if place.clone is None or place.clone.maybe("config", "--bool", "core.sparseCheckout") != "true":
        return frozenset()
    raw = place.clone.output("ls-files", "-t", "-z", "--full-name")
    names = (os.fsdecode(record[2:]) for record in raw.split(b"\0") if record.startswith(b"S "))
    return frozenset(nfc(name[len(place.prefix) :]) for name in names if name.startswith(place.prefix))
