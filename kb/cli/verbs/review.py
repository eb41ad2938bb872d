"""``kb review``: decide about blocks whose new text clashed with an edit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kb.cli.shared import acting_person, clip, emit_json, json_option, note, open_base, say
from kb.errors import WrongUse

if TYPE_CHECKING:
    from kb.publish.review import Waiting
    from kb.store import Base

KEYS = {"a": "accept", "r": "reject", "e": "edit", "h": "hold", "s": "skip", "q": "quit"}


@click.command()
@click.argument("block", required=False, metavar="[ID]")
@click.option("--diff", is_flag=True, help="Show your edit and kb's new text.")
@click.option(
    "--accept", "act", flag_value="accept", help="Take kb's new text; your edit of this block goes."
)
@click.option("--reject", "act", flag_value="reject", help="Keep yours; kb merges its next result into it.")
@click.option("--edit", "act", flag_value="edit", help="Write a third text in $EDITOR.")
@click.option("--hold", "act", flag_value="hold", help="Keep yours and let kb leave this block alone.")
@click.option("--reason", default="", help="Why; kept in the log.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, block: str | None, diff: bool, act: str | None, reason: str, as_json: bool
) -> int:
    r"""Decide about held blocks; without ID and options, list them, on a terminal one by one with keys.

    \b
    kb review                                       what waits
    kb review inference/kvcache/evidence --diff     both sides
    kb review inference/kvcache/evidence --accept --reason "their run has more samples"
    """
    from kb.publish.review import find_waiting, waiting_blocks

    base = open_base(ctx)
    if act and not block:
        raise WrongUse(
            f"--{act}: which block?", cause="no ID was given", remedy="name one", next_command="kb review"
        )
    if block and act:
        note(_settle(base, block, act, reason))
        return 0
    waiting = [find_waiting(base, block)] if block else waiting_blocks(base)
    if as_json:
        emit_json([_row(one) for one in waiting])
    elif sys.stdin.isatty() and sys.stdout.isatty() and not diff:
        return _ask(base, waiting, reason)
    else:
        for one in waiting:
            _show(one, full=diff or block is not None)
    if not waiting:
        note("nothing waits for you")
    return 3 if any(not one.asked for one in waiting) else 0


def _row(one: Waiting) -> dict[str, object]:
    return {
        "id": one.id,
        "page": one.page,
        "line": one.line,
        "asked": one.asked,
        "your_edit": one.edit(),
        "new_result": one.diff(),
    }


def _show(one: Waiting, *, full: bool) -> None:
    say(f"{one.id}  {one.page}:{one.line}" + ("  held by you" if one.asked else ""))
    if full:
        say("your edit:\n" + one.edit())
        say("from yours to kb's new text:\n" + one.diff())


def _settle(base: Base, block: str, act: str, reason: str) -> str:
    from kb import clock
    from kb.publish.review import decide, find_waiting, hold

    text = _edited(find_waiting(base, block)) if act == "edit" else None
    if act == "edit" and text is None:
        return f"{block}: left as it is; nothing was saved"
    with base.writing("kb review"):
        who, at = acting_person(base), clock.stamp(clock.now())
        if act == "hold":
            name = find_waiting(base, block).id
            hold(base, name, reason=reason, who=who, at=at)
            return f"{name}: held; kb release {name} lets kb write it again"
        done = decide(
            base, block, "reject" if act == "reject" else "accept", reason=reason, who=who, at=at, text=text
        )
    return f"{done}: {act}ed"


def _edited(one: Waiting) -> bytes | None:
    """Let a person write the text: theirs first, kb's below a line; None where nothing was saved."""
    cut = "<!-- everything below this line is kb's new text, for you to copy from; it is removed -->"
    mine, theirs = (data.decode("utf-8", "surrogateescape") for data in (one.mine, one.proposal))
    saved = click.edit(f"{mine}{cut}\n{theirs}", extension=".md", require_save=True)
    return None if saved is None else saved.partition(cut)[0].encode("utf-8", "surrogateescape")


def _ask(base: Base, waiting: list[Waiting], reason: str) -> int:
    """One block after the other, one key each."""
    left = False
    for one in waiting:
        _show(one, full=True)
        say(clip("[a]ccept  [r]eject, keep mine  [e]dit  [h]old  [s]kip  [q]uit", 100))
        key = click.getchar().lower()
        act = KEYS.get(key, "skip")
        if act == "quit":
            return 3
        if act == "skip":
            left = left or not one.asked
            continue
        note(_settle(base, one.id, act, reason or "kb review"))
    return 3 if left else 0
