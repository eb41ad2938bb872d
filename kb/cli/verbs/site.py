"""``kb site``: the published base as a site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.shared import emit_json, json_option, note, open_base, say

if TYPE_CHECKING:
    from kb.store import Base


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
    place = Path(folder).absolute() if folder else base.cache / "html"
    built = build_site(base, place, address=address, stale=_stale(base))
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
    place = Path(folder).absolute() if folder else base.cache / "html"
    built = build_site(base, place, stale=_stale(base))
    serve_site(built.folder, port, lambda url: note(f"{url}  (Ctrl-C ends it)"))


def _stale(base: Base) -> dict[str, list[str]]:
    """Claim → causes that `kb stale` finds today."""
    from kb import clock
    from kb.repro.harness.stale import find_stale

    causes: dict[str, list[str]] = {}
    for one in find_stale(base, clock.now().date()):
        causes.setdefault(one.claim, []).append(one.cause)
    return causes
