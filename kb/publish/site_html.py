"""A staged page's Markdown → the HTML of the site, by the reader that also finds blocks: what people's editors show.

CommonMark with tables, struck text and task lists. Tables carry their heads in every cell, so that a narrow screen can
show each row as a card; headings get anchors; links to ``.md`` files become addresses of pages. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TASK = re.compile(r"\[([ xX])\][ \t]+")
_DAY = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_MARKDOWN = re.compile(r"(?:^|(?<=/))([^/:?#]*)\.md(?=$|[?#])")


@dataclass
class Html:
    """One page as HTML."""

    body: str
    title: str
    """Text of its first heading, empty where it has none."""
    headings: list[dict[str, Any]] = field(default_factory=list)
    """Tree of ``level``, ``id``, ``name`` (HTML) and ``children``, as mkdocs' table of contents takes it."""


def to_html(text: str, path: str, table: str, task: str) -> Html:
    """Render one page.

    Args:
        text: Markdown from `kb.publish.stage.to_site`; HTML in it passes through.
        path: Of the file below the site's root: ``inference/kvcache/index.md``.
        table: What a screen reader calls a table that may be scrolled.
        task: What a screen reader calls the box of a task list.
    """
    tokens = _parser().parse(text)
    shown: list[Token] = []
    headings: list[dict[str, Any]] = []
    taken: Counter[str] = Counter()
    up = "" if path.rpartition("/")[2] == "index.md" else "../"
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            headings.append(_heading(token, tokens[number + 1], taken))
        elif token.type == "list_item_open":
            _task(tokens[number : number + 3], task)
        elif token.type == "table_open":
            _table(token, tokens[number:])
            shown.append(
                _raw(f'<div class="kb-scroll" tabindex="0" role="group" aria-label="{escape(table)}">')
            )
        elif token.type == "inline":
            _lead(token, up)
        shown.append(token)
        if token.type == "table_close":
            shown.append(_raw("</div>\n"))
    body = _parser().renderer.render(shown, _parser().options, {})
    return Html(body, headings[0]["text"] if headings else "", _tree(headings))


def _raw(html: str) -> Token:
    from markdown_it.token import Token

    return Token("html_block", "", 0, content=html)


def page_address(target: str, up: str = "") -> str:
    """The address a link leads to, seen from a page that is a folder: ``../b/index.md#x`` → ``../b/#x``.

    Args:
        target: As the Markdown has it, relative to the file.
        up: ``../`` for a file that becomes a folder of its own name.
    """
    if not target or target.startswith(("#", "/")) or re.match(r"[A-Za-z][\w+.-]*:", target):
        return target
    found = _MARKDOWN.search(target)
    if found is None:
        return up + target
    name = "" if found[1] in {"index", "README"} else f"{found[1]}/"
    return up + (f"{target[: found.start()]}{name}" or "./") + target[found.end() :]


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _heading(opened: Token, inline: Token, taken: Counter[str]) -> dict[str, Any]:
    text = "".join(child.content for child in inline.children or [] if child.type in {"text", "code_inline"})
    # as GitHub and mkdocs do: words of any script, joined by hyphens
    name = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") or "section"
    taken[name] += 1
    if taken[name] > 1:
        name = f"{name}_{taken[name] - 1}"
    opened.attrs["id"] = name
    return {"level": int(opened.tag[1]), "id": name, "name": escape(text), "text": text, "children": []}


def _tree(headings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put each heading under the last one of a higher level."""
    roots: list[dict[str, Any]] = []
    open_ones: list[dict[str, Any]] = []
    for heading in headings:
        while open_ones and open_ones[-1]["level"] >= heading["level"]:
            open_ones.pop()
        (open_ones[-1]["children"] if open_ones else roots).append(heading)
        open_ones.append(heading)
    return roots


def _task(tokens: Sequence[Token], label: str) -> None:
    """``- [ ] text``: a box that shows a state and cannot be changed."""
    inline = tokens[-1]
    if inline.type != "inline" or not inline.children or inline.children[0].type != "text":
        return
    first = inline.children[0]
    found = _TASK.match(first.content)
    if found is None:
        return
    tokens[0].attrs["class"] = "task-list-item"
    checked = "" if found[1] == " " else " checked"
    first.type, first.content = (
        "html_inline",
        (
            f'<input type="checkbox" aria-label="{escape(label)}" disabled{checked}> '
            + escape(first.content[found.end() :])
        ),
    )


def _table(opened: Token, rest: Sequence[Token]) -> None:
    """Name each cell by the head of its column; a table of numbers is marked, because it reads best as a table."""
    heads: list[str] = []
    column = 0
    is_numbers = False
    for number, token in enumerate(rest):
        if token.type == "table_close":
            break
        if token.type == "th_open":
            heads.append("".join(c.content for c in rest[number + 1].children or []))
            token.attrs["scope"] = "col"
            is_numbers = is_numbers or "right" in str(token.attrs.get("style", ""))
        elif token.type == "tr_open":
            column = 0
        elif token.type == "td_open":
            token.attrs["data-label"] = heads[column] if column < len(heads) else ""
            if _DAY.fullmatch(rest[number + 1].content):
                token.attrs["class"] = "kb-day"
            column += 1
    opened.attrs["class"] = "kb kb-numbers" if is_numbers else "kb"


def _lead(inline: Token, up: str) -> None:
    """Lead links and pictures where they belong on the site."""
    for child in inline.children or []:
        if child.type == "link_open":
            child.attrs["href"] = page_address(str(child.attrs["href"]), up)
        elif child.type == "image":
            _place(child, up)


def _place(picture: Token, up: str) -> None:
    """Point a picture at its file; one on another host becomes a link, because a reader did not ask to go there."""
    source = str(picture.attrs["src"])
    if not re.match(r"[A-Za-z][\w+.-]*:|/", source):
        picture.attrs["src"] = up + source
        return
    said = escape(picture.content or source)
    picture.type, picture.children = "html_inline", None
    picture.content = f'<a href="{escape(source)}">{said}</a>'
