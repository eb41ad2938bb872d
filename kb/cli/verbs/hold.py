"""``kb hold``: kb leaves a block or a page alone until it is released."""

from __future__ import annotations

import click

from kb.cli.shared import acting_person, dry_run_option, note, open_base


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--reason", required=True, help="Why; kept in the log.")
@dry_run_option
@click.pass_context
def command(ctx: click.Context, ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    r"""Ask kb to leave blocks or pages alone: new text then waits beside the page.

    \b
    kb hold inference/kvcache/evidence --reason "under discussion"
    """
    from kb import clock
    from kb.publish.review import hold

    base = open_base(ctx)
    if dry_run:
        for name in ids:
            note(f"{name}: would be held")
        return
    with base.writing("kb hold"):
        who, at = acting_person(base), clock.stamp(clock.now())
        for name in ids:
            done = hold(base, name, reason=reason, who=who, at=at)
            note(f"{name}: " + ("held" if done else "held already"))
