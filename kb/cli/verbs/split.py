"""``kb split``: two ids, two works; a person decides and the log remembers."""

from __future__ import annotations

import click

from kb.cli.shared import acting_person, dry_run_option, emit_json, json_option, open_base, say


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--reason", required=True, help="Why; kept in the log.")
@dry_run_option
@json_option
@click.pass_context
def command(ctx: click.Context, ids: tuple[str, ...], reason: str, dry_run: bool, as_json: bool) -> None:
    r"""Undo a merge, or keep two items apart that look alike.

    The log keeps it; `kb why` does not propose the pair again.

    \b
    kb split url:example.org/part-1 url:example.org/part-2 --reason "two parts of one series"
    """
    from kb import clock
    from kb.ingest.merges import plan_split, record

    base = open_base(ctx)
    acts = plan_split(base, ids)
    if not dry_run:
        with base.writing("kb split"):
            record(base, acts, reason=reason, who=acting_person(base), at=clock.stamp(clock.now()))
    if as_json:
        emit_json([act.to_json() for act in acts])
    else:
        for act in acts:
            say(f"{act.target} is not {act.to}" + (" (not recorded)" if dry_run else ""))
