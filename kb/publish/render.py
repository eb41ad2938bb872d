"""`TopicPage` → the Markdown of a new page and of its blocks. Pure; text lives in ``templates/``.

Every value a template prints is escaped (`kb.publish.escape.markdown`) unless it was made here as `Safe`, so a new
template is inert by default. Nothing here reads a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from kb.model import Claim, Decision, Figure, Item, Outcome, TopicPage, Verdict
from kb.publish.blocks import write_block
from kb.publish.escape import Safe, code, link, markdown, path_link
from kb.publish.numbers import interval, measured, stated
from kb.publish.page import system_of, version_key
from kb.publish.words import LEVELS, LIMITS, OUTCOMES, RELAYS, pick, say
from kb.vocab import RELAY_MATCHES

if TYPE_CHECKING:
    from jinja2 import Environment

FINE_RELAYS = frozenset({"matches", "unchecked"})


@dataclass(frozen=True)
class Row:
    """One claim as the evidence table shows it; every cell is Markdown."""

    claim: Safe
    stated: Safe
    ours: Safe
    verdict: Safe
    level: Safe
    date: Safe
    machine: Safe
    command: Safe
    finding: Safe
    details: tuple[Safe, ...]


@dataclass(frozen=True)
class Section:
    """A heading and a list under it."""

    title: str
    lines: tuple[Safe, ...]


@cache
def environment() -> Environment:
    """The templates: undefined names are errors, every printed value passes through the escape."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("kb.publish"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  HTML escaping alone would let Markdown through; finalize escapes both
        finalize=lambda value: value if isinstance(value, Safe) else markdown(str(value)),
    )


def fill(template: str, language: str, **values: Any) -> str:
    """Fill one template; ``say`` is bound to ``language``."""
    return environment().get_template(template).render(
        say=lambda key, **rest: say(key, language, **rest), **values
    )  # fmt: skip


def root_of(topic: str) -> str:
    """Relative path from a topic's page to the root of the base."""
    return "../" * (topic.count("/") + 2)


def render_blocks(page: TopicPage, language: str) -> dict[str, bytes]:
    """Block id → its text, in the order of a new page.

    Args:
        page: What to show.
        language: ``zh`` or ``en``: language of the page; one-line summaries are in the other one.
    """
    topic = page.topic.path
    blocks = {f"{topic}/evidence": _evidence(page, language)}
    names = Counter(figure.name for figure in page.figures)
    for figure in page.figures:
        slug = figure.name if names[figure.name] == 1 else f"{figure.repro}-{figure.name}"
        blocks[f"{topic}/figure-{slug}"] = _figure(figure, topic, language)
    blocks[f"{topic}/reading"] = _reading(page, language)
    return {name: text.encode() for name, text in blocks.items()}


def render_page(page: TopicPage, blocks: dict[str, bytes], language: str) -> bytes:
    """A new page around its blocks; from now on it belongs to people."""
    other = "en" if language == "zh" else "zh"
    title, intro = page.topic.title, page.topic.intro
    return fill(
        "topic.md.j2",
        language,
        title=pick(title, language) or page.topic.path,
        other_title=_other(title, language),
        intro=pick(intro, language),
        other_intro=getattr(intro, other) if getattr(intro, language) else "",
        blocks=[
            {
                "heading": say("reading", language) if name.endswith("/reading") else "",
                "text": Safe(write_block(name, text).decode().rstrip("\n")),
            }
            for name, text in blocks.items()
        ],
    ).rstrip("\n").encode() + b"\n"  # fmt: skip


def _other(text: Any, language: str) -> str:
    """The text in the other language, empty where it would only repeat."""
    main, second = (text.zh, text.en) if language == "zh" else (text.en, text.zh)
    return second if main and second != main else ""


# The evidence block


def _evidence(page: TopicPage, language: str) -> str:
    pairs = list(zip(page.claims, page.verdicts, strict=True))
    rows = [_row(claim, verdict, page.topic.path, language) for claim, verdict in pairs]
    sections = (
        Section(say("not-shown", language), _limits(pairs, page.num_memory, language)),
        Section(say("relays", language), _relays(page.claims, language)),
        Section(say("superseded", language), _superseded(page.claims, page.sources, language)),
        Section(say("open", language), _open_questions(pairs, language)),
    )
    return fill(
        "evidence.md.j2",
        language,
        summary=_summary(page.verdicts, language),
        rows=rows,
        sections=[section for section in sections if section.lines],
    )


def _summary(verdicts: Sequence[Verdict], language: str) -> list[Safe]:
    """Counts of each outcome, one line in each language, the page's language first."""
    if not verdicts:
        return [markdown(say("no-claims", language))]
    counts = Counter(verdict.verdict for verdict in verdicts)
    found = [(outcome, counts[outcome]) for outcome in Outcome if counts[outcome]]
    zh = f"共 {len(verdicts)} 条论断：" + "，".join(f"{OUTCOMES[o].zh} {n}" for o, n in found) + "。"
    noun = "claim" if len(verdicts) == 1 else "claims"
    en = f"{len(verdicts)} {noun}: " + ", ".join(f"{n} {OUTCOMES[o].en}" for o, n in found) + "."
    first, second = (zh, en) if language == "zh" else (en, zh)
    return [Safe(f"**{markdown(first)}**"), Safe(f"*{markdown(second)}*")]


