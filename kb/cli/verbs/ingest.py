"""``kb ingest``: what sources gave, or drafts that people wrote, into the base."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.shared import dry_run_option, emit_json, json_option, note, open_base
from kb.errors import WrongUse, worst


@click.command()
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DRAFT",
    help="A curator's draft.",
)
@click.option("--curator", help="Who wrote it, where the text does not say.")
@click.option("--date", metavar="DAY", help="Its day, where the text does not say.")
@click.option("--slug", help="Its name in the inbox; else the file's name.")
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[Path, ...],
    curator: str | None,
    date: str | None,
    slug: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    r"""Take drafts that people wrote into the inbox: every entry an item, every byte kept.

    \b
    kb ingest --file 2026-06-10-kv-serve.txt
    """
    from kb.cli.root import print_error
    from kb.ingest.files import ingest_files

    if not files:
        raise WrongUse("kb ingest: nothing to do", cause="no --file was given", remedy="give --file DRAFT")
    base = open_base(ctx)
    with base.writing("kb ingest"):
        report = ingest_files(base, files, curator=curator, date=date, slug=slug, dry_run=dry_run)
    for error in report.failed:
        print_error(error)
    if as_json:
        emit_json(report.to_json())
    else:
        for draft in report.drafts:
            click.echo(
                f"{draft.path}: {draft.entries} entries ({draft.new} new, {draft.updated} updated, "
                f"{draft.known} known), {draft.candidates} candidates"
            )
            for line, why in draft.unreadable:
                note(f"  line {line}: {why}")
            for text in draft.notes:
                note(f"  {text}")
    return worst([error.exit_code for error in report.failed])
