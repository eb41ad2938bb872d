"""``kb schedule``: what a scheduler needs to run everything unattended."""

from __future__ import annotations

import click

from kb.cli.shared import open_base


@click.group()
def command() -> None:
    r"""Print what a scheduler needs to run ingest, triage, reproductions, publish and sync.

    \b
    kb schedule print --systemd
    """


@command.command("print")
@click.option("--systemd", "kind", flag_value="systemd", help="A user service and its timer.")
@click.option("--cron", "kind", flag_value="cron", help="A script and its line for crontab.")
@click.option("--github", "kind", flag_value="github", help="A workflow for GitHub Actions.")
@click.option("--at", default="02:05", show_default=True, metavar="HH:MM", help="Time of day; UTC on GitHub.")
@click.option(
    "--clone", metavar="DIR", help="Clone that belongs to the job. Default: this one with -job behind it."
)
@click.pass_context
def print_(ctx: click.Context, kind: str | None, at: str, clone: str | None) -> None:
    r"""Print units, a script or a workflow to standard output.

    \b
    kb schedule print --cron > kb-job.sh
    kb schedule print --github > .github/workflows/kb.yml
    """
    from kb.config import load_user
    from kb.sync.schedule import print_schedule

    if kind is None:
        raise click.UsageError("say for what: --systemd, --cron or --github", ctx)
    click.echo(print_schedule(open_base(ctx), load_user(), kind, at=at, clone=clone), nl=False)
