"""``kb triage``: decide about what is new with a reason each, and draft what is worth reading."""

from __future__ import annotations

import contextlib
import datetime as dt
from typing import TYPE_CHECKING

import click

from kb.cli.shared import dry_run_option, emit_json, json_option, note, open_base, say

if TYPE_CHECKING:
    from kb.triage.run import TriageReport


@click.command()
@click.option(
    "--since", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]), help="Only items first seen on or after."
)
@click.option(
    "--budget", metavar="N", type=click.IntRange(min=0), help="At most N entries in a calendar week."
)
@click.option("--llm", metavar="URL", help="OpenAI-compatible server that may add words, never decisions.")
@click.option("--again", is_flag=True, help="Decide anew about items that no draft holds.")
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    since: dt.datetime | None,
    budget: int | None,
    llm: str | None,
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    r"""Assess items by the rules of the base and write one draft per topic into the inbox.

    A draft belongs to its reviewer once it is written: it is never rewritten, and an item stands in one draft only.
    What stays below the threshold, repeats an earlier item or exceeds the budget is listed with its reason.

    \b
    kb triage --since 2026-06-10
    kb triage --budget 12 --dry-run
    """
    from kb.triage.run import run_triage

    base = open_base(ctx)
    day = since.date() if since else None
    with contextlib.nullcontext() if dry_run else base.writing("kb triage"):
        report = run_triage(base, since=day, budget=budget, llm=llm, again=again, dry_run=dry_run)
    if as_json:
        emit_json(report.to_json())
    else:
        _tell(report, dry_run)


def _tell(report: TriageReport, dry_run: bool) -> None:
    counted = ", ".join(f"{report.decided[key]} {key}" for key in ("keep", "watch", "drop", "duplicate"))
    say(f"{report.assessed} assessed: {counted}")
    for draft in report.drafts:
        would = "would write " if dry_run else ""
        say(f"{would}{draft['path']}: {draft['entries']} entries, {draft['candidates']} below the threshold")
    if report.updated:
        say(f"newer versions of drafted items: {', '.join(report.updated)}")
    if report.over_budget:
        say(f"{report.over_budget} beyond the budget of this week: they wait for the next")
    if report.lost:
        note(
            f"{len(report.lost)} items were drafted and their draft is gone; kb triage --again drafts them once more"
        )
    if report.llm:
        refused = ", ".join(f"{why}: {count}" for why, count in report.llm["fell_back"].items())
        note(f"notes of the model: {report.llm['used']} used" + (f"; left out: {refused}" if refused else ""))
    if report.resumed:
        note("a run that had been interrupted was completed first")
