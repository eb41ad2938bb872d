"""One sync: fetch, compare, commit, push, and write down what was settled. The only door to `kb.sync` that writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kb import clock
from kb.config import UserSettings, load_user
from kb.errors import BadInput, KbError, NeedsPerson
from kb.files import read_bytes, write_atomic
from kb.heartbeat import sync_folder
from kb.lock import LONG_WAIT_S, hold
from kb.store import Base
from kb.sync.beat import write_beat
from kb.sync.bring import Brought, bring, give_commits, move_head, refuse_absorb
from kb.sync.commit import clear_indexes
from kb.sync.git import Entry, Git, GitFailed
from kb.sync.history import find_batch
from kb.sync.journal import DROPPED, PUSHED, Journal
from kb.sync.landing import Landing
from kb.sync.notify import notify, queue_events, verdict_events
from kb.sync.paths import PathKind, kind_of
from kb.sync.place import Place, find_place, shown
from kb.sync.planned import Plan
from kb.sync.private import open_private, rebuild_private
from kb.sync.queue import Waiting, load_queue
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
        try:
            return _sync_or_rebuild(base, user, Options(dry_run, plan_file, absorb))
        except KbError as error:
            if not dry_run:
                _note_failure(base, user, error)
            raise


@dataclass(frozen=True)
class Options:
    """What was asked for."""

    dry_run: bool = False
    plan_file: Path | None = None
    absorb: bool = False


def _sync_or_rebuild(base: Base, user: UserSettings, options: Options) -> Report:
    place = find_place(base, user)
    try:
        return _sync(place, open_private(place), user, options)
    except GitFailed as error:
        if error.kind is not Kind.BROKEN:
            raise
        return _sync(place, rebuild_private(place), user, options)
    finally:
        clear_indexes(place.folder)


def change_queue(
    base: Base, what: Literal["retry", "drop"], names: Sequence[str], *, dry_run: bool
) -> list[Waiting]:
    """Retry or drop items of the queue; returns them.

    Raises:
        NothingMatches: A name is neither id, path nor block of an item.
        Busy: A sync runs.
    """
    folder = base.cache / "sync"
    with hold(base.root, "long", f"kb queue {what}", wait_s=LONG_WAIT_S):
        queue = load_queue(folder)
        chosen = queue.retry(names) if what == "retry" else queue.drop(names)
        if not dry_run:
            queue.save()
    return chosen


def release_items(
    base: Base, names: Sequence[str], *, reason: str, who: str, at: str, dry_run: bool
) -> list[str]:
    """End holds of the queue by an entry in the log; returns what was released.

    Raises:
        NothingMatches: A name is neither id, path nor block of an item.
    """
    items = load_queue(base.cache / "sync").retry(names)
    targets = list(dict.fromkeys(item.block or item.path for item in items))
    if not dry_run:
        with base.writing("kb queue release"):
            for target in targets:
                base.append_log("release", target, who=who, at=at, reason=reason)
    return targets


def _sync(place: Place, git: Git, user: UserSettings, options: Options) -> Report:
    base, dry_run = place.base, options.dry_run
    report = Report(str(base.root), remote=shown(place.url), branch=place.branch, dry_run=dry_run)
    tip = git.text("rev-parse", f"refs/heads/{place.branch}")
    journal = Journal(place.folder / "journal.jsonl")
    queue = load_queue(place.folder)
    report.recovered = _recover(git, journal, tip)
    with base.writing("kb sync"):
        landing = Landing(look(git, place, tip), user, base.log(), queue, journal, report, tip)
        plan = landing.look()
    report.changes = list(plan.changes)
    if options.plan_file is not None:
        _agree(options.plan_file, plan, dry_run=dry_run)
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
    _settle(landing, user, absorb=options.absorb)
    _tell(landing, user, [item for item in queue.items if item not in before])
    return report


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


def _tell(landing: Landing, user: UserSettings, news: list[Waiting]) -> None:
    """Write down how this run ended, renew the heartbeat, and notify whom the user named."""
    place, report = landing.view.place, landing.report
    value = {
        "at": clock.stamp(clock.now()), "exit": report.exit_code, "tip": report.tip, "branch": report.branch,
        "remote": report.remote, "batches": [batch.id for batch in report.batches], "problem": report.refusal,
    }  # fmt: skip
    _write_last(place.base, value)
    if why := write_beat(landing.view.git, place, user, report.exit_code, report.tip):
        report.notes.append(why)
    events = queue_events(news)
    changed = [change for change in landing.landed if change.path.startswith("verdicts/")]
    events += verdict_events(changed, landing.view.read([change.old for change in changed if change.old]))
    if report.refusal:
        events.append({"event": "failed-sync", "reason": report.refusal})
    report.notes += notify(user, events, branch=report.branch)


def _note_failure(base: Base, user: UserSettings, error: KbError) -> None:
    value = {
        "at": clock.stamp(clock.now()),
        "exit": error.exit_code,
        "problem": f"{error.what}: {error.cause}",
    }
    _write_last(base, value)
    notify(user, [{"event": "failed-sync", "reason": value["problem"]}], branch="")


def _write_last(base: Base, value: dict[str, Any]) -> None:
    folder = sync_folder(base)
    data = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    write_atomic(folder / "last.json", data.encode("utf-8", "backslashreplace"), scratch=folder / "tmp")
