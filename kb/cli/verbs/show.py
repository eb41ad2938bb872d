"""``kb show ID``: one thing of the base and all that hangs on it."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.shared import emit_json, emit_table, json_option, open_base, say, text_of


@click.command()
@click.argument("wanted", metavar="ID")
@click.option("--history", "with_history", is_flag=True, help="Also what happened to it, oldest first.")
@json_option
@click.pass_context
def command(ctx: click.Context, wanted: str, with_history: bool, as_json: bool) -> None:
    r"""Show an item, draft, entry, claim, run, measurement, topic or source.

    ID may be an address, a bare arXiv id or the unambiguous ending of a draft's id.

    \b
    kb show eai/evict-14400
    kb show 2606.06302 --history
    kb show jay/2026-06-10-kv-serve#4
    """
    from kb.lookup import find, history

    base = open_base(ctx)
    found = find(base, wanted)
    lines = history(base, found) if with_history else []
    if as_json:
        value = {"kind": found.kind, "id": found.id, "record": found.record, **found.more}
        emit_json({**value, "history": lines} if with_history else value)
        return
    say(f"{found.kind}  {text_of(found.id)}")
    print_fields(found.record)
    for name, value in found.more.items():
        say(f"\n{name}")
        print_more(value)
    if with_history:
        say("\nhistory")
        emit_table([[text_of(line[k]) for k in ("at", "what", "who", "text")] for line in lines], ("at", "what", "who", "what happened"))  # fmt: skip


def print_fields(record: dict[str, Any]) -> None:
    """Print the fields that hold something, names aligned."""
    kept = {name: value for name, value in record.items() if value not in (None, "", [], {})}
    width = max((len(name) for name in kept), default=0)
    for name, value in kept.items():
        say(f"  {name.ljust(width)}  {text_of(value)}")


def print_more(value: Any) -> None:
    """Print what hangs on a record: another record, records, or ids."""
    if not value:
        say("  none")
    elif isinstance(value, dict):
        print_fields(value)
    else:
        for part in value:
            if isinstance(part, dict):
                say("  -")
                print_fields(part)
            else:
                say(f"  {text_of(part)}")
