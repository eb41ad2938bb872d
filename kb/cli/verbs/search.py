"""``kb search``: find pages, claims, items and drafts by words."""

from __future__ import annotations

import click

from kb.cli.shared import emit_rows, fields_option, json_option, note, open_base
from kb.vocab import STAGES

COLUMNS = ("kind", "id", "title", "snippet")


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--stage", type=click.Choice(STAGES), default=None, help="Only what stands in this stage.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="At most so many.")
@fields_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, words: tuple[str, ...], stage: str | None, limit: int, fields: str, as_json: bool
) -> None:
    r"""Find WORDS in pages, claims, items and drafts, best first; every word must occur.

    Chinese words of two characters are found in the middle of a title, ids as a whole.

    \b
    kb search 显存
    kb search 2606.06302 --json
    """
    from kb.search import search

    hits = search(open_base(ctx), " ".join(words), stage=stage or "", limit=limit)
    emit_rows([hit.to_json() for hit in hits], as_json=as_json, fields=fields, columns=COLUMNS)
    if not hits:
        note("nothing found")
