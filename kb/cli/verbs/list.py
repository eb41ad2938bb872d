"""``kb list``: items, drafts, claims, runs or verdicts, filtered in SQL, as a table or JSON."""

from __future__ import annotations

import click

from kb.cli.shared import emit_rows, fields_option, json_option, open_base

WHAT = ("items", "drafts", "claims", "runs", "verdicts")


@click.command()
@click.argument("what", type=click.Choice(WHAT))
@click.option(
    "--where",
    metavar="EXPR",
    default="",
    help="Boolean SQL expression over the columns that --json shows.",
)
@fields_option
@json_option
@click.pass_context
def command(ctx: click.Context, what: str, where: str, fields: str, as_json: bool) -> None:
    r"""List what the base holds.

    \b
    kb list verdicts --where "verdict = 'contradicted'"
    kb list items --where "stars >= 4 and list_contains(topics, 'inference/kvcache')"
    kb list claims --json --fields id,low,high,unit
    """
    from kb.tables import TABLES, read_table

    base = open_base(ctx)
    if where:
        from kb.lens import filter_rows

        rows = filter_rows(base, what, where)
    else:
        rows = read_table(base, what)
    emit_rows(rows, as_json=as_json, fields=fields, columns=TABLES[what].shown)
