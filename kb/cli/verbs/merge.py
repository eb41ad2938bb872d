"""``kb merge``: two ids, one work; a person decides and the log remembers."""

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
    r"""Say that items are one work; what comes later under any of these ids counts as the first.

    The log keeps it, `kb split` takes it back, no item is rewritten.

    \b
    kb merge url:example.org/post arxiv:2606.06302 --reason "the post is the paper's own page"
    """
    from kb import clock
    from kb.ingest.merges import plan_merge, record

    base = open_base(ctx)
    acts = plan_merge(base, ids)
    if not dry_run:
        with base.writing("kb merge"):
            record(base, acts, reason=reason, who=acting_person(base), at=clock.stamp(clock.now()))
    if as_json:
        emit_json([act.to_json() for act in acts])
    else:
        for act in acts:
            say(f"{act.target} is {act.to}" + (" (not recorded)" if dry_run else ""))
