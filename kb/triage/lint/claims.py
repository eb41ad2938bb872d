"""Claims that cannot be checked as they stand: no locator, no baseline, no conditions, a quote nobody can find."""

from __future__ import annotations

from collections.abc import Iterator

from kb.model import Claim
from kb.triage.findings import Finding, Subject
from kb.vocab import METRICS, UNITS

CODES = {
    "no-locator": "a claim that does not say where in its source it stands",
    "no-baseline": "a ratio that does not say what it is compared with",
    "no-conditions": "a number without hardware, model, workload or load",
    "unknown-word": "a metric or unit that is not in the vocabulary",
    "unverified-quote": "a quote that is not tied to fetched bytes although its source is said to be at hand",
}


def check(subject: Subject) -> Iterator[Finding]:
    """Every claim of the registry; a claim that says why something is open (``doubt``, ``planned``) says so in the finding."""
    for file, line, claim in subject.claims:
        for code, what in problems(claim):
            yield Finding(file, line, code, f"{claim.id}: {what}{explained(claim)}", stated=claim.id)


def problems(claim: Claim) -> Iterator[tuple[str, str]]:
    """(code, what) of one claim."""
    if not claim.locator:
        yield "no-locator", "no locator"
    if claim.unit == "ratio" and not claim.baseline:
        yield "no-baseline", "a ratio without a baseline"
    if claim.kind == "number" and claim.low is not None and not any(claim.conditions.values()):
        yield "no-conditions", "a number without conditions"
    if claim.metric and claim.metric not in METRICS:
        yield "unknown-word", f"metric {claim.metric!r} is not in the vocabulary"
    if claim.unit not in UNITS:
        yield "unknown-word", f"unit {claim.unit!r} is not in the vocabulary"
    if claim.quote_sha256 and not claim.quote:
        yield "unverified-quote", "a digest of fetched bytes and no quote"


def explained(claim: Claim) -> str:
    """Why something is open, as the claim itself says it; empty where it says nothing."""
    if claim.doubt and (claim.doubt.en or claim.doubt.zh):
        return f" (doubt: {claim.doubt.en or claim.doubt.zh})"
    return f" (planned: {claim.planned})" if claim.planned else ""
