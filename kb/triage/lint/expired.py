"""Claims about a product's state whose day has passed."""

from __future__ import annotations

from collections.abc import Iterator

from kb.curated.header import read_day
from kb.triage.findings import Finding, Subject
from kb.triage.lint.claims import explained

CODES = {"expired": "a product-state claim whose valid_until has passed, or that names no day"}


def check(subject: Subject) -> Iterator[Finding]:
    """Every claim with ``valid_until``; a state without one never expires and says so."""
    for file, line, claim in subject.claims:
        if not claim.valid_until:
            if claim.kind == "state":
                yield Finding(
                    file,
                    line,
                    "expired",
                    f"{claim.id}: a product's state without valid_until{explained(claim)}",
                    claim.id,
                )
            continue
        day = read_day(claim.valid_until)
        if day != claim.valid_until:
            message = f"{claim.id}: valid_until {claim.valid_until!r} is no day"
            yield Finding(file, line, "expired", message, stated=claim.valid_until)
        elif day < subject.today.isoformat():
            message = f"{claim.id}: valid until {day}; look whether it still holds"
            yield Finding(file, line, "expired", message, stated=day, counted=subject.today.isoformat())
