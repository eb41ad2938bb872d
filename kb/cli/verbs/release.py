"""``kb release``: kb writes a block or a page again."""

from __future__ import annotations

import click

from kb.cli.shared import acting_person, dry_run_option, note, open_base


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@click.option("--reason", required=True, help="Why; kept in the log.")
@dry_run_option
@click.pass_context
def command(ctx: click.Context, ids: tuple[str, ...], reason: str, dry_run: bool) -> None:
    r"""Let kb write blocks or pages again that were held, taken over or removed.

    \b
    kb release inference/kvcache/evidence --reason "settled"
    """
    from kb import clock
    from kb.publish.review import release

    base = open_base(ctx)
    if dry_run:
        for name in ids:
            note(f"{name}: would be released")
        return
    with base.writing("kb release"):
        who, at = acting_person(base), clock.stamp(clock.now())
        for name in ids:
            done = release(base, name, reason=reason, who=who, at=at)
            note(f"{name}: " + ("released" if done else "nothing held it"))
