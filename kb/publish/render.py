"""The template engine, and a topic's page: `TopicPage` → the Markdown of its blocks. Pure; text is in ``templates/``.

Every value a template prints is escaped (`kb.publish.escape.markdown`) unless it was made here as `Safe`, so a new
template is inert by default. Nothing here reads a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from kb.model import Claim, Decision, Figure, Outcome, TopicPage, Verdict
from kb.publish.entries import (
    Pair,
    Section,
    claim_link,
    details_of,
    finding_of,
    labelled,
    outcome_label,
    published_root,
    relay_lines,
    row_of,
    superseded_lines,
    system_path,
)
from kb.publish.escape import Safe, code, link, markdown, path_link
from kb.publish.numbers import stated
from kb.publish.page import system_of
from kb.publish.words import LIMITS, OUTCOMES, pick, say

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """The templates: undefined names are errors, every printed value passes through the escape."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("kb.publish"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  HTML escaping alone would let Markdown through; finalize escapes both
        finalize=_inert,
    )
    made.filters["cells"] = lambda values: Safe(" | ".join(_inert(value) for value in values))
    return made


def _inert(value: Any) -> Safe:
    return value if isinstance(value, Safe) else markdown(str(value))


def fill(template: str, language: str, **values: Any) -> str:
    """Fill one template; ``say`` is bound to ``language``."""
    return (
        environment()
        .get_template(template)
        .render(say=lambda key, **rest: say(key, language, **rest), **values)
    )


def render_topic(page: TopicPage, language: str) -> dict[str, bytes]:
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
        blocks[f"{topic}/figure-{slug}"] = figure_block(figure, topic, language)
    blocks[f"{topic}/reading"] = _reading(page, language)
    return {name: text.encode() for name, text in blocks.items()}


# The evidence block


def _evidence(page: TopicPage, language: str) -> str:
    topic = page.topic.path
    pairs = list(zip(page.claims, page.verdicts, strict=True))
    tested = [(claim, verdict) for claim, verdict in pairs if verdict.verdict is not Outcome.UNTESTED]
    untested = [claim for claim, verdict in pairs if verdict.verdict is Outcome.UNTESTED]
    sections = (
        Section(say("not-shown", language), limit_lines(pairs, page.num_memory, language)),
        Section(say("relays", language), relay_lines(page.claims, language)),
        Section(say("superseded", language), superseded_lines(page.claims, page.sources, language)),
        Section(say("open", language), _open_questions(tested, language)),
        Section(say("untested", language, n=str(len(untested))), _by_system(untested, topic, language)),
    )
    return fill(
        "evidence.md.j2",
        language,
        summary=summary_lines(page.verdicts, language),
        rows=[row_of(claim, verdict, topic, language) for claim, verdict in tested],
        findings=[
            (finding_of(claim, verdict, topic, language), details_of(claim, verdict, topic, language))
            for claim, verdict in tested
        ],
        sections=[section for section in sections if section.lines],
    )


def summary_lines(verdicts: Sequence[Verdict], language: str) -> list[Safe]:
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


def limit_lines(pairs: Sequence[Pair], num_memory: int, language: str) -> tuple[Safe, ...]:
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


_OPEN = frozenset({Outcome.BLOCKED, Outcome.INCONCLUSIVE, Outcome.NOT_COMPARABLE})


def _open_questions(pairs: Sequence[Pair], language: str) -> tuple[Safe, ...]:
    """What a run could not answer and what would, and doubts about the figures themselves."""
    lines: list[Safe] = []
    for claim, verdict in pairs:
        if verdict.verdict in _OPEN and claim.planned:
            lines.append(Safe(f"{code(claim.id)} {labelled('planned', claim.planned, language)}"))
        if claim.doubt is not None:
            lines.append(Safe(f"{code(claim.id)} {labelled('doubt', pick(claim.doubt, language), language)}"))
    return tuple(lines)


def _by_system(claims: Sequence[Claim], topic: str, language: str) -> tuple[Safe, ...]:
    """Claims nobody has judged yet, one line per system: every id with the source's figure."""
    systems: dict[str, list[Claim]] = {}
    for claim in claims:
        systems.setdefault(system_of(claim), []).append(claim)
    return tuple(
        Safe(
            f"**{path_link(markdown(system), system_path(system, topic))}** ({len(mine)}) "
            + " · ".join(f"{claim_link(c, topic, short=True)} {markdown(stated(c, language))}" for c in mine)
        )
        for system, mine in sorted(systems.items())
    )


# Figures and reading list


def figure_block(figure: Figure, page: str, language: str) -> str:
    """A picture with its description, what is solid and dashed, its data and the command that redraws it."""
    place = f"{published_root(page)}../figures/{figure.repro}/{figure.name}"
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
    against = Counter(
        claim.item
        for claim, verdict in zip(page.claims, page.verdicts, strict=True)
        if verdict.verdict is Outcome.CONTRADICTED
    )
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
        mark = (
            f" · {outcome_label(Outcome.CONTRADICTED, language)} {against[item.id]}"
            if against[item.id]
            else ""
        )
        line = f"{link(item.title, item.url)} {code(item.id)}{' · ' if tail else ''}{tail}{mark}{notices}"
        groups.setdefault(key, []).append(Safe(line))
    return fill(
        "reading.md.j2",
        language,
        groups=[Section(say(key, language), tuple(lines)) for key, lines in groups.items()],
    )
