"""``kb claim``: what somebody published, precise enough to be wrong."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.shared import (
    dry_run_option,
    emit_json,
    emit_rows,
    fields_option,
    json_option,
    note,
    open_base,
    say,
    text_of,
)
from kb.errors import CannotRun, NothingMatches, WrongUse


@click.group()
def command() -> None:
    """List, show, check and add claims: figures and statements of sources, with where they stand."""


@command.command("list")
@click.option("--system", default="", help="Only claims of this system.")
@json_option
@fields_option
@click.pass_context
def list_claims(ctx: click.Context, system: str, as_json: bool, fields: str) -> None:
    r"""List claims with their figures, bounds and how drafts relayed them.

    \b
    kb claim list --system tangram
    """
    base = open_base(ctx)
    rows = []
    for claim in base.claims([system] if system else None).values():
        row = claim.to_json()
        row["relay"] = sorted({relay.match for relay in claim.relayed})
        row["is_verified"] = bool(claim.quote_sha256)
        rows.append(row)
    emit_rows(
        rows,
        as_json=as_json,
        fields=fields,
        columns=("id", "bound", "low", "high", "unit", "baseline", "provenance", "relay"),
    )


@command.command("show")
@click.argument("claim_id", metavar="ID")
@json_option
@click.pass_context
def show(ctx: click.Context, claim_id: str, as_json: bool) -> None:
    r"""Show one claim: statement, figure, conditions, where it stands, how it was relayed, its rule.

    \b
    kb claim show eai/evict-14400
    """
    claims = open_base(ctx).claims()
    if claim_id not in claims:
        raise NothingMatches(
            f"claim {claim_id}: not found",
            cause="no claim has this id",
            remedy="see the list",
            next_command="kb claim list",
        )
    record = claims[claim_id].to_json()
    if as_json:
        emit_json(record)
        return
    for key, value in record.items():
        if value not in ("", None, [], {}):
            say(f"{key:14} {text_of(value)}")


@command.command("lint")
@click.argument("names", nargs=-1, metavar="[ID|SYSTEM]…")
@json_option
@click.pass_context
def lint(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> int:
    r"""Check claims: locator, baseline, conditions, expiry, rules edited after a run, quotations that differ; exit 1.

    \b
    kb claim lint
    """
    from kb.clock import now
    from kb.repro.harness.digests import rule_digest
    from kb.triage.findings import Subject
    from kb.triage.lint import claims, expired, relays, rules_after_runs

    subject = Subject(open_base(ctx), now().date(), rule_digest)
    findings = [
        f for unit in (claims, expired, rules_after_runs, relays) for f in unit.check(subject)
    ] + subject.unreadable
    if names:
        known = {claim.id for _, _, claim in subject.claims}
        for name in names:
            if name not in known and not any(k.startswith(f"{name}/") for k in known):
                raise NothingMatches(
                    f"{name}: no claim", cause="no id and no system is called so", remedy="see kb claim list"
                )
        findings = [
            f
            for f in findings
            if any(f.message.split(":")[0] == n or f.message.startswith(f"{n}/") for n in names)
        ]
    if as_json:
        emit_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            say(f"{finding.file}:{finding.line}: {finding.code}: {text_of(finding.message)}")
    return 1 if findings else 0


@command.command("new")
@click.argument("claim_id", metavar="[SYSTEM/CLAIM]", required=False)
@click.option("--item", required=True, metavar="ID[@VERSION]", help="Source the claim stands in.")
@click.option("--quote", default="", help="Shortest passage that carries the number, verbatim.")
@click.option(
    "--body",
    "given_body",
    default="",
    metavar="FILE|SHA256",
    help="Bytes of the source; else the fetched ones that hold the quote.",
)
@click.option("--unverified", is_flag=True, help="Write it although nobody has the source's bytes.")
@click.option("--zh", default="", help="What it says, in your own words, Chinese.")
@click.option("--en", default="", help="The same in English.")
@click.option("--locator", default="", help="Where in the source: abstract, §3.2.")
@click.option("--baseline", default=None, help="What it is compared with, where the quote does not say.")
@click.option("--metric", default=None, help="Key of the vocabulary, where the words do not say.")
@click.option(
    "--kind",
    type=click.Choice(["number", "formula", "state", "design"]),
    default="number",
    help="Sort of statement.",
)
@click.option(
    "--condition", "conditions", multiple=True, metavar="KEY=VALUE", help="hardware, model, workload, load."
)
@click.option(
    "--provenance",
    type=click.Choice(["primary", "review", "secondhand", "computed", "memory"]),
    default="primary",
    help="How it reached us.",
)
@click.option("--valid-until", default="", metavar="DAY", help="For the state of a product.")
@click.option("--topic", "topics", multiple=True, help="Topic page that shows it.")
@dry_run_option
@json_option
@click.pass_context
def new(ctx: click.Context, /, claim_id: str | None, *, item: str, quote: str, given_body: str, unverified: bool, zh: str, en: str,
        dry_run: bool, as_json: bool, conditions: tuple[str, ...], **stated: Any) -> None:  # fmt: skip
    r"""Add a claim whose quote stands in the source; without an id, list what the source can be quoted with.

    \b
    kb claim new --item arxiv:2606.06302@1 --body paper.txt
    kb claim new tangram/reclaim --item arxiv:2606.06302@1 --body paper.txt --quote "takes up to 25% of prefill time" \
       --zh "…" --en "…" --locator abstract
    """
    from kb.model import Text
    from kb.triage import claims

    base = open_base(ctx)
    body = claims.source_bytes(base, given_body) if given_body else None
    if claim_id is None:
        if body is None:
            raise WrongUse(
                "kb claim new: nothing to read",
                cause="no id and no --body was given",
                remedy="give --body FILE to list what it can be quoted with",
            )
        proposals = [proposal.to_json() for proposal in claims.propose(body)]
        emit_rows(
            proposals,
            as_json=as_json,
            fields="",
            columns=("offset", "bound", "low", "high", "unit", "baseline", "quote"),
        )
        return
    if body is None and not unverified:
        body = next((held for _, held in claims.bodies_with(base, quote)), None) if quote else None
        if body is None:
            raise CannotRun(
                f"{claim_id}: not written", cause="no fetched bytes hold this quote, so it cannot be verified",
                remedy="give --body FILE, ingest the source, or say --unverified", next_command="kb claim new --help",
            )  # fmt: skip
    given = {key: value for key, value in stated.items() if value not in (None, "", ())}
    given["conditions"] = dict(_pair(text) for text in conditions)
    given["topics"] = list(stated["topics"])
    claim = claims.new_claim(
        base, claim_id, item=item, quote=quote, statement=Text(zh=zh, en=en), body=body, given=given
    )
    if not dry_run:
        with base.writing("kb claim new"):
            path = claims.append_claim(base, claim)
            note(f"added to {base.relative(path)}")
    if as_json:
        emit_json(claim.to_json())
    else:
        click.echo(claims.to_toml(claim), nl=False)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise WrongUse(
            f"--condition {text}: not used",
            cause="it must be KEY=VALUE",
            remedy='for example --condition hardware="A100"',
        )
    return key.strip(), value.strip()
