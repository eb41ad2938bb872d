"""``kb status``: where the base stands, on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.shared import emit_json, json_option, note, open_base, say

if TYPE_CHECKING:
    from kb.status import Status

SHORT = {"not-comparable": "not comparable"}
"""Verdicts whose name on the screen differs."""


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    r"""Say where the base stands: stages, verdicts, what is stale or held, who writes.

    \b
    kb status
    kb status --json
    """
    from kb import clock
    from kb.repro.harness.stale import find_stale
    from kb.status import summarise

    base = open_base(ctx)
    stale = find_stale(base, clock.now().date())
    status = summarise(base, stale=[one.cause for one in stale])
    if as_json:
        emit_json(status.to_json())
        return
    for name, text in screen(status):
        say(f"{name:<10}{text}")
    for problem in status.problems[:3]:
        note(f"not read: {problem}")
    if len(status.problems) > 3:  # noqa: PLR2004  three lines show the kind
        note(f"not read: {len(status.problems) - 3} more; kb check lists them")


def screen(status: Status) -> list[tuple[str, str]]:
    """Lines of the screen: a name and what stands beside it."""
    stages = status.stages
    oldest = f" (oldest {status.oldest_review_days} d)" if status.oldest_review_days is not None else ""
    verdicts = [f"{SHORT.get(name, name)} {count}" for name, count in status.verdicts.items() if count]
    return [
        ("root", f"{_home(status.root)}   {_git(status)}   zone {status.zone}"),
        (
            "drafts",
            f"inbox {stages['inbox']}   review {stages['review']}{oldest}   published {stages['published']}",
        ),
        ("base", f"{status.items} items   {status.pages} pages   {status.claims} claims"),
        ("claims", " · ".join(verdicts) or "none yet"),
        ("stale", _stale(status)),
        (
            "held",
            f"{len(status.held)}: {', '.join(status.held[:3])}   kb review" if status.held else "nothing",
        ),
        ("sync", _sync(status)),
        ("lock", _locks(status)),
    ]


def _git(status: Status) -> str:
    git = status.git
    if git is None:
        return "not in git"
    apart = [f"remote +{git.behind}"] if git.behind else []
    apart += [f"{git.ahead} not pushed"] if git.ahead else []
    return ", ".join([f"{git.branch} {git.commit}", *apart])


def _stale(status: Status) -> str:
    causes = ", ".join(f"{cause} ×{count}" for cause, count in status.stale.items())
    return f"{causes}   kb stale --why" if causes else "nothing"


def _sync(status: Status) -> str:
    sync = status.sync
    said = [
        f"last {'ok' if sync.exit == 0 else f'ended with {sync.exit}'} {sync.at}" if sync.at else "never here"
    ]
    said += [
        f"queue {count} {name}"
        for name, count in (("held", sync.held), ("set aside", sync.set_aside), ("not pushed", sync.waiting))
        if count
    ]
    return ", ".join(said) + (f"   ALARM: {sync.alarm}   kb doctor" if sync.alarm else "")


def _locks(status: Status) -> str:
    held = [
        f"{lock.name} lock: {lock.what} (pid {lock.pid}, since {lock.since})"
        for lock in status.locks
        if lock.held
    ]
    return "; ".join(held) or "free"


def _home(root: str) -> str:
    home = str(Path.home())
    return f"~{root.removeprefix(home)}" if root == home or root.startswith(f"{home}/") else root
