"""Acceptance rules that were edited after their run."""

from __future__ import annotations

from collections.abc import Iterator

from kb.errors import BadConfig
from kb.triage.findings import Finding, Subject
from kb.vocab import UNITS

CODES = {"rule-edited": "the rule of a judged claim is not the rule its verdict was reached with"}


def check(subject: Subject) -> Iterator[Finding]:
    """Verdicts that carry a rule's digest, against the claim's rule as it stands."""
    if subject.rule_digest is None:
        return
    try:
        verdicts = subject.base.verdicts()
    except BadConfig as error:
        yield Finding("verdicts", 0, "unreadable", f"{error.what}: {error.cause}")
        return
    for file, line, claim in subject.claims:
        verdict = verdicts.get(claim.id)
        was = verdict.digests.get("rule", "") if verdict else ""
        if not was or claim.unit not in UNITS:
            continue
        now = subject.rule_digest([claim])
        if was != now:
            message = f"{claim.id}: its rule was changed after the run of {verdict.at if verdict else ''}; run it again"
            yield Finding(file, line, "rule-edited", message, stated=was, counted=now)
