"""One sync: fetch, compare, commit, push, and write down what was settled. The only door to `kb.sync` that writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kb import clock
from kb.config import UserSettings, load_user
from kb.errors import BadInput, NeedsPerson
from kb.files import read_bytes, write_atomic
from kb.lock import LONG_WAIT_S, hold
from kb.store import Base
from kb.sync.bring import Brought, bring, give_commits, move_head, refuse_absorb
from kb.sync.git import Entry, Git, GitFailed
from kb.sync.history import find_batch
from kb.sync.journal import DROPPED, PUSHED, Journal
from kb.sync.landing import Landing
from kb.sync.paths import PathKind, kind_of
from kb.sync.place import Place, find_place
from kb.sync.plan import Plan
from kb.sync.private import open_private, rebuild_private
from kb.sync.queue import load_queue
from kb.sync.refusal import Kind
from kb.sync.report import Report
from kb.sync.sides import Settled, View, look, record_ground


def sync(base: Base, *, dry_run: bool = False, plan_file: Path | None = None, absorb: bool = False) -> Report:
    """Bring what changed in the base to the remote's branch.

    Args:
        base: The base.
        dry_run: Only plan; with ``plan_file`` the plan is written there.
        plan_file: Without ``dry_run``: a plan written earlier, which must still be the plan.
        absorb: Afterwards fast-forward a person's clone, if nothing in it is missing on the branch.

    Raises:
        Busy: Another sync or network ingest runs, or one on another host did not end.
        NeedsPerson: The remote was rewritten, or the given plan is no longer the plan.
        GitFailed: The remote cannot be reached.
    """
    user = load_user()
    with hold(base.root, "long", "kb sync", wait_s=LONG_WAIT_S):
        place = find_place(base, user)
        try:
            return _sync(
                place, open_private(place), user, dry_run=dry_run, plan_file=plan_file, absorb=absorb
            )
        except GitFailed as error:
            if error.kind is not Kind.BROKEN:
                raise
            git = rebuild_private(place)
            return _sync(place, git, user, dry_run=dry_run, plan_file=plan_file, absorb=absorb)


def _sync(
    place: Place, git: Git, user: UserSettings, *, dry_run: bool, plan_file: Path | None, absorb: bool
) -> Report:
    base = place.base
    report = Report(str(base.root), remote=shown(place.url), branch=place.branch, dry_run=dry_run)
    tip = git.text("rev-parse", f"refs/heads/{place.branch}")
    journal = Journal(place.folder / "journal.jsonl")
    queue = load_queue(place.folder)
    report.recovered = _recover(git, journal, tip)
    with base.writing("kb sync"):
        landing = Landing(look(git, place, tip), user, base.log(), queue, journal, report, tip)
        plan = landing.look()
    report.changes = list(plan.changes)
    if plan_file is not None:
        _agree(plan_file, plan, dry_run=dry_run)
    if not dry_run:
        landing.land()
    report.tip = landing.tip
    report.take(landing.plan)
    before = list(queue.items)
    queue.renew(landing.plan.held, landing.refused)
    report.waiting = queue.items
    if dry_run:
        return report
    queue.save()
    journal.cut()
    _settle(landing, user, absorb=absorb)
    _note_end(place, report, news=[item for item in queue.items if item not in before])
    return report


def shown(url: str) -> str:
    """A remote's address without the password it may hold."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark and "@" in rest.split("/")[0] else url


def _recover(git: Git, journal: Journal, tip: str) -> str:
    """Conclude a batch whose run was killed between push and bookkeeping; returns its id if the remote has it."""
    step = journal.unfinished()
    if step is None:
        return ""
    if find_batch(git, step.batch, tip):
        journal.write(step.batch, PUSHED, commit=step.commit)
        return step.batch
    journal.write(step.batch, DROPPED, commit=step.commit)
    return ""


def _agree(plan_file: Path, plan: Plan, *, dry_run: bool) -> None:
    """Write the plan for a person to look at, or refuse where it is no longer what they looked at."""
    value = {
        "batch": plan.batch, "tip": plan.tip,
        "changes": [[c.path, c.action, c.old, c.new] for c in plan.changes],
    }  # fmt: skip
    if dry_run:
        data = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        write_atomic(plan_file, data.encode("utf-8", "surrogateescape"), scratch=plan_file.parent)
        return
    try:
        given: Any = json.loads(read_bytes(plan_file, limit=64 << 20))
    except ValueError as error:
        raise BadInput(
            f"{plan_file}: not a plan",
            cause=str(error),
            remedy="write one with kb sync --dry-run --plan FILE",
        ) from error
    if given != value:
        moved = isinstance(given, dict) and given.get("tip") != value["tip"]
        raise NeedsPerson(
            f"{plan_file}: no longer the plan, nothing was pushed",
            cause="the branch moved since it was written"
            if moved
            else "files here changed since it was written",
            remedy="look at the new plan and run that one",
            next_command=f"kb sync --dry-run --plan {plan_file}",
        )


def _settle(landing: Landing, user: UserSettings, *, absorb: bool) -> None:
    """Bring the job's own clone to the branch, or give a person's clone its commits, and record where files stand."""
    view, plan, place = landing.view, landing.plan, landing.view.place
    brought = Brought(set(), 0)
    if place.owned or absorb:
        with place.base.writing("kb sync"):
            if absorb and not place.owned:
                _check_absorb(landing)
            mixed = [c.path for c in landing.landed if c.action != "delete" and c.work != c.new]
            held = [h.path for h in plan.held if h.person] if place.owned else []
            brought = bring(view, landing.tree, {*plan.incoming, *mixed, *held}, keep=held)
            if why := move_head(view, landing.tip):
                landing.report.notes.append(why)
        landing.report.brought = brought.written
        landing.report.behind = 0
    elif place.clone is not None:
        try:
            give_commits(view.git, place.clone, place.branch)
        except GitFailed as error:
            landing.report.notes.append(f"the clone was not given the new commits: {error.cause}")
    landed = {
        change.path: (
            None if change.action == "delete" else Entry(change.mode, change.work),
            _work_bytes(view, change),
        )
        for change in landing.landed
    }
    head = place.clone.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}") if place.clone else ""
    record_ground(view, plan, Settled(landing.tree, head, landed, brought.paths), user)


def _work_bytes(view: View, change: Any) -> bytes:
    return b"" if change.action == "delete" else view.snapshot.read(change.path)


def _check_absorb(landing: Landing) -> None:
    """Refuse where a file here holds something the branch lacks."""
    view, plan = landing.view, landing.plan
    differing = dict(plan.yours) | {
        held.path: held.reason for held in plan.held if held.path in view.snapshot.files
    }
    differing |= {item.path: item.reason for item in landing.refused if item.path in view.snapshot.files}
    here = set(view.snapshot.files)
    differing |= {
        path: "deleted here" for path in view.ground.head.keys() - here
        if path in landing.tree and kind_of(path) is not PathKind.PERSON and path not in view.hidden
    }  # fmt: skip
    if differing:
        raise refuse_absorb(view, differing)


def _note_end(place: Place, report: Report, news: list[Any]) -> None:
    """Write down how this run ended, for `kb status` and `kb doctor`."""
    value = {
        "at": clock.stamp(clock.now()), "exit": report.exit_code, "tip": report.tip, "branch": report.branch,
        "remote": report.remote, "batches": [batch.id for batch in report.batches],
    }  # fmt: skip
    del news
    write_atomic(
        place.folder / "last.json",
        (json.dumps(value, indent=2) + "\n").encode(),
        scratch=place.folder / "tmp",
    )
