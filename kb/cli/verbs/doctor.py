"""``kb doctor``: what stands in the way, with evidence and a command that helps."""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, json_option, note, open_base, say

MARKS = {"ok": "ok  ", "note": "note", "warn": "WARN", "fail": "FAIL"}


@click.command()
@click.argument("names", metavar="[CHECK]…", nargs=-1)
@click.option("--fix", is_flag=True, help="Mend what can be mended without any text at risk.")
@json_option
@click.pass_context
def command(ctx: click.Context, names: tuple[str, ...], fix: bool, as_json: bool) -> int:
    r"""Examine git, the clone, the remote, the schedule and this machine; exit 1 where something should be done.

    \b
    kb doctor
    kb doctor remote clock --json
    """
    from kb.config import load_user
    from kb.sync.doctor import examine

    findings = examine(open_base(ctx), load_user(), fix=fix, only=names)
    if as_json:
        emit_json([finding.to_json() for finding in findings])
    for finding in () if as_json else findings:
        say(f"{MARKS[finding.state.value]}  {finding.check}: {finding.evidence}")
        if finding.fix:
            say(f"      fix: {finding.fix}" + ("   (--fix does it)" if finding.fixable else ""))
    open_ones = [finding for finding in findings if finding.state.value in {"warn", "fail"}]
    if not open_ones and not as_json:
        note("nothing to do")
    return 1 if open_ones else 0
