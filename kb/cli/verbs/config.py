"""``kb config``: every setting, its value, where it comes from and the variable that overrides it."""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, emit_table, json_option
from kb.errors import WrongUse


@click.group()
def command() -> None:
    """Show settings: those of the base, which may be shared, and the user's own, which a base must not decide."""


@command.command()
@click.option("--origin", is_flag=True, help="Also which file or variable each value comes from.")
@json_option
@click.pass_context
def show(ctx: click.Context, origin: bool, as_json: bool) -> None:
    r"""Print every setting; what may hold a secret is only said to be set.

    \b
    kb config show --origin
    """
    from kb.settings import explain_settings

    try:
        from kb.cli.shared import open_base

        root = open_base(ctx).root
    except WrongUse:
        root = None  # the user's own settings can be shown without a base
    rows = explain_settings(root)
    if as_json:
        emit_json([{"name": r.name, "value": r.value, "origin": r.origin, "env": r.env} for r in rows])
        return
    columns = ("name", "value", "origin") if origin else ("name", "value")
    emit_table([[getattr(row, name) for name in columns] for row in rows], columns)


@command.command()
@json_option
def env(as_json: bool) -> None:
    r"""List the variables that set something, and whether they are set here.

    \b
    kb config env
    """
    from kb.settings import variables

    rows = variables()
    if as_json:
        emit_json([{"env": name, "set": is_set, "meaning": meaning} for name, is_set, meaning in rows])
        return
    emit_table(
        [[name, "set" if is_set else "", meaning] for name, is_set, meaning in rows], ("variable", "", "")
    )
