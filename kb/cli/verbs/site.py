"""``kb site``: the published base as a site."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.shared import emit_json, json_option, note, open_base, say


@click.group()
def command() -> None:
    """Build or serve the site: pages, all claims with filters, search, feeds, JSON. It asks no other host for anything."""


@command.command("build")
@click.option(
    "--dir", "folder", metavar="DIR", default="", help="Where it goes; default .kb/html in the base."
)
@click.option(
    "--url",
    "address",
    metavar="URL",
    default="",
    help="Where it will be served; else links in feeds are relative.",
)
@json_option
@click.pass_context
def build(ctx: click.Context, folder: str, address: str, as_json: bool) -> None:
    r"""Build the site, Chinese and English, into DIR.

    \b
    kb site build --dir site
    """
    from kb.publish.site import build_site

    base = open_base(ctx)
    built = build_site(base, Path(folder).absolute() if folder else base.cache / "html", address=address)
    if as_json:
        emit_json({"dir": str(built.folder), "pages": built.pages, "files": built.files})
    else:
        say(built.folder)
        note(f"{built.pages} pages, {built.files} files")


@command.command("serve")
@click.option(
    "--dir", "folder", metavar="DIR", default="", help="Where it is built; default .kb/html in the base."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@click.pass_context
def serve(ctx: click.Context, folder: str, port: int) -> None:
    r"""Build the site and serve it on this machine only, until interrupted.

    \b
    kb site serve
    """
    from kb.publish.site import build_site, serve_site

    base = open_base(ctx)
    built = build_site(base, Path(folder).absolute() if folder else base.cache / "html")
    note(f"http://127.0.0.1:{port}/  (Ctrl-C ends it)")
    serve_site(built.folder, port)
