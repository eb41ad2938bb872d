"""Links by their form: addresses that no reader could follow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.identity import identify
from kb.triage.findings import Finding, Subject, shown
from kb.urls import clean_url

CODES = {"bad-link": "an address that cannot be followed"}
_MARKDOWN = re.compile(r"\[[^\]\n]{0,200}\]\(([^)\s]*)\)")


def check(subject: Subject) -> Iterator[Finding]:
    """Link fields of entries and Markdown links of every draft."""
    for draft in subject.drafts:
        for entry in draft.curated.entries:
            for field in entry.fields:
                if (
                    field.key == "link"
                    and field.value
                    and not entry.urls
                    and not identify(field.value.split()[0])
                ):
                    message = f"{shown(field.value)}: no address"
                    yield draft.finding(field.line, "bad-link", message, stated=shown(field.value))
        for line in draft.all_lines():
            if line.kind == "code":
                continue
            for target in _MARKDOWN.findall(line.text):
                if re.match(r"[a-z][a-z0-9+.-]*:|//|$", target, re.IGNORECASE) and clean_url(target) is None:
                    message = f"{shown(target) or 'an empty link'}: no http or https address"
                    yield draft.finding(line.number, "bad-link", message, stated=shown(target))
