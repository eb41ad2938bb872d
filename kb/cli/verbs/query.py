"""``kb query SQL``: ask the base in SQL; reads only."""

from __future__ import annotations

import click

from kb.cli.shared import emit_csv, emit_json, emit_lines, emit_table, open_base, text_of


@click.command()
@click.argument("statement")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "nl"]),
    default="table",
    help="nl is one JSON object per line.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.pass_context
def command(ctx: click.Context, statement: str, form: str, as_json: bool) -> None:
    r"""Ask the base in SQL (DuckDB's dialect); nothing can be changed, read or reached outside it.

    \b
    kb query "show tables"
    kb query "select verdict, count(*) from verdicts group by 1 order by 2 desc"
    kb query "select id, title from items where list_contains(topics, 'rag')" --format csv
    """
    from kb.lens import query

    answer = query(open_base(ctx), statement)
    if as_json or form == "json":
        emit_json(answer.rows)
    elif form == "nl":
        emit_lines(answer.rows)
    elif form == "csv":
        emit_csv(answer.rows, answer.columns)
    else:
        emit_table([[text_of(row[name]) for name in answer.columns] for row in answer.rows], answer.columns)
