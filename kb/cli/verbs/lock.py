"""``kb lock``: who holds the locks of a base, and breaking one that another machine left."""

from __future__ import annotations

from dataclasses import asdict

import click

from kb.cli.shared import dry_run_option, emit_rows, fields_option, json_option, open_base, say

NAMES = ("write", "long")


@click.group()
def command() -> None:
    r"""Say who holds a lock; break one that a run on another machine left.

    \b
    kb lock show
    kb lock break long
    """


@command.command("show")
@json_option
@fields_option
@click.pass_context
def show(ctx: click.Context, as_json: bool, fields: str) -> None:
    r"""Say who holds the short write lock and the long one of ingest and sync.

    \b
    kb lock show --json
    """
    from kb.lock import is_foreign, is_held, read_owner

    base = open_base(ctx)
    rows = []
    for name in NAMES:
        owner = read_owner(base.root, name)
        held = is_held(base.root, name)
        state = "held" if held else "left by another machine" if owner and is_foreign(owner) else "free"
        nobody = {"pid": None, "host": "", "start": "", "what": "", "boot": ""}
        rows.append(
            {"name": name, "state": state, **(asdict(owner) if owner and state != "free" else nobody)}
        )
    emit_rows(rows, as_json=as_json, fields=fields, columns=("name", "state", "what", "pid", "host", "start"))


@command.command("break")
@click.argument("name", type=click.Choice(NAMES), default="long")
@dry_run_option
@click.pass_context
def break_(ctx: click.Context, name: str, dry_run: bool) -> None:
    r"""Take away the record of a lock that a run on another machine left behind.

    \b
    kb lock break long

    A lock that a living process here holds is never broken: end the process, and the kernel frees it.
    """
    from kb.lock import break_lock, is_foreign, read_owner

    base = open_base(ctx)
    owner = read_owner(base.root, name)
    if owner is None or not is_foreign(owner):
        say(f"{name}: nothing to break")
        return
    if not dry_run:
        break_lock(base.root, name)
    done = "would break" if dry_run else "broke"
    say(f"{done} {name}: {owner.what}, pid {owner.pid} on {owner.host}, since {owner.start}")
