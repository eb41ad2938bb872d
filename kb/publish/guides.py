"""Guides: pages that answer a question across topics, from the claims their sections name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from kb.errors import BadConfig
from kb.model import Claim, Guide, GuideSection, Item, Text, Verdict
from kb.publish.entries import (
    FINE_RELAYS,
    Pair,
    claim_link,
    finding_of,
    label_of,
    labelled,
    ours_link,
    outcome_label,
    system_path,
)
from kb.publish.escape import Safe, markdown, path_link
from kb.publish.numbers import stated
from kb.publish.page import system_of
from kb.publish.render import fill
from kb.publish.words import RELAYS, pick, say
from kb.vocab import RELAY_MATCHES


def guide_page_path(guide: Guide) -> str:
    """Path of a guide's page below ``published/``."""
    return f"guides/{guide.path}"


def chosen_claims(section: GuideSection, pairs: Sequence[Pair]) -> list[Pair]:
    """Claims a section names, pattern by pattern, each once."""
    found: dict[str, Pair] = {}
    for pattern in section.claims:
        found |= {
            pair[0].id: pair for pair in pairs if pair[0].id not in found and fnmatchcase(pair[0].id, pattern)
        }
    return list(found.values())


def check_guide(guide: Guide) -> None:
    """Check that the sections of a guide can be told apart.

    Raises:
        BadConfig: Two sections have the same slug.
    """
    slugs = [section.slug for section in guide.sections]
    if len(set(slugs)) < len(slugs):
        raise BadConfig(
            f"guides/{guide.path}.toml: not used",
            cause="two sections have the same slug",
            remedy="slugs name blocks; make them differ",
        )


def unknown_claims(guide: Guide, claims: Iterable[str]) -> list[str]:
    """Patterns of a guide that match no claim, each with its section: a claim was renamed or a name mistyped."""
    known = list(claims)
    return [
        f"{section.slug}: {pattern}"
        for section in guide.sections
        for pattern in section.claims
        if not any(fnmatchcase(name, pattern) for name in known)
    ]


def render_guide(
    guide: Guide, pairs: Sequence[Pair], items: Mapping[str, Item], language: str
) -> dict[str, bytes]:
    """Block id → its text, one for each section that names claims.

    Args:
        guide: Settings of the page.
        pairs: All shown claims with their verdicts, by id.
        items: Newest version of every item, for the dates of a timeline.
        language: Language of the page.
    """
    page = guide_page_path(guide)
    return {
        f"{page}/{section.slug}": _section(section, chosen_claims(section, pairs), items, page, language)
        for section in guide.sections
        if section.claims
    }


def _section(
    section: GuideSection, pairs: list[Pair], items: Mapping[str, Item], page: str, language: str
) -> bytes:
    table = None
    lines: list[tuple[Safe, tuple[Safe, ...]]] = []
    if section.show == "matrix":
        table = _matrix(pairs, page, language)
    elif section.show == "relays":
        table = _relays(pairs, page, language)
    elif section.show == "timeline":
        table = _timeline(pairs, items, page, language)
    else:
        tick = "[ ] " if section.show == "checklist" else ""
        lines = [
            (Safe(tick + finding_of(claim, verdict, page, language)), _beside(claim, verdict, page, language))
            for claim, verdict in pairs
        ]
    return fill("guide.md.j2", language, table=table, lines=lines).encode()


def _beside(claim: Claim, verdict: Verdict, page: str, language: str) -> tuple[Safe, ...]:
    """The source's figure beside ours, under a finding; nothing where neither is a number."""
    if claim.low is None and verdict.measured is None:
        return ()
    figures = labelled("stated", stated(claim, language), language)
    return (Safe(f"{figures} · {label_of('ours', language)}{ours_link(verdict, page, language)}"),)


def _table(head: list[str], rows: list[list[Safe]]) -> dict[str, object]:
    return {"head": head, "rule": [Safe("---")] * len(head), "rows": rows}


def _system(claim: Claim, page: str) -> Safe:
    system = system_of(claim)
    return path_link(markdown(system), system_path(system, page))


def _matrix(pairs: list[Pair], page: str, language: str) -> dict[str, object]:
    head = [say(key, language) for key in ("system", "claim", "stated", "ours", "verdict")]
    rows = [
        [
            _system(claim, page),
            Safe(f"{claim_link(claim, page, short=True)} {markdown(pick(claim.statement, language))}"),
            markdown(stated(claim, language)),
            ours_link(verdict, page, language),
            outcome_label(verdict.verdict, language),
        ]
        for claim, verdict in pairs
    ]
    return _table(head, rows)


def _timeline(pairs: list[Pair], items: Mapping[str, Item], page: str, language: str) -> dict[str, object]:
    """Claims by the date their source carries; those without a date last, with the day they expire."""
    head = [say(key, language) for key in ("date", "system", "claim", "valid-until", "verdict")]
    dated = sorted(pairs, key=lambda pair: (_date(pair[0], items) or "9999", pair[0].id))
    rows = [
        [
            markdown(_date(claim, items) or say("no-date", language)),
            _system(claim, page),
            Safe(f"{claim_link(claim, page, short=True)} {markdown(pick(claim.statement, language))}"),
            markdown(claim.valid_until or "—"),
            outcome_label(verdict.verdict, language),
        ]
        for claim, verdict in dated
    ]
    return _table(head, rows)


RELAYED, DIFFERENCE = Text(zh="转述", en="Relayed as"), Text(zh="差别", en="Difference")


def _relays(pairs: list[Pair], page: str, language: str) -> dict[str, object]:
    """Quotations that differ from their source, draft by draft: both shortened to the number and its qualifiers."""
    head = [
        *(say(key, language) for key in ("claim", "stated")),
        *(pick(t, language) for t in (RELAYED, DIFFERENCE)),
    ]
    names = RELAYS if language == "zh" else RELAY_MATCHES
    rows = [
        [
            Safe(f"{claim_link(claim, page)} {markdown(pick(claim.statement, language))}"),
            markdown(stated(claim, language)),
            markdown(f"{relay.said} ({relay.draft})"),
            markdown(names.get(relay.match, relay.match)),
        ]
        for claim, _ in pairs
        for relay in sorted(claim.relayed, key=lambda relay: relay.draft)
        if relay.match not in FINE_RELAYS
    ]
    return _table(head, rows)


def _date(claim: Claim, items: Mapping[str, Item]) -> str:
    """Day or month of the source: as it states it, else as its arXiv id does."""
    item = items.get(claim.item)
    stamp = (item.announced or item.submitted or item.updated) if item else None
    if stamp is not None:
        return stamp.at[:10]
    numbered = re.match(r"arxiv:(\d{2})(0[1-9]|1[0-2])\.", claim.item)
    return f"20{numbered[1]}-{numbered[2]}" if numbered else ""
