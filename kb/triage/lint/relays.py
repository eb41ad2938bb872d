"""Figures that drafts quote, against what their sources claim."""

from __future__ import annotations

from collections.abc import Iterator

from kb.triage.findings import Finding, Subject
from kb.triage.relay import relayed
from kb.vocab import RELAY_MATCHES

CODES = {
    f"relay-{name}": f"a quoted figure: {why}"
    for name, why in RELAY_MATCHES.items()
    if name not in {"matches", "unchecked"}
}


def check(subject: Subject) -> Iterator[Finding]:
    """Every draft whose sources the registry knows."""
    claims = {claim.id: claim for _, _, claim in subject.claims}
    for draft in subject.drafts:
        for hit in relayed(draft.curated, draft.found.id, claims):
            if f"relay-{hit.match}" in CODES:
                basis = "as recorded" if hit.basis == "registry" else "by its figures"
                message = (
                    f"{hit.claim}: entry {hit.entry} says {hit.said}; the source says {hit.source} ({basis})"
                )
                yield draft.finding(
                    hit.line, f"relay-{hit.match}", message, stated=hit.stated, counted=hit.source
                )
