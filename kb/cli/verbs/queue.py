"""``kb queue``: what sync could not carry, and what to do with it."""

from __future__ import annotations

from dataclasses import asdict

import click

from kb.cli.shared import (
    acting_person,
    dry_run_option,
    emit_rows,
    fields_option,
    json_option,
    open_base,
    say,
    text_of,
)


@click.group()
def command() -> None:
    r"""List what waits for a person or was set aside; try it again or drop it.

    \b
    kb queue list
    kb queue retry inbox/jay/2026-06-10-brief.md
    """


@command.command("list")
@json_option
@fields_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool, fields: str) -> None:
    r"""List what the last sync could not carry, with the reason.

    \b
    kb queue list --json
    """
    from kb.sync.queue import load_queue

    rows = [asdict(item) for item in load_queue(open_base(ctx).cache / "sync").items]
    emit_rows(
        rows, as_json=as_json, fields=fields, columns=("id", "state", "path", "block", "tries", "reason")
    )


@command.command("retry")
@click.argument("names", metavar="ID|PATH…", nargs=-1, required=True)
@dry_run_option
@click.pass_context
def retry(ctx: click.Context, names: tuple[str, ...], dry_run: bool) -> None:
    r"""Let the next sync try items again that were set aside.

    \b
    kb queue retry inbox/jay/2026-06-10-brief.md
    """
    from kb.sync.run import change_queue

    for item in change_queue(open_base(ctx), "retry", names, dry_run=dry_run):
        say(f"{'would retry' if dry_run else 'the next sync tries'} {text_of(item.path)}")


@command.command("drop")
@click.argument("names", metavar="ID|PATH…", nargs=-1, required=True)
@dry_run_option
@click.pass_context
def drop(ctx: click.Context, names: tuple[str, ...], dry_run: bool) -> None:
    r"""Forget this version of items: the files stay here and are not planned until they change.

    \b
    kb queue drop 4f1c22d09a31
    """
    from kb.sync.run import change_queue

    for item in change_queue(open_base(ctx), "drop", names, dry_run=dry_run):
        say(f"{'would drop' if dry_run else 'dropped'} {text_of(item.path)}")


@command.command("release")
@click.argument("names", metavar="PATH|BLOCK…", nargs=-1, required=True)
@click.option("--reason", required=True, help="Why; kept in the log.")
@dry_run_option
@click.pass_context
def release(ctx: click.Context, names: tuple[str, ...], reason: str, dry_run: bool) -> None:
    r"""Let kb write again what a person reverted, changed or removed on the branch.

    \b
    kb queue release verdicts/eai.json --reason "measured again"
    """
    from kb import clock
    from kb.sync.run import release_items

    base = open_base(ctx)
    for target in release_items(
        base, names, reason=reason, who=acting_person(base), at=clock.stamp(clock.now()), dry_run=dry_run
    ):
        say(f"{'would release' if dry_run else 'released'} {text_of(target)}")
