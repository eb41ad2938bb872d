"""One claim with its verdict as pieces of Markdown: cells of a table, a finding, what stands under it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.model import Claim, Item, Outcome, Text, Verdict
from kb.publish.escape import Safe, code, link, markdown, path_link
from kb.publish.numbers import interval, measured, stated
from kb.publish.page import system_of, version_key
from kb.publish.words import LEVELS, OUTCOMES, RELAYS, pick, say
from kb.vocab import RELAY_MATCHES

FINE_RELAYS = frozenset({"matches", "unchecked"})
Pair = tuple[Claim, Verdict]
"""A claim and its verdict."""


@dataclass(frozen=True)
class Row:
    """One claim as a table shows it; every cell is Markdown."""

    claim: Safe
    stated: Safe
    ours: Safe
    verdict: Safe
    level: Safe
    since: Safe


@dataclass(frozen=True)
class Section:
    """A heading and a list under it."""

    title: str
    lines: tuple[Safe, ...]


def other_language(text: Text, language: str) -> str:
    """The text in the other language, empty where it would only repeat."""
    main, second = (text.zh, text.en) if language == "zh" else (text.en, text.zh)
    return second if main and second != main else ""


def system_slug(system: str) -> str:
    """Folder of a system's page: ids of blocks know no dot."""
    return system.replace(".", "-dot-")


def anchor_of(claim: str) -> str:
    """Anchor of a claim on its system's page."""
    return claim.partition("/")[2]


def published_root(page: str) -> str:
    """Relative path from ``published/<page>/index.md`` to ``published/``."""
    return "../" * (page.count("/") + 1)


def system_path(system: str, page: str) -> str:
    """Relative path from a page to a system's page."""
    return f"{published_root(page)}systems/{system_slug(system)}/index.md"


def claim_link(claim: Claim, page: str, *, short: bool = False) -> Safe:
    """A claim's id, linked to where its system's page tells all of it."""
    name = anchor_of(claim.id) if short else claim.id
    return path_link(code(name), f"{system_path(system_of(claim), page)}#{anchor_of(claim.id)}")


def outcome_label(outcome: Outcome, language: str) -> Safe:
    """A verdict in bold."""
    return Safe(f"**{markdown(pick(OUTCOMES[outcome], language))}**")


def row_of(claim: Claim, verdict: Verdict, page: str, language: str) -> Row:
    """Cells of the evidence table: the source's figure beside ours, which leads to its samples, and the verdict."""
    return Row(
        claim=Safe(f"{claim_link(claim, page)} {markdown(pick(claim.statement, language))}"),
        stated=markdown(stated(claim, language)),
        ours=ours_link(verdict, page, language),
        verdict=outcome_label(verdict.verdict, language),
        level=markdown(pick(LEVELS[verdict.level], language) if verdict.level else "—"),
        since=markdown(since_of(verdict) or "—"),
    )


def since_of(verdict: Verdict) -> str:
    """Day since which our numbers say what they say; empty where nothing was measured."""
    return (verdict.since or verdict.at)[:10]


def ours_link(verdict: Verdict, page: str, language: str) -> Safe:
    """Our figure, linked to the samples it was computed from."""
    figure = markdown(measured(verdict, language))
    return path_link(figure, samples_path(verdict, page)) if verdict.measured and verdict.repro else figure


def samples_path(verdict: Verdict, page: str) -> str:
    """Relative path from a page to the samples of the verdict's reproduction."""
    folder = "".join(char if char.isalnum() or char in "-_" else "-" for char in verdict.repro)
    return f"{published_root(page)}../measurements/{folder}/"


def run_again(verdict: Verdict, page: str, language: str) -> Safe:
    """How a reader checks a number: the command that runs it again, what explains it, its samples."""
    again = f"{code(f'kb repro {verdict.repro}')} · {code(f'kb verdict {verdict.claim} --explain')}"
    samples = path_link(markdown(say("samples", language)), samples_path(verdict, page))
    return Safe(f"{label_of('command', language)}{again} · {samples}")


def finding_of(claim: Claim, verdict: Verdict, page: str, language: str) -> Safe:
    """The finding in one sentence: what is said, what follows, why."""
    said = f"{claim_link(claim, page)} {markdown(pick(claim.statement, language))}"
    label = outcome_label(verdict.verdict, language)
    if verdict.verdict is Outcome.UNTESTED:
        return Safe(f"{said} → {label}")
    return Safe(f"{said} → {label} — {markdown(reason_of(verdict, language))}")


def reason_of(verdict: Verdict, language: str) -> str:
    """The sentence a reader can check."""
    return verdict.reason_zh if language == "zh" and verdict.reason_zh else verdict.reason


def details_of(claim: Claim, verdict: Verdict, page: str, language: str) -> tuple[Safe, ...]:
    """What stands under a finding: the other language, conditions, cases, quote, how to run it again."""
    other = other_language(claim.statement, language)
    lines = [Safe(f"*{markdown(other)}*")] if other else []
    if claim.conditions:
        given = "; ".join(f"{key}: {value}" for key, value in claim.conditions.items() if value)
        lines.append(labelled("conditions", given, language))
    if claim.quote:
        lines.append(labelled("quote", f"“{claim.quote}”", language))
    if verdict.cases:
        cases = "; ".join(f"{name} {interval(value)}" for name, value in verdict.cases.items())
        lines.append(labelled("cases", cases, language))
    if verdict.repro:
        lines.append(run_again(verdict, page, language))
    return tuple(lines)


def label_of(key: str, language: str) -> Safe:
    """``label: ``."""
    return Safe(markdown(say(key, language)) + ("：" if language == "zh" else ": "))


def labelled(key: str, text: str, language: str) -> Safe:
    """``label: text``."""
    return Safe(label_of(key, language) + markdown(text))


def relay_lines(claims: Sequence[Claim], language: str) -> tuple[Safe, ...]:
    """Second-hand quotations that do not match their source."""
    names = RELAYS if language == "zh" else RELAY_MATCHES
    return tuple(
        Safe(
            f"{code(claim.id)} {markdown(say('said', language, draft=relay.draft, said=relay.said))}"
            f" — {markdown(names.get(relay.match, relay.match))}"
        )
        for claim in claims
        for relay in claim.relayed
        if relay.match not in FINE_RELAYS
    )


def superseded_lines(claims: Sequence[Claim], sources: Sequence[Item], language: str) -> tuple[Safe, ...]:
    """Claims that were read in a version their source has replaced."""
    newest = {item.id: item.version for item in sources}
    return tuple(
        Safe(f"{code(claim.id)} {markdown(say('read-in', language, a=claim.version, b=newest[claim.item]))}")
        for claim in claims
        if claim.version and version_key(newest.get(claim.item, "")) > version_key(claim.version)
    )


def source_link(item_id: str, sources: Sequence[Item]) -> Safe:
    """The source of a claim: its title and address where the base holds the item, else what its id says."""
    item = next((item for item in sources if item.id == item_id), None)
    if item is not None:
        return link(item.title, item.url)
    scheme, _, rest = item_id.partition(":")
    url = {
        "arxiv": f"https://arxiv.org/abs/{rest}",
        "doi": f"https://doi.org/{rest}",
        "url": f"https://{rest}",
    }
    return link(rest or item_id, url.get(scheme, ""))
