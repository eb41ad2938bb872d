"""The main text of a page as Markdown, with what was lost on the way.

The article is the element that holds most prose and few links; code, tables and formulae are taken from the tree as they
are, because extractors that rebuild text drop them. trafilatura, where it is installed, is asked only when too little
prose was found.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import Any

from kb.http import Answer
from kb.ingest.markdown import Writer
from kb.ingest.pages import Page, decode, read_page

LEAST_PROSE = 200
"""Characters of prose below which a page has no main text."""
WHOLE = 0.8
"""Share of a page's prose that is surely the whole article."""
MOST_LINKS = 0.25
"""Share of linked prose above which an element is a list of links."""
TEASER = 1500
"""A shorter text with a subscription wall is a teaser."""
_NOISE = re.compile(
    r"(?:^|[\s_-])(?:comments?|disqus|sidebar|footer|masthead|breadcrumbs?|share|sharing|social|related|recommend\w*|promo|advert\w*|"
    r"ads?|cookie\w*|consent|newsletter|subscribe|signup|pagination|pager|toc|table-of-contents|menu|navbar|nav|skip-link)(?:$|[\s_-])",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"(?:^|[\s_-])(?:article|post|entry|content|main|body|story|text|blog|markdown|prose)(?:$|[\s_-])",
    re.IGNORECASE,
)
_WALL = re.compile(
    r"subscribe to (?:read|continue)|sign in to (?:read|continue)|登录后(?:阅读|查看|继续)|订阅后(?:阅读|查看)|members only",
    re.IGNORECASE,
)
CONTAINERS = frozenset("div section ul ol footer aside header form p table dl fieldset".split())
INJECTION = re.compile(
    r"ignore (?:all |any )?(?:the )?(?:previous|prior|above) instructions|disregard (?:all |any )?(?:previous|prior) instructions"
    r"|(?:give|write) (?:only )?a positive review|do not (?:mention|highlight) any (?:negatives|weaknesses)|忽略(?:之前|以上|前面)的?(?:所有)?(?:指令|指示|要求)",
    re.IGNORECASE,
)
"""Orders to a language model in a text for people; such a text is marked, never obeyed."""


@dataclass
class Extract:
    """A page's main text."""

    page: Page
    markdown: str
    text_chars: int
    """Characters of prose."""
    losses: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def extract(answer: Answer, zone: str) -> Extract | None:
    """Extract a page's main text, or return None where there is no document.

    Args:
        answer: The fetched page.
        zone: Zone of dates that carry none.
    """
    page = read_page(answer, zone)
    if page is None:
        return None
    body = next(page.tree.iter("body"), page.tree)
    _drop_noise(body)
    main = _main(body)
    writer = Writer(page.base)
    markdown = writer.write(main)
    chars = _prose_chars(main)
    losses = writer.losses
    if chars < LEAST_PROSE and (other := _second_opinion(answer)) and len(other) > 2 * chars:
        markdown, chars = other, len(other)
    if page.code_blocks:
        losses.met["code_blocks"] = max(losses.met["code_blocks"], page.code_blocks)
    return Extract(page, markdown, chars, losses.to_record(), _notices(page, markdown, chars))


def _notices(page: Page, markdown: str, chars: int) -> tuple[str, ...]:
    found = []
    if page.is_partial or (chars < TEASER and _WALL.search(markdown)):
        found.append("partial: the page shows only the beginning of the text")
    if INJECTION.search(markdown):
        found.append("untrusted: the text holds orders meant for a language model")
    return tuple(found)


def _drop_noise(body: Any) -> None:
    total = _prose_chars(body)
    for node in list(body.iter()):
        if not isinstance(node.tag, str) or node is body or node.getparent() is None:
            continue
        if node.tag not in CONTAINERS:
            continue
        named = f"{node.get('class') or ''} {node.get('role') or ''}"
        # ids are often made of headings (“sharing-changes”): only one that is wholly such a word counts
        is_noise = node.tag in {"footer", "aside"} or bool(
            _NOISE.search(named) or _NOISE.fullmatch(node.get("id") or "")
        )
        # a wrapper called “post-with-sidebar” holds the article itself
        if is_noise and not _ARTICLE.search(named) and _prose_chars(node) < total * 0.4:
            node.drop_tree()


def _prose_chars(node: Any) -> int:
    return len(" ".join(node.text_content().split()))


def _main(body: Any) -> Any:
    """The element that is the article."""
    total = max(1, _prose_chars(body))
    for path in ("//article", "//main", "//*[@role='main']", "//*[@itemprop='articleBody']"):
        nodes = body.xpath(path)
        best = max(nodes, key=_prose_chars, default=None)
        if best is not None and _prose_chars(best) > max(LEAST_PROSE, total * 0.35):
            return _narrowed(best)
    scores: dict[Any, float] = {}
    for node in body.iter("p", "pre", "td", "blockquote", "li"):
        text = " ".join(node.text_content().split())
        if len(text) < 25 or (node.tag in {"td", "li"} and node.find(".//p") is not None):  # noqa: PLR2004
            continue
        points = (1 + len(re.findall(r"[,，、。]", text)) + min(len(text) // 100, 3)) * (
            1 - _link_share(node)
        )
        parent, weight = node.getparent(), 1.0
        for _ in range(3):
            if parent is None or parent is body.getparent():
                break
            scores[parent] = scores.get(parent, 0.0) + points * weight
            parent, weight = parent.getparent(), weight / 2
    if not scores:
        return body
    best = max(scores, key=lambda n: scores[n] * (1 - _link_share(n)))
    while best is not body and best.getparent() is not None and _prose_chars(best) < total * WHOLE:
        parent = best.getparent()
        if _link_share(parent) > max(MOST_LINKS, _link_share(best) + 0.1):
            break  # what comes with the parent is a menu or a list of other pages
        best = parent
    return best


def _narrowed(node: Any) -> Any:
    inner = [
        child
        for child in node.iter("article")
        if child is not node and _prose_chars(child) > 0.8 * _prose_chars(node)
    ]
    return inner[0] if inner else node


def _link_share(node: Any) -> float:
    total = _prose_chars(node)
    return min(1.0, sum(_prose_chars(link) for link in node.iter("a")) / total) if total else 0.0


def _second_opinion(answer: Answer) -> str:
    try:
        import trafilatura
    except ImportError:
        return ""
    logging.getLogger("trafilatura").setLevel(
        logging.CRITICAL
    )  # it would print; the status tells what was found
    found = trafilatura.extract(
        decode(answer), output_format="txt", include_comments=False, favor_recall=True
    )
    return found or ""
