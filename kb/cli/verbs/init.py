"""``kb init DIR``: a new knowledge base."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.shared import dry_run_option, emit_json, json_option, note, say


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--lang", type=click.Choice(["zh", "en"]), default="en", help="Language of drafts and pages.")
@dry_run_option
@json_option
def command(folder: Path, lang: str, dry_run: bool, as_json: bool) -> None:
    r"""Make a knowledge base in DIR; what is there already stays as it is.

    \b
    kb init ~/research-kb --lang zh
    """
    from kb.starter import make_base

    written = make_base(folder.expanduser(), lang, dry_run=dry_run)
    if as_json:
        emit_json({"root": str(folder), "written": written})
        return
    if not written:
        say(f"{folder}: a knowledge base already, nothing changed")
    for name in written:
        say(f"{'would write' if dry_run else 'wrote'} {folder / name}")
    if written and not dry_run:
        note(f"next: git init {folder}, then kb -C {folder} ingest --since 2026-06-10")
