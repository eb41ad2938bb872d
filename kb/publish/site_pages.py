"""Pages that only the site has: home, lists, all claims with filters, search, notices of what was withdrawn. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb.model import Claim, Level, Outcome, Text, Verdict
from kb.publish.entries import Pair, anchor_of, finding_of, since_of, system_slug
from kb.publish.escape import Safe, code, markdown, path_link
from kb.publish.numbers import measured, stated
from kb.publish.page import system_of
from kb.publish.render import fill, summary_lines
from kb.publish.site_model import Site
from kb.publish.stage import badge
from kb.publish.words import CAUSES, LEVELS, OUTCOMES, pick, say

LATEST = 10
"""Verdicts on the home page."""


@dataclass(frozen=True)
class Listed:
    """One page in a list."""

    path: str
    """Below the site's root, without ``/index.md``."""
    title: Text
    counts: Counter[Outcome]
    """Verdicts of the claims it shows; empty for pages without."""


def _line(one: Listed, up: str, language: str) -> Safe:
    found = " · ".join(
        f"{badge(outcome, pick(OUTCOMES[outcome], language))} {one.counts[outcome]}"
        for outcome in Outcome
        if one.counts[outcome]
    )
    name = path_link(markdown(pick(one.title, language) or one.path), f"{up}{one.path}/index.md")
    return Safe(f"{name} {found}".rstrip())


def home_page(site: Site, pairs: Sequence[Pair], topics: Sequence[Listed], guides: Sequence[Listed]) -> str:
    """What the base is, its topics and guides, the newest verdicts, the other doors."""
    language = site.language
    judged = sorted((p for p in pairs if p[1].at), key=lambda p: (since_of(p[1]), p[0].id), reverse=True)
    return fill(
        "site_home.md.j2",
        language,
        title=site.title,
        above=Safe(site.above),
        summary=summary_lines([verdict for _, verdict in pairs], language),
        topics=[_line(one, "", language) for one in topics],
        guides=[_line(one, "", language) for one in guides],
        latest=[_rooted(finding_of(claim, verdict, "x", language)) for claim, verdict in judged[:LATEST]],
    )


def _rooted(line: Safe) -> Safe:
    """A line made for a page one folder down, for the root."""
    return Safe(line.replace("](../systems/", "](systems/"))


def list_page(title: str, listed: Sequence[Listed], language: str) -> str:
    """A list of pages one folder down from the root."""
    return fill(
        "site_list.md.j2", language, title=title, lines=[_line(one, "../", language) for one in listed]
    )


def search_page(language: str) -> str:
    """The page search is on."""
    return fill("site_search.md.j2", language)


def claims_page(
    site: Site, pairs: Sequence[Pair], stale: Mapping[str, Sequence[str]], topics: Mapping[str, Text]
) -> str:
    """Every claim in one table that can be filtered; without a script it is the whole table.

    Args:
        site: Its language is that of the labels.
        pairs: Claims with their verdicts.
        stale: Claim → why its verdict no longer follows.
        topics: Path of a topic → its title.
    """
    language = site.language
    head = [say(key, language) for key in ("claim", "stated", "ours", "verdict", "level", "date", "stale")]
    return fill(
        "site_ledger.md.j2",
        language,
        fields=_fields(pairs, topics, language),
        head=head,
        rows=[
            {
                "verdict": Safe(verdict.verdict.value),
                "level": Safe(verdict.level.value if verdict.level else "none"),
                "system": Safe(system_slug(system_of(claim))),
                "topics": Safe(" ".join(topic for topic in claim.topics if topic in topics)),
                "stale": Safe(" ".join(stale.get(claim.id, ()))),
                "cells": list(zip(head, _cells(claim, verdict, stale.get(claim.id, ()), site), strict=True)),
            }
            for claim, verdict in pairs
        ],
    )


def _cells(claim: Claim, verdict: Verdict, causes: Sequence[str], site: Site) -> list[Safe]:
    language = site.language
    url = f"../systems/{system_slug(system_of(claim))}/#{anchor_of(claim.id)}"
    name = f'<a href="{url}"><code>{claim.id}</code></a> {markdown(pick(claim.statement, language))}'
    return [
        Safe(name),
        markdown(stated(claim, language)),
        _samples(verdict, site),
        Safe(badge(verdict.verdict, pick(OUTCOMES[verdict.verdict], language))),
        markdown(pick(LEVELS[verdict.level], language) if verdict.level else "—"),
        Safe(f'<span class="kb-day">{markdown(since_of(verdict) or "—")}</span>'),
        markdown(
            ("、" if language == "zh" else ", ").join(pick(CAUSES[cause], language) for cause in causes)
        ),
    ]


def _samples(verdict: Verdict, site: Site) -> Safe:
    """Our figure, linked to the samples it was computed from."""
    figure = markdown(measured(verdict, site.language))
    if verdict.measured is None or not re.fullmatch(r"[\w-]+", verdict.repro):
        return figure
    return Safe(f'<a href="../{site.above}api/measurements/{verdict.repro}.json">{figure}</a>')


def _fields(pairs: Sequence[Pair], topics: Mapping[str, Text], language: str) -> list[dict[str, Any]]:
    systems = sorted({system_slug(system_of(claim)) for claim, _ in pairs})
    choices: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("verdict", "verdict", [(o.value, pick(OUTCOMES[o], language)) for o in Outcome]),
        ("level", "level", [(level.value, pick(LEVELS[level], language)) for level in Level]),
        ("system", "system", [(system, system) for system in systems]),
        ("topic", "topic", [(path, pick(title, language) or path) for path, title in topics.items()]),
        ("stale", "stale", [(cause, pick(text, language)) for cause, text in CAUSES.items()]),
    ]
    return [
        {
            "name": Safe(name),
            "label": say(key, language),
            "options": [(Safe(v), label) for v, label in options],
        }
        for name, key, options in choices
    ]


def gone_page(name: str, language: str) -> str:
    """What stands where a withdrawn page stood."""
    return f"# {say('gone', language)}\n\n{code(name)}\n\n{say('gone-text', language)}\n"
