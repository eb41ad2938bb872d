"""``kb check``: what a person should look at before anything is published."""

from __future__ import annotations

import click

from kb.cli.shared import emit_json, json_option, note, open_base, say

LEVELS = {"unreadable": "error", "bad-line": "error", "long-quote": "error", "many-quotes": "error"}
"""Codes that GitHub shows as errors; the others are warnings."""


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    help="How findings are printed.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, form: str, as_json: bool) -> int:
    r"""Check drafts, claims, items and pages; exit 1 where something is found.

    Counts a text states about itself, publishers against hosts, references that lead nowhere, entries without a
    destination, decisions that contradict stars, claims without locator or baseline, long quotes, lines nobody can read.

    \b
    kb check
    kb check --format github      annotations for a pull request
    """
    from kb.clock import now
    from kb.repro.harness.digests import rule_digest
    from kb.triage.findings import Subject
    from kb.triage.lint import run_checks

    subject = Subject(open_base(ctx), now().date(), rule_digest)
    findings = run_checks(subject)
    if as_json or form == "json":
        emit_json([finding.to_json() for finding in findings])
    for finding in findings if not (as_json or form == "json") else []:
        if form == "github":
            level = LEVELS.get(finding.code, "warning")
            where = f"file={_escape(finding.file, ':,')},line={max(finding.line, 1)},title={finding.code}"
            click.echo(f"::{level} {where}::{_escape(finding.message)}")
        else:
            say(f"{finding.file}:{finding.line}: {finding.code}: {_plain(finding.message)}")
    if findings:
        note(f"{len(findings)} findings")
    return 1 if findings else 0


def _escape(text: str, more: str = "") -> str:
    """Escape for GitHub's workflow commands, so that no text of a draft becomes a command of its own."""
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return _plain(text)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