def claim_link(claim: Claim, topic: str) -> Safe:
    """A claim's id, linked to the file that holds it."""
    return path_link(code(claim.id), f"{root_of(topic)}claims/{system_of(claim)}.toml")


def _row(claim: Claim, verdict: Verdict, topic: str, language: str) -> Row:
    name = claim_link(claim, topic)
    statement = markdown(pick(claim.statement, language))
    label = markdown(pick(OUTCOMES[verdict.verdict], language))
    reason = verdict.reason_zh if language == "zh" and verdict.reason_zh else verdict.reason
    return Row(
        claim=name,
        stated=markdown(stated(claim, language)),
        ours=markdown(measured(verdict, language)),
        verdict=Safe(f"**{label}**"),
        level=markdown(pick(LEVELS[verdict.level], language) if verdict.level else "—"),
        date=markdown(verdict.at[:10] or "—"),
        machine=markdown(verdict.machine or "—"),
        command=code(f"kb repro {verdict.repro}") if verdict.repro else Safe("—"),
        finding=Safe(f"{name} {statement} → **{label}** — {markdown(reason)}"),
        details=_details(claim, verdict, language),
    )


def _details(claim: Claim, verdict: Verdict, language: str) -> tuple[Safe, ...]:
    """What stands under a finding: the other language, conditions, cases, quote."""
    other = _other(claim.statement, language)
    lines = [Safe(f"*{markdown(other)}*")] if other else []
    if claim.conditions:
        given = "; ".join(f"{key}: {value}" for key, value in claim.conditions.items() if value)
        lines.append(_labelled("conditions", given, language))
    if claim.quote:
        lines.append(_labelled("quote", f"“{claim.quote}”", language))
    if verdict.cases:
        cases = "; ".join(f"{name} {interval(value)}" for name, value in verdict.cases.items())
        lines.append(_labelled("cases", cases, language))
    return tuple(lines)


def _labelled(key: str, text: str, language: str) -> Safe:
    colon = "：" if language == "zh" else ": "
    return Safe(f"{markdown(say(key, language))}{colon}{markdown(text)}")


def _limits(pairs: list[tuple[Claim, Verdict]], num_memory: int, language: str) -> tuple[Safe, ...]:
    """What the evidence shown does not say, by level, and what was left out."""
    met = {verdict.level for _, verdict in pairs if verdict.level}
    lines = [markdown(pick(text, language)) for level, text in LIMITS.items() if level in met]
    lines += [
        Safe(f"{code(claim.id)} {markdown(verdict.insensitive)}")
        for claim, verdict in pairs
        if verdict.insensitive
    ]
    if num_memory:
        lines.append(markdown(say("memory", language, n=str(num_memory))))
    return tuple(lines)


def _relays(claims: Sequence[Claim], language: str) -> tuple[Safe, ...]:
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


def _superseded(claims: Sequence[Claim], sources: Sequence[Item], language: str) -> tuple[Safe, ...]:
    newest = {item.id: item.version for item in sources}
    return tuple(
        Safe(f"{code(claim.id)} {markdown(say('read-in', language, a=claim.version, b=newest[claim.item]))}")
        for claim in claims
        if claim.version and version_key(newest.get(claim.item, "")) > version_key(claim.version)
    )


_OPEN = frozenset({Outcome.UNTESTED, Outcome.BLOCKED, Outcome.INCONCLUSIVE})


def _open_questions(pairs: list[tuple[Claim, Verdict]], language: str) -> tuple[Safe, ...]:
    """What nobody can answer yet and what would, and doubts about the figures themselves."""
    lines: list[Safe] = []
    for claim, verdict in pairs:
        if verdict.verdict in _OPEN and claim.planned:
            lines.append(Safe(f"{code(claim.id)} {_labelled('planned', claim.planned, language)}"))
        if claim.doubt is not None:
            lines.append(
                Safe(f"{code(claim.id)} {_labelled('doubt', pick(claim.doubt, language), language)}")
            )
    return tuple(lines)


# Figures and reading list


def _figure(figure: Figure, topic: str, language: str) -> str:
    place = f"{root_of(topic)}figures/{figure.repro}/{figure.name}"
    return fill(
        "figure.md.j2",
        language,
        alt=pick(figure.alt, language),
        image=Safe(f"{place}.svg"),
        caption=pick(figure.title, language),
        note=say("stripes", language),
        data_label=say("figure-data", language),
        data=Safe(f"{place}.json"),
        command=code(f"kb repro {figure.repro}"),
    )


def _reading(page: TopicPage, language: str) -> str:
    groups: dict[str, list[Safe]] = {}
    for assessment, item in page.reading:
        decision = assessment.decision
        key = decision.value if decision in {Decision.KEEP, Decision.WATCH} else "undecided"
        stars = "★" * (assessment.stars or 0)
        action = say(assessment.action.value, language) if assessment.action else ""
        version = f"v{item.version}" if item.version else ""
        dated = item.submitted or item.announced
        facts = [stars, action, version, dated.at[:10] if dated else ""]
        tail = " · ".join(markdown(fact) for fact in facts if fact)
        notices = "".join(f" **{markdown(notice)}**" for notice in item.notices)
        line = f"{link(item.title, item.url)} {code(item.id)}{' · ' if tail else ''}{tail}{notices}"
        groups.setdefault(key, []).append(Safe(line))
    return fill(
        "reading.md.j2",
        language,
        groups=[Section(say(key, language), tuple(lines)) for key, lines in groups.items()],
    )
