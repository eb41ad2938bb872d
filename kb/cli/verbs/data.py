"""``kb data``: the public data sets reproductions read, where they come from, and which are here."""

from __future__ import annotations

import click

from kb.cli.shared import dry_run_option, emit_json, emit_table, json_option, say


@click.group()
def command() -> None:
    """List and fetch the public data sets that are not ours to ship; KB_DATA_DIR may name a folder that has them."""


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    r"""List the data sets with size, licence and whether they are here.

    \b
    kb data list
    """
    from kb.datasets import data_folder, datasets, missing

    rows = [
        {
            "name": one.name,
            "here": not missing(one),
            "bytes": one.num_bytes,
            "files": len(one.file),
            "licence": one.licence,
            "origin": one.origin,
            "cite": one.cite,
            "title": one.title,
            "folder": str(data_folder()),
        }
        for one in datasets().values()
    ]
    if as_json:
        emit_json(rows)
        return
    cells = [
        [r["name"], "yes" if r["here"] else "no", f"{r['bytes']:,}", r["licence"], r["title"]] for r in rows
    ]
    emit_table([[str(cell) for cell in row] for row in cells], ("name", "here", "bytes", "licence", "what"))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@dry_run_option
@json_option
def fetch(names: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    r"""Fetch what is missing of data sets; a file is kept only if its bytes are those on record.

    \b
    kb data fetch azure-2023
    """
    from kb.datasets import data_folder, fetch, plan

    done = [plan(name) if dry_run else fetch(name) for name in names]
    if as_json:
        emit_json(
            [
                {"name": d.name, "folder": str(d.folder), "fetched": d.fetched, "present": d.present}
                for d in done
            ]
        )
        return
    for one in done:
        for path in one.fetched:
            say(f"{'would fetch' if dry_run else 'fetched'} {data_folder() / path}")
        for path in one.present:
            say(f"here: {data_folder() / path}")
