"""``kb sources``: what the base follows and why, and whether it answers."""

from __future__ import annotations

import datetime as dt

import click

from kb.cli.shared import emit_json, emit_rows, fields_option, json_option, open_base


@click.group()
def command() -> None:
    """What the base follows, and whether it answers."""


@command.command("list")
@json_option
@fields_option
@click.pass_context
def list_sources(ctx: click.Context, as_json: bool, fields: str) -> None:
    r"""Every source with its kind, address and the reason why it is followed.

    \b
    kb sources list --fields name,kind,note
    """
    rows = [source.to_json() for source in open_base(ctx).sources().values()]
    emit_rows(
        rows,
        as_json=as_json,
        fields=fields,
        columns=("name", "kind", "enabled", "url", "query", "why", "note"),
    )


@command.command("test")
@click.argument("names", nargs=-1, metavar="[NAME]…")
@json_option
@click.pass_context
def test_sources(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> int:
    r"""Ask sources and say how they answer; nothing is written. Sources without a feed say so.

    Exit code 4 where one does not answer as it should.

    \b
    kb sources test red-hat
    """
    from kb.config import load_user
    from kb.http import Client
    from kb.ingest.choose import choose_sources
    from kb.ingest.run import ingest, open_window

    base = open_base(ctx)
    chosen = choose_sources(base, names)
    window = open_window(
        base, (open_window(base, None, None, "").now - dt.timedelta(days=30)).date(), None, ""
    )
    with Client(load_user()) as client:
        outcome = ingest(base, chosen, window, client, dry_run=True, fresh=True)
    pages = "no feed: the page itself is watched"
    notes = {source.name: source.note or (pages if source.kind == "page" else "") for source in chosen}
    rows = [{**report.to_json(), "note": notes.get(report.name, "")} for report in outcome.reports]
    if as_json:
        emit_json(rows)
    else:
        emit_rows(
            rows, as_json=False, fields="", columns=("name", "status", "fetched", "seconds", "detail", "note")
        )
    return outcome.exit_code()
