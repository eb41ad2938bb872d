"""``kb mcp``: a read-only door for agents over stdio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from kb.cli.shared import open_base

if TYPE_CHECKING:
    from kb.serve.answers import Stale


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    r"""Serve the base to an agent over MCP on stdin and stdout, read-only.

    Tools: search, get_claim, get_verdict, list_stale, get_topic, assemble_context. Needs the extra: pip install 'kb[mcp]'.

    \b
    kb -C shared/research-kb mcp
    """
    from kb import clock
    from kb.repro.harness.stale import find_stale
    from kb.serve.answers import Stale
    from kb.serve.mcp import serve

    base = open_base(ctx)

    def stale() -> Iterable[Stale]:
        return [Stale(one.claim, one.cause, one.why) for one in find_stale(base, clock.now().date())]

    serve(base, stale)
