"""From a plan to commits on the remote: lost races are rebuilt on the new tip, refused items are found and set aside."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kb.config import UserSettings
from kb.files import digest
from kb.model import LogEntry
from kb.sync.commit import TipIndex, commit_changes, new_index, write_blobs
from kb.sync.git import Entry, Tree
from kb.sync.history import read_history, versions_between
from kb.sync.holds import Holds
from kb.sync.journal import DROPPED, PUSHED, PUSHING, Journal
from kb.sync.plan import make_plan
from kb.sync.planned import Change, Held, Plan
from kb.sync.private import fetch
from kb.sync.push import BATCH_BRANCH, Lease, batch_branches, push
from kb.sync.queue import ASIDE, MAX_TRIES, WAITING, Queue, Waiting, item_id
from kb.sync.refusal import Kind, Refusal
from kb.sync.report import Batch, Report
from kb.sync.screen import find_secret, has_conflict_markers, private_texts
from kb.sync.sides import View

TIME_LIMIT_S = 120.0
"""Races are given up after this long, whatever tries are left."""
FIRST_PAUSE_S = 0.05
"""Pause after the first lost race; doubled each time, with jitter, at most `MAX_PAUSE_S`."""
MAX_PAUSE_S = 0.5
MAX_PUSHES = 100
"""Pushes of one sync, all together."""
REFUSES_ALL = 3
"""Single items refused, with none accepted, after which the server is taken to refuse everything."""


@dataclass
class Landing:
    """One sync's way to the remote."""

    view: View
    user: UserSettings
    log: Sequence[LogEntry]
    queue: Queue
    journal: Journal
    report: Report
    tip: str
    tree: Tree = field(default_factory=dict)
    plan: Plan = field(default_factory=lambda: Plan(""))
    landed: list[Change] = field(default_factory=list)
    refused: list[Waiting] = field(default_factory=list)
    parted: list[Change] = field(default_factory=list)
    """Changes set aside in this run because the server refused them."""
    pushes: int = 0
    here: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    """Attributes the clone's own files give, by a digest of the paths: they do not change within a run."""
    stored: set[str] = field(default_factory=set)
    """Blobs that are in the private clone already."""
    index: TipIndex | None = None
    """Temporary index of the tip, until a commit is made with it."""
    seen: str = ""
    """Tip of the last plan; every later one contains it (`fetch` saw to that)."""
    started: float = field(default_factory=time.monotonic)

    def look(self) -> Plan:
        """Plan on the tip that is known now."""
        view, self.index = self.view, None
        self.tree = view.tree(self.tip)
        history = read_history(
            view.git,
            self.tip,
            view.place.prefix,
            email=self.user.sync_email,
            memory=view.place.folder / "history.json",
            earlier=self.seen,
        )
        self.seen = self.tip
        holds = Holds(self.log, history, view.git, self.tip, view.place.prefix, self.tree, view.read)
        algorithm = "sha256" if len(self.tip) == 64 else "sha1"  # noqa: PLR2004  hex digits
        plan = make_plan(self.tip, view.sides(self.tree), view.read, holds, algorithm=algorithm)
        self._forgive_stale(plan)
        if plan.changes:
            self._screen(plan, self._index())
        plan.held = [held for held in plan.held if not self.queue.is_dropped(held.path, held.work)]
        self.plan = plan
        return plan

    def _index(self) -> TipIndex:
        """A temporary index of the tip; the one of the screening serves for the commit too."""
        if self.index is None:
            self.index = new_index(self.view.git, self.view.place.folder, self.tip)
        return self.index

    def _forgive_stale(self, plan: Plan) -> None:
        """A file here that equals an older version of the branch is stale, not in conflict."""
        waiting = [held for held in plan.held if held.person and held.work and not held.block]
        if not waiting:
            return
        start = self.view.git.maybe("merge-base", self.view.place.head, self.tip, env=self.view.place.both)
        names = {self.view.in_repository(held.path): held for held in waiting}
        for name, versions in versions_between(self.view.git, start, self.tip, names).items():
            if names[name].work in versions and not self._was_released(names[name]):
                plan.held.remove(names[name])
                plan.incoming.add(names[name].path)

    def _was_released(self, held: Held) -> bool:
        return any(entry.act == "release" and entry.target == held.path for entry in self.log)

    # What must not leave

    def _screen(self, plan: Plan, index: TipIndex) -> None:
        view = self.view
        private = private_texts(view.place.base.root, [self.user.webhook])
        fine = frozenset(self.user.not_secret)
        names = {change.path: view.in_repository(change.path) for change in plan.changes}
        attributes = index.filters(list(names.values()), ["filter"])
        key = digest(sorted(names.values()))
        if key not in self.here:
            self.here[key] = view.place.filters_here(list(names.values()))
        attributes = {**self.here[key], **attributes}
        known = view.read([change.old for change in plan.changes if change.action == "change"])
        kept, stopped = [], set()
        for change in plan.changes:
            before = known.get(change.old, b"")
            why = self._why_not(change, attributes.get(names[change.path], {}), before, private, fine)
            if why:
                plan.held.append(Held(change.path, why, change.work or change.old, person=False))
                stopped |= {change.path, change.moved_from}
                stopped |= {f"published/.blocks/{block}.md" for block in change.blocks}
            elif not self.queue.is_dropped(change.path, change.work or change.old):
                kept.append(change)
        plan.changes = [
            c for c in kept if c.path not in stopped and not (c.moved_from and c.moved_from in stopped)
        ]

    def _why_not(
        self,
        change: Change,
        attributes: dict[str, str],
        before: bytes,
        private: list[tuple[str, bytes]],
        fine: frozenset[str],
    ) -> str:
        driver = attributes.get("filter", "unset")
        if driver != "unset":
            return f"its .gitattributes asks for the filter {driver}; sync carries no filtered (LFS) files"
        if change.action != "delete":
            if found := find_secret(change.data, private, fine, before):
                return f"{found}; nothing of it was sent"
            if has_conflict_markers(change.data) and not has_conflict_markers(before):
                return "it holds conflict markers of a half-done merge"
        item = self.queue.refused(change)
        if item is not None and item.tries >= MAX_TRIES:
            self.refused.append(item)
            return item.reason
        return ""

    # Pushing

    def land(self) -> None:
        """Push the plan; what the server refuses is narrowed down and set aside, the rest goes on."""
        everything = [change.path for change in self.plan.changes]
        parts = [(self.plan.batch, everything)] if everything else []
        singles = 0
        while parts:
            batch, paths = parts.pop()
            refusal = self._try(batch, paths)
            if refusal is None:
                continue
            if refusal.kind is Kind.PROTECTED:
                self._offer(batch, [path for part in [*parts, (batch, paths)] for path in part[1]])
                return
            halves = self._halves(paths) if refusal.kind is Kind.REFUSED else []
            if refusal.kind is not Kind.REFUSED or self.pushes >= MAX_PUSHES:
                self._give_up(refusal, [path for part in [*parts, (batch, paths)] for path in part[1]])
                return
            if halves:
                parts += [(digest([batch, half])[:16], half) for half in reversed(halves)]
                continue
            singles += 1
            if singles >= REFUSES_ALL and not self.landed and parts:
                self.refused = [
                    item for item in self.refused if item.path not in {c.path for c in self.parted}
                ]
                self.plan.changes += self.parted
                self._give_up(refusal, everything)
                return
            self._set_aside(paths, refusal)

    def _try(self, batch: str, paths: Sequence[str]) -> Refusal | None:
        """Push these paths as one commit; races are tried again, a refused single item `MAX_TRIES` times."""
        wanted = set(paths)
        lost = refused = 0
        while True:
            changes = [change for change in self.plan.changes if change.path in wanted]
            if not changes:
                return None
            refusal = self._push(batch, changes, Lease(f"refs/heads/{self.view.place.branch}", self.tip))
            if refusal is None:
                self._landed(changes)
                return None
            is_race = refusal.kind is Kind.RACE
            if is_race:
                # the pause comes before the fetch: between fetch and push every moment counts
                time.sleep(min(MAX_PAUSE_S, FIRST_PAUSE_S * 2**lost) * random.uniform(0.5, 1.0))  # noqa: S311  jitter
            if self._moved() or is_race:
                lost += 1
                self.report.retries += 1
                if lost >= self.user.sync_tries or time.monotonic() - self.started > TIME_LIMIT_S:
                    return replace(
                        refusal, kind=Kind.RACE, cause=f"{lost} races lost in a row; {refusal.cause}"
                    )
            elif refusal.kind is Kind.REMOTE_LOCK or (
                refusal.kind is Kind.REFUSED and not self._halves(paths)
            ):
                refused += 1
                if refused >= MAX_TRIES:
                    return refusal
                time.sleep(FIRST_PAUSE_S)
            else:
                return refusal

    def _push(self, batch: str, changes: Sequence[Change], lease: Lease) -> Refusal | None:
        view = self.view
        self.pushes += 1
        names = {change.path: view.in_repository(change.path) for change in changes}
        fresh = [c for c in changes if c.action != "delete" and c.new not in self.stored]
        write_blobs(view.git, (change.data for change in fresh))
        self.stored |= {change.new for change in fresh}
        commit = commit_changes(self._index(), self.tip, changes, names, batch, self.user)
        self.index = None  # it holds the commit now, not the tip
        self.journal.write(batch, PUSHING, tip=self.tip, commit=commit, paths=len(changes))
        refusal = push(view.git, view.place, commit, lease)
        if refusal is None:
            self.journal.write(batch, PUSHED, commit=commit)
            name = lease.ref.removeprefix("refs/heads/")
            self.report.batches.append(Batch(batch, commit, name, len(changes)))
        else:
            self.journal.write(batch, DROPPED, commit=commit)
        return refusal

    def _landed(self, changes: Sequence[Change]) -> None:
        self.landed += changes
        for change in changes:
            if change.action == "delete":
                self.tree.pop(change.path, None)
            else:
                self.tree[change.path] = Entry(change.mode, change.new)
        self.tip = self.report.batches[-1].commit
        self.view.git.output("update-ref", f"refs/heads/{self.view.place.branch}", self.tip)
        done = {change.path for change in changes}
        rest = [change for change in self.plan.changes if change.path not in done]
        if rest:
            self.look()

    def _moved(self) -> bool:
        """Fetch; if the branch moved, plan anew on it."""
        now = fetch(self.view.git, self.view.place)
        if now == self.tip:
            return False
        self.tip = now
        self.look()
        return True

    def _halves(self, paths: Iterable[str]) -> list[list[str]]:
        """Split a batch in two without parting what belongs together; empty if it is one unit."""
        wanted = set(paths)
        units: dict[str, list[str]] = {}
        for change in self.plan.changes:
            if change.path in wanted:
                units.setdefault(self._unit(change), []).append(change.path)
        groups = list(units.values())
        if len(groups) < 2:  # noqa: PLR2004  a half needs something in it
            return []
        middle = len(groups) // 2
        return [[path for group in part for path in group] for part in (groups[:middle], groups[middle:])]

    def _unit(self, change: Change) -> str:
        """A stage move is one unit, and so is a page with the stored texts of its blocks."""
        if change.action == "delete":
            movers = [other.path for other in self.plan.changes if other.moved_from == change.path]
            return movers[0] if movers else change.path
        for other in self.plan.changes:
            if any(change.path == f"published/.blocks/{block}.md" for block in other.blocks):
                return other.path
        return change.path

    # When it does not go

    def _set_aside(self, paths: Sequence[str], refusal: Refusal) -> None:
        for change in [change for change in self.plan.changes if change.path in set(paths)]:
            reason = f"the server refuses it: {refusal.cause}"
            work = change.work or change.old
            item = Waiting(item_id(change.path), change.path, ASIDE, reason, "", work, MAX_TRIES)
            self.refused.append(item)
            self.parted.append(change)
        self.plan.changes = [change for change in self.plan.changes if change.path not in set(paths)]

    def _give_up(self, refusal: Refusal, paths: Sequence[str]) -> None:
        self.report.refusal = f"{refusal.cause}. {refusal.remedy}"
        for change in [change for change in self.plan.changes if change.path in set(paths)]:
            work = change.work or change.old
            self.refused.append(
                Waiting(item_id(change.path), change.path, WAITING, "not pushed yet", "", work)
            )

    def _offer(self, batch: str, paths: Sequence[str]) -> None:
        """Push the plan to a batch branch, unless one with the same content waits there already."""
        view, wanted = self.view, set(paths)
        changes = [change for change in self.plan.changes if change.path in wanted]
        open_ones = batch_branches(view.git, view.place)
        for name, commit in sorted(open_ones.items()):
            if self._is_offered(name, commit, changes):
                self.report.protected = name
                break
        else:
            branch = f"{BATCH_BRANCH}{batch}"
            refusal = self._push(batch, changes, Lease(f"refs/heads/{branch}", ""))
            if refusal is not None:
                self._give_up(refusal, paths)
                return
            self.report.protected = branch
        left = sorted(name for name in open_ones if name != self.report.protected)
        if left:
            self.report.notes.append(f"older batch branches on the remote: {', '.join(left)}")

    def _is_offered(self, name: str, commit: str, changes: Sequence[Change]) -> bool:
        git, place = self.view.git, self.view.place
        if not git.ok("cat-file", "-e", f"{commit}^{{tree}}") and not git.ok(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            place.push_url,
            f"+refs/heads/{name}:refs/kb/offer",
        ):
            return False
        tree = self.view.tree(commit)
        entries = {change.path: tree.get(change.path) for change in changes}
        return all((entries[c.path].oid if entries[c.path] else "") == c.new for c in changes)  # type: ignore[union-attr]
