"""``kb verdict``: what our numbers say about a claim, on what they rest, and a person's word over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kb.cli.shared import (
    acting_person,
    dry_run_option,
    emit_json,
    emit_table,
    json_option,
    note,
    open_base,
    say,
)
from kb.errors import NothingMatches, WrongUse
from kb.model.base import Outcome

if TYPE_CHECKING:
    from kb.model import Verdict
    from kb.store import Base


@click.command()
@click.argument("claims", nargs=-1, metavar="[CLAIM|SYSTEM]…")
@click.option("--explain", is_flag=True, help="The rule, the cases, the digests.")
@click.option("--refresh", is_flag=True, help="Judge again from what is stored; nothing is run.")
@click.option(
    "--overrule",
    type=click.Choice([*(one.value for one in Outcome), "none"]),
    help="A person's verdict; none takes it back.",
)
@click.option("--reason", default="", help="Why; kept in the log and shown with the verdict.")
@dry_run_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    claims: tuple[str, ...],
    explain: bool,
    refresh: bool,
    overrule: str | None,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    r"""Show the verdict on CLAIMs, or on all claims of a SYSTEM; without either, on all.

    \b
    kb verdict eai/evict-14400 --explain
    kb verdict eai/oom --overrule not-comparable --reason "their runtime keeps a pool we do not know"
    """
    base = open_base(ctx)
    systems = _systems(base, claims)
    if overrule is not None:
        _overrule(base, claims, "" if overrule == "none" else overrule, reason, dry_run=dry_run)
    if refresh or overrule is not None:
        _refresh(base, systems, dry_run=dry_run)
    stored = base.verdicts()
    chosen = [v for name, v in sorted(stored.items()) if not claims or _names(name, claims)]
    if claims and not chosen:
        raise NothingMatches(
            f"{claims[0]}: no verdict",
            cause="nothing was judged for it yet",
            remedy="run what stands behind it",
            next_command=f"kb repro {claims[0].partition('/')[0]}",
        )
    if as_json:
        emit_json([verdict.to_json() for verdict in chosen])
    elif explain:
        for verdict in chosen:
            _explain(base, verdict)
    else:
        rows = [[v.claim, v.verdict.value, v.level.value if v.level else "–", v.reason] for v in chosen]
        emit_table(rows, ["claim", "verdict", "level", "reason"])


def _names(claim: str, asked: tuple[str, ...]) -> bool:
    return claim in asked or claim.partition("/")[0] in asked


def _systems(base: Base, asked: tuple[str, ...]) -> list[str]:
    known = {path.stem for path in (base.root / "claims").glob("*.toml")}
    wanted = {name.partition("/")[0] for name in asked} or known
    for name in asked:
        system = name.partition("/")[0]
        if system not in known or ("/" in name and name not in base.claims([system])):
            raise NothingMatches(
                f"{name}: no such claim",
                cause=f"claims/{system}.toml does not have it",
                remedy="list what there is",
                next_command="kb list claims",
            )
    return sorted(wanted)


def _overrule(base: Base, claims: tuple[str, ...], to: str, reason: str, *, dry_run: bool) -> None:
    from kb import clock
    from kb.repro.harness.verdicts import check_overruling

    if not claims or not all("/" in name for name in claims) or not reason.strip():
        raise WrongUse(
            "kb verdict --overrule: nothing was changed",
            cause="it needs CLAIMs by their full ids and a --reason",
            remedy="name the claims and say why",
        )
    check_overruling(base, claims, to)
    if dry_run:
        note(f"would overrule {', '.join(claims)} to {to or 'none'}")
        return
    who, at = acting_person(base), clock.stamp(clock.now())
    with base.writing("kb verdict"):
        for name in claims:
            base.append_log("overrule", name, who=who, at=at, to=to, reason=reason)


def _refresh(base: Base, systems: list[str], *, dry_run: bool) -> None:
    from kb.repro.harness.verdicts import refresh, write_verdicts

    if dry_run:
        before = base.verdicts()
        for verdict in refresh(base, systems):
            old = before.get(verdict.claim)
            if old is None or old != verdict:
                note(f"would write {verdict.claim}: {old.verdict if old else 'none'} → {verdict.verdict}")
        return
    with base.writing("kb verdict"):
        changed = write_verdicts(base, refresh(base, systems))
    note(f"verdicts of {', '.join(changed)} written" if changed else "no verdict changed")


def _explain(base: Base, verdict: Verdict) -> None:
    from kb.repro.harness.rules import effective_rule

    claim = base.claims([verdict.claim.partition("/")[0]]).get(verdict.claim)
    say(f"{verdict.claim}: {verdict.verdict} ({verdict.level or 'nothing measured'})")
    if claim:
        say(f"  says      {claim.statement.en}")
        for name, value in effective_rule(claim).items():
            if value not in ("", None, {}, [], False):
                say(f"  rule      {name} = {value}")
    say(f"  reason    {verdict.reason}")
    for name, interval in verdict.cases.items():
        say(
            f"  case      {name}: {interval.value:.4g} ({interval.low:.4g}–{interval.high:.4g}), n {interval.n}"
        )
    rest = {"repro": verdict.repro, "machine": verdict.machine, "at": verdict.at, "run": verdict.run}
    for name, text in {**rest, **verdict.digests, **verdict.overruled}.items():
        if text:
            say(f"  {name:<10}{text}")
