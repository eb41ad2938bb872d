"""``kb sync``: the one writer to the remote."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.shared import dry_run_option, emit_json, json_option, note, open_base, say, text_of


@click.command()
@click.option("--once", is_flag=True, help="One round, then end. This is also the default; schedules say it.")
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --dry-run: write the plan there. Else: run only if it is still the plan.",
)
@click.option(
    "--absorb", is_flag=True, help="Then fast-forward this clone, if the branch has all that is in it."
)
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, once: bool, plan_file: Path | None, absorb: bool, dry_run: bool, as_json: bool
) -> int:
    r"""Bring what kb wrote, new drafts and stage moves to the remote's branch.

    \b
    kb sync --once
    kb sync --dry-run --plan plan.json && kb sync --plan plan.json

    Your files, index, branch and hooks are never touched; your own edits are listed, not carried.
    """
    from kb.sync.run import sync

    del once
    report = sync(open_base(ctx), dry_run=dry_run, plan_file=plan_file, absorb=absorb)
    if as_json:
        emit_json(report.to_json())
    else:
        for line in report.lines():
            say(text_of(line))
    if report.exit_code:
        note(f"try: kb explain {report.exit_code}" if not report.waiting else "try: kb queue list")
    return report.exit_code
