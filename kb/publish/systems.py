"""Pages of systems, where each claim is told in full, and the ledger that counts them all. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kb.model import Claim, Item, Outcome, Verdict
from kb.publish.entries import (
    Pair,
    anchor_of,
    label_of,
    labelled,
    other_language,
    outcome_label,
    reason_of,
    relay_lines,
    run_again,
    since_of,
    source_link,
    system_path,
    system_slug,
)
from kb.publish.escape import Safe, code, markdown, path_link
from kb.publish.numbers import interval, measured, stated
from kb.publish.page import system_of
from kb.publish.render import fill, limit_lines, summary_lines
from kb.publish.words import LEVELS, OUTCOMES, pick, say

LEDGER = "ledger"
"""Path of the ledger's page."""


@dataclass(frozen=True)
class _Entry:
    """One claim as its system's page tells it."""

    anchor: Safe
    name: Safe
    verdict: Safe
    statement: str
    other: str
    lines: tuple[Safe, ...]


def system_page_path(system: str) -> str:
    """Path of a system's page below ``published/``."""
    return f"systems/{system_slug(system)}"


def render_system(
    system: str, pairs: Sequence[Pair], sources: Sequence[Item], num_memory: int, language: str
) -> dict[str, bytes]:
    """The one block of a system's page: every claim with its figure, ours, conditions, source and how to run it again.

    Args:
        system: First part of the claims' ids.
        pairs: Its claims with their verdicts, in the order shown.
        sources: Items the claims were read in.
        num_memory: Claims that are known from memory only and left out.
        language: Language of the page.
    """
    text = fill(
        "system.md.j2",
        language,
        summary=[*summary_lines([v for _, v in pairs], language), *limit_lines(pairs, num_memory, language)],
        claims=[_entry(claim, verdict, sources, language) for claim, verdict in pairs],
    )
    return {f"{system_page_path(system)}/claims": text.encode()}


def _entry(claim: Claim, verdict: Verdict, sources: Sequence[Item], language: str) -> _Entry:
    return _Entry(
        anchor=Safe(anchor_of(claim.id)),
        name=code(claim.id),
        verdict=markdown(pick(OUTCOMES[verdict.verdict], language)),
        statement=pick(claim.statement, language),
        other=other_language(claim.statement, language),
        lines=tuple(_facts(claim, verdict, sources, language)),
    )


def _facts(claim: Claim, verdict: Verdict, sources: Sequence[Item], language: str) -> list[Safe]:
    """What is known of one claim, line by line: what the source says, what we found, how to check it."""
    figure = stated(claim, language)
    if claim.metric:
        figure += f" · {claim.metric}"
    if claim.baseline:
        figure += f" · vs {claim.baseline}"
    lines = [labelled("stated", figure, language)]
    if verdict.measured is not None:
        lines.append(labelled("ours", measured(verdict, language), language))
    lines.append(
        Safe(f"{outcome_label(verdict.verdict, language)} — {markdown(reason_of(verdict, language))}")
    )
    if verdict.cases:
        cases = "; ".join(f"{name} {interval(value)}" for name, value in verdict.cases.items())
        lines.append(labelled("cases", cases, language))
    if verdict.level is not None:
        level = [pick(LEVELS[verdict.level], language), verdict.machine, since_of(verdict)]
        lines.append(labelled("level", " · ".join(part for part in level if part), language))
    if claim.conditions:
        given = "; ".join(f"{key}: {value}" for key, value in claim.conditions.items() if value)
        lines.append(labelled("conditions", given, language))
    lines += _provenance(claim, sources, language)
    return lines + _commands(claim, verdict, language)


def _provenance(claim: Claim, sources: Sequence[Item], language: str) -> list[Safe]:
    place = [f"v{claim.version}" if claim.version else "", claim.locator, claim.provenance]
    where = " · ".join(markdown(part) for part in place if part)
    lines = [Safe(f"{label_of('source', language)}{source_link(claim.item, sources)} · {where}")]
    if claim.quote:
        lines.append(labelled("quote", f"“{claim.quote}”", language))
    lines += relay_lines([claim], language)
    if claim.valid_until:
        lines.append(labelled("valid-until", claim.valid_until, language))
    if claim.doubt is not None:
        lines.append(labelled("doubt", pick(claim.doubt, language), language))
    return lines


def _commands(claim: Claim, verdict: Verdict, language: str) -> list[Safe]:
    """How a reader checks it: run it again, or what would test it."""
    if verdict.repro:
        return [run_again(verdict, system_page_path(system_of(claim)), language)]
    return [labelled("planned", claim.planned, language)] if claim.planned else []


# The ledger


def render_ledger(pairs: Sequence[Pair], language: str) -> dict[str, bytes]:
    """The ledger's block: how many claims of each system have which verdict."""
    by_system: dict[str, Counter[Outcome]] = {}
    for claim, verdict in pairs:
        by_system.setdefault(system_of(claim), Counter())[verdict.verdict] += 1
    head = [say("system", language), say("claims", language), *(pick(OUTCOMES[o], language) for o in Outcome)]
    rows = [
        [
            path_link(markdown(system), system_path(system, LEDGER)),
            str(counts.total()),
            *(str(counts[outcome] or "·") for outcome in Outcome),
        ]
        for system, counts in sorted(by_system.items())
    ]
    text = fill(
        "ledger.md.j2",
        language,
        summary=summary_lines([verdict for _, verdict in pairs], language),
        head=head,
        rule=[Safe("---"), *([Safe("--:")] * (len(head) - 1))],
        rows=rows,
    )
    return {f"{LEDGER}/claims": text.encode()}
