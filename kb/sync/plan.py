"""What one sync would change on the branch: a three-way comparison per path, decided before anything is written.

*base* is what the files here come from (the last sync, or the merge base), *work* is what lies here, *tip* is what the
branch holds. Only what differs between base and work is planned, so a stale folder can never revert anybody; where the
branch changed too, a person's text stays and ours is held. The same inputs and a newer tip give the same plan again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from kb.sync.git import Entry
from kb.sync.holds import Holds, Read
from kb.sync.merge import merge_lines, merge_page, text_outside, without_lines
from kb.sync.paths import PathKind, block_of, kind_of, stage_name, why_not_portable
from kb.sync.planned import Change, Held, Plan, Sides
from kb.sync.worktree import WorkFile, blob_id

FILE_MODES = frozenset({"100644", "100755"})
MASS_DELETION = 20
"""More deletions than this that are also more than half of what is tracked look like a lost folder, not a decision."""


def make_plan(
    tip: str, sides: Sides, read: Read, holds: Holds | None = None, *, algorithm: str = "sha1"
) -> Plan:
    """Compare the three sides.

    Args:
        tip: Commit of ``sides.tip``.
        sides: What is compared.
        read: Gives blobs of base, head and tip.
        holds: Decisions of people to respect; None for none.
        algorithm: The repository's hash.
    """
    plan = Plan(tip, left_out=dict(sides.work.left_out))
    plan.held += [Held(path, why, person=False) for path, why in sorted(sides.work.unusable.items())]
    builder = _Builder(plan, sides, read, algorithm, holds)
    changed, gone = _differences(plan, sides)
    moves = _find_moves(sides, changed, gone)
    builder.load([*changed, *gone])
    builder.decide_removals(gone, moves)
    builder.decide_changes(changed, moves)
    plan.changes.sort(key=lambda change: change.path)
    plan.held.sort(key=lambda held: (held.path, held.block))
    return plan


def _differences(plan: Plan, sides: Sides) -> tuple[list[str], list[str]]:
    """Paths that differ here from their base, and paths of the base that are gone here; the rest is noted."""
    changed, gone = [], []
    for path, file in sides.work.files.items():
        if file.same(sides.tip.get(path)):
            plan.agreed.add(path)
        elif file.same(sides.base.get(path)) or (not sides.owned and file.same(sides.shared.get(path))):
            plan.incoming.add(path)
        else:
            changed.append(path)
    for path in sides.base.keys() | sides.tip.keys():
        if path in sides.work.files or sides.work.is_blind(path):
            continue
        if path in sides.base and path in sides.tip:
            gone.append(path)
        elif path in sides.tip and sides.tip[path].mode in FILE_MODES:
            plan.incoming.add(path)
    return sorted(changed), sorted(gone)


def _find_moves(sides: Sides, changed: list[str], gone: list[str]) -> dict[str, str]:
    """New place of a draft → the place it left; the file name is what a stage move keeps."""
    left: dict[str, list[str]] = {}
    for path in gone:
        if name := stage_name(path):
            left.setdefault(name, []).append(path)
    moves: dict[str, str] = {}
    for path in changed:
        if path in sides.base:
            continue
        places = left.get(stage_name(path), [])
        if len(places) > 1:
            file = sides.work.files[path]
            places = [p for p in places if file.same(sides.base[p])] or [
                p for p in places if p.split("/")[1:-1] == path.split("/")[1:-1]
            ]
        if len(places) == 1:
            moves[path] = places[0]
    return moves


@dataclass
class _Builder:
    """Turns differences into changes, held items and a person's own edits."""

    plan: Plan
    sides: Sides
    read: Read
    algorithm: str
    holds: Holds | None
    blobs: dict[str, bytes] = field(default_factory=dict)
    stuck: dict[str, str] = field(default_factory=dict)
    """Block → why it cannot be planned."""

    def load(self, paths: list[str]) -> None:
        """Read every blob the decisions may need, in one call."""
        wanted = []
        for path in paths:
            if kind_of(path) is PathKind.PERSON:
                continue
            entries = [tree.get(path) for tree in (self.sides.base, self.sides.tip, self.sides.head)]
            wanted += [entry.oid for entry in entries if entry is not None and entry.mode in FILE_MODES]
        self.blobs = self.read(wanted)

    def blob(self, entry: Entry | None) -> bytes:
        """Content of an entry; empty where there is none."""
        return self.blobs.get(entry.oid, b"") if entry else b""

    # Removals

    def decide_removals(self, gone: list[str], moves: dict[str, str]) -> None:
        """Plan removals of paths that were tracked here, or left by a stage move."""
        left = {old: new for new, old in moves.items()}
        planned = []
        for path in gone:
            base, tip = self.sides.base[path], self.sides.tip[path]
            if base.mode not in FILE_MODES or tip.mode not in FILE_MODES:
                continue
            if not self._may_remove(path, moved=path in left):
                self.plan.incoming.add(path)
            elif kind_of(path) is PathKind.PERSON:
                self.plan.yours[path] = "deleted here: git rm it and commit, or git restore it"
            elif tip.oid != base.oid:
                self._hold(path, "it was removed or moved here, and a person changed it on the branch")
                if path in left:
                    self._hold(left[path], f"its old place {path} was changed on the branch meanwhile")
            else:
                planned.append(Change(path, "delete", old=tip.oid))
        tracked = sum(1 for path in self.sides.base if kind_of(path) is not PathKind.PERSON)
        lost = [change for change in planned if change.path not in left]
        if len(lost) > MASS_DELETION and len(lost) * 2 > tracked:
            for change in lost:
                self._hold(
                    change.path, "more than half of all tracked files are gone here; is the folder whole?"
                )
            planned = [change for change in planned if change.path in left]
        self.plan.changes += planned

    def _may_remove(self, path: str, *, moved: bool) -> bool:
        if path in self.sides.hidden:
            return False
        is_kept_by_kb = path.endswith(".proposal.md")
        return moved or self.sides.owned or path in self.sides.head or is_kept_by_kb

    # Changes

    def decide_changes(self, changed: list[str], moves: dict[str, str]) -> None:
        """Plan what differs here: pages last but one, so that a block and its stored text wait together."""
        held_before = {held.path for held in self.plan.held}
        pages = [path for path in changed if kind_of(path) is PathKind.PAGE]
        stored = [path for path in changed if block_of(path)]
        later = {*pages, *stored}
        rest = [path for path in changed if path not in later]
        for path in stored:
            if self._clashes(path) and not path.endswith(".proposal.md"):
                self.stuck[block_of(path)] = "its stored text was changed on the branch"
        for path in [*rest, *pages, *stored]:
            if path in held_before:
                continue
            tip, base = self.sides.tip.get(path), self.sides.base.get(path)
            if any(entry and entry.mode not in FILE_MODES for entry in (tip, base)):
                self.plan.left_out[path] = "a link or submodule on the branch"
                continue
            if kind_of(path) is PathKind.PERSON and not self.is_new_base:
                self.plan.yours[path] = self._todo(path)
                continue
            try:
                self._decide(path, kind_of(path), moves.get(path, ""))
            except OSError as error:
                self._hold(path, f"not readable while it was looked at: {error.strerror}", person=False)

    @cached_property
    def is_new_base(self) -> bool:
        """True if the branch has no base in this folder yet: then its settings go with the first batch."""
        return "kb.toml" not in self.sides.tip and "kb.toml" not in self.sides.base

    def _todo(self, path: str) -> str:
        head = self.sides.head.get(path)
        if head is None:
            return "new here: git add it and commit"
        return (
            "committed here: push it" if self.sides.work.files[path].same(head) else "changed here: commit it"
        )

    def _clashes(self, path: str) -> bool:
        tip, base = self.sides.tip.get(path), self.sides.base.get(path)
        return (tip.oid if tip else "") != (base.oid if base else "")

    def _decide(self, path: str, kind: PathKind, moved_from: str) -> None:
        tip, base = self.sides.tip.get(path), self.sides.base.get(path)
        if self.holds is not None and self.holds.asked(path, block_of(path) or path, _draft_id(path)):
            self._hold(path, "a person put it on hold")
        elif tip is None and base is None:
            self._new(path, moved_from)
        elif tip is None:
            self._hold(path, "a person removed it from the branch")
        elif kind in {PathKind.LINES, PathKind.PAGE}:
            (self._lines if kind is PathKind.LINES else self._page)(path, base, tip)
        elif kind is PathKind.DRAFT and base is not None and (path in self.sides.head or self.sides.owned):
            self.plan.yours[path] = "edited here: commit it"
        elif block_of(path) in self.stuck:
            self._hold(path, f"it waits with its block: {self.stuck[block_of(path)]}", block=block_of(path))
        elif self._clashes(path) and not self._only_newlines(base, tip):
            self._hold(path, "the branch has another version of it")
        elif self.holds is not None and (why := self.holds.undone(path)):
            self._hold(path, why)
        else:
            self._put(path, fit_newlines(self._work_bytes(path), self.blob(tip)), tip)

    def _only_newlines(self, base: Entry | None, tip: Entry) -> bool:
        return base is not None and to_lf(self.blob(base)) == to_lf(self.blob(tip))

    def _new(self, path: str, moved_from: str) -> None:
        if moved_from and self.sides.tip.get(moved_from) is None:
            self._hold(path, f"its old place {moved_from} is gone from the branch")
        elif not moved_from and self.holds is not None and (why := self.holds.undone(path)):
            self._hold(path, why)
        elif block_of(path) in self.stuck:
            self._hold(path, f"it waits with its block: {self.stuck[block_of(path)]}", block=block_of(path))
        else:
            self._add(path, moved_from)

    def _lines(self, path: str, base: Entry | None, tip: Entry) -> None:
        data = merge_lines(self.blob(base), self._work_bytes(path), self.blob(tip))
        removed = self.holds.undone_lines(path) if self.holds else set()
        kept = without_lines(data, removed)
        if kept != data:
            self._hold(path, "a person removed lines of it on the branch that are here again")
        self._put(path, kept, tip)

    def _page(self, path: str, base: Entry | None, tip: Entry) -> None:
        work, ground, there = self._work_bytes(path), self.blob(base), self.blob(tip)
        merged = merge_page(ground, work, there, self.stuck)
        kept_back = dict(self.stuck)
        topic = path.removeprefix("published/").removesuffix("/index.md")
        for block in merged.planned if self.holds else ():
            assert self.holds is not None  # noqa: S101  for mypy
            if self.holds.asked(block, topic):
                kept_back[block] = "a person put it on hold"
            elif why := self.holds.undone_block(path, block):
                kept_back[block] = why
        if kept_back != self.stuck:
            merged = merge_page(ground, work, there, kept_back)
        for block, why in merged.held.items():
            self.stuck[block] = why
            self._hold(path, why, block=block)
        own = self.blob(self.sides.head.get(path) or base or tip)
        if text_outside(work) != text_outside(own):
            self.plan.yours[path] = "text outside kb's blocks was edited here: commit it"
        self._put(path, merged.data, tip, blocks=tuple(merged.planned))

    def _work_bytes(self, path: str) -> bytes:
        return self.sides.work.read(path)

    def _work_oid(self, path: str) -> str:
        """Blob of the bytes that were read: an editor may have saved since the snapshot was taken."""
        return blob_id(self._work_bytes(path), self.algorithm)

    def _add(self, path: str, moved_from: str) -> None:
        if why := why_not_portable(path) or self._collision(path):
            self._hold(path, why, person=False)
            return
        data = self._work_bytes(path)
        data = data if path.endswith(".orig") or b"\0" in data else to_lf(data)
        new = blob_id(data, self.algorithm)
        self.tip_folded.setdefault(path.casefold(), path)
        self.plan.changes.append(
            Change(path, "add", new=new, data=data, work=self._work_oid(path), moved_from=moved_from)
        )

    def _collision(self, path: str) -> str:
        """Why a new path cannot stand beside what the branch has."""
        folders = path.split("/")
        for count in range(1, len(folders)):
            if "/".join(folders[:count]) in self.sides.tip:
                return f"the branch has a file where this needs a folder: {'/'.join(folders[:count])}"
        if path in self.tip_folders:
            return "the branch has a folder of this name"
        twin = self.tip_folded.get(path.casefold())
        if twin is not None and twin != path:
            return f"differs from {twin} in upper and lower case only"
        return ""

    @cached_property
    def tip_folders(self) -> set[str]:
        """Every folder of the branch."""
        return {path[:at] for path in self.sides.tip for at, char in enumerate(path) if char == "/"}

    @cached_property
    def tip_folded(self) -> dict[str, str]:
        """Every path of the branch by its case-folded form, without those that go in this plan."""
        going = {change.path for change in self.plan.changes if change.action == "delete"}
        return {path.casefold(): path for path in self.sides.tip if path not in going}

    def _put(self, path: str, data: bytes, tip: Entry, blocks: tuple[str, ...] = ()) -> None:
        new = blob_id(data, self.algorithm)
        if new == tip.oid:
            self.plan.incoming.add(path)
            return
        work = self._work_oid(path)
        self.plan.changes.append(Change(path, "change", tip.oid, new, tip.mode, data, work, blocks))

    def _hold(self, path: str, reason: str, *, block: str = "", person: bool = True) -> None:
        file: WorkFile | None = self.sides.work.files.get(path)
        self.plan.held.append(Held(path, reason, file.oid if file else "", block, person))


def to_lf(data: bytes) -> bytes:
    """Read CRLF as LF."""
    return data.replace(b"\r\n", b"\n")


def fit_newlines(data: bytes, tip: bytes) -> bytes:
    """Give ``data`` the line endings of the version it replaces; binary data stays as it is."""
    if b"\0" in data:
        return data
    lf = to_lf(data)
    return lf.replace(b"\n", b"\r\n") if tip.count(b"\r\n") * 2 > tip.count(b"\n") else lf


def _draft_id(path: str) -> str:
    """``curator/date-slug`` of a draft's path."""
    return "/".join(path.removesuffix(".md").split("/")[-2:]) if stage_name(path) else path
