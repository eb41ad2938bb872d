"""Which verdicts no longer follow from what stands in the base, and why: each cause has its own digest.

Another machine than the one at hand is no cause: a run on a GPU does not grow stale on a laptop. The environment is one
where the same class of machine now has other versions: the verdict has aged, it is not wrong.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kb.model import Claim, Environment, Item, Verdict
from kb.repro.harness.contract import Unit, data_files, units
from kb.repro.harness.digests import claim_digest, code_digest, inputs_digest, rule_digest, source_digest
from kb.repro.harness.environment import observe
from kb.store import Base

MAX_AGE = dt.timedelta(days=365)
"""A verdict that rests on a clock or on a state of a product is looked at again after a year."""


@dataclass(frozen=True)
class Stale:
    """One reason why one verdict is stale."""

    claim: str
    cause: str
    """source, claim, rule, code, inputs, environment or age."""
    why: str
    """One sentence."""
    next_command: str


@dataclass
class _Now:
    claims: Mapping[str, Claim]
    items: Mapping[str, Mapping[str, Item]]
    known: Mapping[str, Unit]
    environments: Mapping[str, Environment]
    today: dt.date
    code: dict[str, str]
    """Digest of the code of each reproduction as it is now."""
    inputs: dict[str, str | None]
    """Digest of its inputs; None where a data file is not on this machine, so nothing can be said."""


def find_stale(base: Base, today: dt.date) -> list[Stale]:
    """Every cause of staleness of every verdict, by claim; nothing is run."""
    claims, known = base.claims(), units()
    used = {verdict.repro for verdict in base.verdicts().values()} & known.keys()
    now = _Now(
        claims,
        base.latest_items(),
        known,
        base.environments(),
        today,
        {name: code_digest(known[name].path) for name in used},
        {name: _inputs(known[name], claims) for name in used},
    )
    return [one for verdict in base.verdicts().values() for one in _causes(verdict, now)]


def _inputs(unit: Unit, claims: Mapping[str, Claim]) -> str | None:
    files = data_files(unit)
    if not all(path.is_file() for path in files):
        return None
    return inputs_digest((claims[name] for name in unit.claims if name in claims), files)


def _causes(verdict: Verdict, now: _Now) -> Iterator[Stale]:
    """Compare the digests a verdict was signed with to those of today."""
    again = f"kb repro {verdict.repro}"
    judged_again = f"kb verdict {verdict.claim} --refresh"
    claim = now.claims.get(verdict.claim)
    if claim is None:
        yield Stale(verdict.claim, "claim", "the base no longer has this claim", "kb verdict --refresh")
        return
    if verdict.level is None:
        return  # nothing was measured, so nothing can be out of date
    signed = verdict.digests
    source = source_digest(claim, now.items)
    if source and signed.get("source") and source != signed["source"]:
        yield Stale(
            verdict.claim,
            "source",
            f"{claim.item} has changed or has a new version: read it again",
            judged_again,
        )
    if claim_digest(claim) != signed.get("claim"):
        yield Stale(verdict.claim, "claim", "what the claim says was edited since", judged_again)
    if rule_digest([claim]) != signed.get("rule"):
        yield Stale(verdict.claim, "rule", "its rule was edited after the run", again)
    if verdict.repro not in now.known:
        yield Stale(verdict.claim, "code", f"the reproduction {verdict.repro} no longer exists", judged_again)
    else:
        if now.code[verdict.repro] != signed.get("code"):
            why = f"kb/repro/{now.known[verdict.repro].path.name} or a module it imports has changed"
            yield Stale(verdict.claim, "code", why, again)
        if now.inputs[verdict.repro] not in {None, signed.get("inputs")}:
            yield Stale(verdict.claim, "inputs", "numbers its cases are made from have changed", again)
    yield from _aged(verdict, claim, now, again)


def _aged(verdict: Verdict, claim: Claim, now: _Now, again: str) -> Iterator[Stale]:
    taken_on = now.environments.get(verdict.env)
    if taken_on is None:
        yield Stale(verdict.claim, "environment", "the record of the machine class is missing", again)
    elif verdict.repro in now.known and taken_on.machine == "cpu":
        here = observe(now.known[verdict.repro].needs)
        if here.cpu == taken_on.cpu and (moved := _versions(taken_on, here)):
            yield Stale(verdict.claim, "environment", f"aged: this class of machine now has {moved}", again)
    if claim.valid_until and claim.valid_until < now.today.isoformat():
        why = f"the claim describes a state that was valid until {claim.valid_until}"
        yield Stale(verdict.claim, "age", why, f"kb show {claim.item}")
    elif "cpu" not in {verdict.machine, ""} and _age(verdict, now.today) > MAX_AGE:
        yield Stale(verdict.claim, "age", f"measured more than {MAX_AGE.days} days ago", again)


def _versions(then: Environment, here: Environment) -> str:
    names = ("python", "numpy", "torch", "triton")
    moved = [n for n in names if getattr(then, n) and getattr(then, n) != getattr(here, n)]
    return ", ".join(f"{name} {getattr(here, name) or 'absent'} for {getattr(then, name)}" for name in moved)


def _age(verdict: Verdict, today: dt.date) -> dt.timedelta:
    return today - dt.date.fromisoformat(verdict.at[:10]) if verdict.at else dt.timedelta(0)
