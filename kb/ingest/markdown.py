"""HTML nodes to Markdown that means the same: escaped prose, fences that hold, tables, formulae, links that are safe.

What is put out can never start a heading, a list, a fence, front matter or markup that the page did not have: prose is
escaped, fences are longer than any run of backticks inside, only http, https and mailto links stay. Losses are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

INLINE_MARK = {"strong": "**", "b": "**", "em": "*", "i": "*"}
BLOCKS = frozenset(
    "p div section article main header footer aside figure figcaption details summary address dl dt dd fieldset body center".split()
)
MAX_COLUMNS = 200
MAX_CELLS = 50_000
"""Larger tables are kept as text."""
MAX_DEPTH = 180
"""Nesting below which only text is taken."""
_ESCAPE = re.compile(r"([\\`*_\[\]<>|~$])")
_LINE_START = re.compile(
    r"^(\s*)(#{1,6}(?=\s|$)|[-+=](?=\s|$|[-=])|\d{1,9}(?=[.)](?:\s|$))|>|:::|~~~)", re.MULTILINE
)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|brush:?\s*|sourceCode)[-_ ]?([A-Za-z0-9+#.]{1,20})"
)


@dataclass
class Losses:
    """What was met and what was kept, by kind."""

    met: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)

    def to_record(self) -> dict[str, str]:
        """``{"code_blocks": "8/10"}`` for every kind that was met."""
        return {kind: f"{self.kept[kind]}/{self.met[kind]}" for kind in sorted(self.met)}


def escape(text: str) -> str:
    """Prose as inline Markdown that shows exactly this text; `guard_lines` keeps it from starting a block."""
    return re.sub(r"&(?=#?\w+;)", r"\\&", _ESCAPE.sub(r"\\\1", text))


def guard_lines(text: str) -> str:
    """Inline Markdown as a paragraph: no line of it starts a heading, a list, a quote or a rule."""
    return _LINE_START.sub(lambda m: _guard(m[1], m[2]), text)


def _guard(space: str, mark: str) -> str:
    return f"{space}{mark}\\" if mark[0].isdigit() else f"{space}\\{mark}"


def fence(code: str, language: str = "") -> str:
    """Code in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{code}\n{ticks}"


def safe_link(href: str, base: str) -> str:
    """An absolute http, https or mailto address without characters that end a Markdown link, or nothing."""
    href = re.sub(r"[\x00-\x20\x7f]+", "", href) if ":" in href[:20] else href.strip()
    try:
        joined = urljoin(base, href)
    except ValueError:
        return ""
    if not re.match(r"(?:https?://|mailto:)", joined, re.IGNORECASE):
        return ""
    return joined.translate({ord(c): f"%{ord(c):02X}" for c in " <>()\\\"'`|{}[]^\n\t\r"})


class Writer:
    """Writes one tree as Markdown.

    Args:
        base: What relative links are relative to.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self.losses = Losses()

    def write(self, node: Any) -> str:
        """The node's content as Markdown blocks."""
        blocks = [block.strip("\n") for block in self._blocks(node, 0)]
        return "\n\n".join(block for block in blocks if block.strip()) + "\n"

    def _blocks(self, node: Any, depth: int) -> list[str]:
        out: list[str] = []
        line: list[str] = [escape(_squeezed(node.text))]
        for child in node:
            if isinstance(child.tag, str):
                block = self._block(child, depth + 1)
                if block is None:
                    line.append(self._inline(child, depth + 1))
                else:
                    out.append(_paragraph(line))
                    line = []
                    out.extend(block)
            line.append(escape(_squeezed(child.tail)))
        out.append(_paragraph(line))
        return [block for block in out if block]

    def _block(self, node: Any, depth: int) -> list[str] | None:  # noqa: PLR0911  one per kind of element
        """Blocks of a block element, or None for an inline one."""
        tag = node.tag
        if depth > MAX_DEPTH:
            return [guard_lines(escape(" ".join(node.text_content().split())))]
        if tag == "pre" or (tag == "table" and _is_code_table(node)):
            return [self._code(node)]
        if tag == "table":
            return [self._table(node, depth)] if _is_data(node) else self._layout(node, depth)
        if re.fullmatch(r"h[1-6]", tag):
            text = re.sub(r"#$", r"\\#", _one_line(self._inlines(node, depth)))
            return [f"{'#' * int(tag[1])} {text}"] if text else []
        if tag in {"ul", "ol"}:
            return [self._list(node, depth)]
        if tag == "blockquote":
            inner = "\n\n".join(self._blocks(node, depth))
            return ["\n".join(f"> {line}".rstrip() for line in inner.split("\n"))] if inner else []
        if tag == "hr":
            return ["* * *"]
        if tag == "math" and node.get("display") == "block":
            return [self._formula(node, "$$")]
        return self._blocks(node, depth) if tag in BLOCKS or _holds_blocks(node) else None

    def _layout(self, node: Any, depth: int) -> list[str]:
        """A table that only places things: its cells as blocks."""
        return [
            block
            for cell in node.iter("td", "th")
            if not _inside(cell, node, {"table"})
            for block in self._blocks(cell, depth)
        ]

    def _code(self, node: Any) -> str:
        self.losses.met["code_blocks"] += 1
        for br in node.iter("br"):
            br.tail = "\n" + (br.tail or "")
        rows = list(node.xpath(".//td[contains(@class,'code') or contains(@class,'blob-code')]//text()"))
        code = "".join(rows) if node.tag == "table" and rows else node.text_content()
        code = code.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        code = "\n".join(line.rstrip() for line in code.split("\n"))
        if not code.strip():
            return ""
        self.losses.kept["code_blocks"] += 1
        return fence(code, _language(node))

    def _list(self, node: Any, depth: int) -> str:
        lines: list[str] = []
        number = int(node.get("start") or 1) if str(node.get("start") or 1).isdecimal() else 1
        for child in node:
            if not isinstance(child.tag, str):
                continue
            mark = f"{number}. " if node.tag == "ol" else "- "
            number += 1
            inner = (
                "\n\n".join(self._blocks(child, depth + 1))
                if child.tag == "li"
                else "\n\n".join(self._block(child, depth + 1) or [])
            )
            inner = re.sub(r"\n\n(?=\s*(?:- |\d+\. ))", "\n", inner)
            if inner.strip():
                pad = " " * len(mark)
                lines.append(
                    mark + "\n".join(f"{pad}{line}" if line else "" for line in inner.split("\n")).lstrip()
                )
        return "\n".join(lines)

    def _table(self, node: Any, depth: int) -> str:
        self.losses.met["tables"] += 1
        rows: list[list[str]] = []
        for row in node.iter("tr"):
            if _inside(row, node, {"table"}):
                continue
            cells: list[str] = []
            for cell in row.iterchildren("td", "th"):
                text = re.sub(r"(?<!\\)\|", r"\\|", _one_line(" ".join(self._blocks(cell, depth + 1))))
                span = cell.get("colspan") or "1"
                cells += [text] + [""] * (int(span) - 1 if re.fullmatch("[1-9]|[1-4][0-9]", span) else 0)
                if len(cells) > MAX_COLUMNS:
                    return self._too_wide(node)
            if any(cells):
                rows.append(cells)
        width = max((len(row) for row in rows), default=0)
        if not width or len(rows) * width > MAX_CELLS:
            return self._too_wide(node) if width else ""
        self.losses.kept["tables"] += 1
        padded = [row + [""] * (width - len(row)) for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in padded]
        return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])

    def _too_wide(self, node: Any) -> str:
        """A table that no page shows, as the text of its cells; counted as lost."""
        return guard_lines(escape(" ".join(node.text_content().split())))

    def _formula(self, node: Any, mark: str) -> str:
        self.losses.met["formulae"] += 1
        tex = next(
            (n.text_content() for n in node.iter("annotation") if "tex" in (n.get("encoding") or "").lower()),
            "",
        )
        tex = " ".join((tex or node.get("alttext") or "").split())
        if not tex:
            return escape(" ".join(node.text_content().split()))
        self.losses.kept["formulae"] += 1
        return f"{mark}{tex.replace('$', ' ')}{mark}"

    def _inlines(self, node: Any, depth: int) -> str:
        parts = [escape(_squeezed(node.text))]
        for child in node:
            if isinstance(child.tag, str):
                parts.append(self._inline(child, depth + 1))
            parts.append(escape(_squeezed(child.tail)))
        return "".join(parts)

    def _inline(self, node: Any, depth: int) -> str:  # noqa: PLR0911  one per kind of element
        tag = node.tag
        if depth > MAX_DEPTH:
            return escape(_squeezed(node.text_content()))
        if tag == "br":
            return "\\\n"
        if tag in {"code", "kbd", "samp", "tt"}:
            return _code_span(node.text_content())
        if tag == "math":
            return self._formula(node, "$")
        if tag == "img":
            return self._image(node)
        inner = self._inlines(node, depth)
        if tag in INLINE_MARK and inner.strip():
            mark = INLINE_MARK[tag]
            lead, trail = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
            return f"{lead}{mark}{inner.strip()}{mark}{trail}"
        if tag == "a" and inner.strip() and (href := safe_link(node.get("href") or "", self.base)):
            return f"[{inner.strip()}]({href})"
        return inner

    def _image(self, node: Any) -> str:
        alt = " ".join((node.get("alt") or "").split())
        if "math" in (node.get("class") or "").lower() and alt:
            self.losses.met["formulae"] += 1
            self.losses.kept["formulae"] += 1
            return f"${alt.replace('$', ' ')}$"
        self.losses.met["images"] += 1
        src = safe_link(node.get("src") or node.get("data-src") or "", self.base)
        if not src:
            return ""
        self.losses.kept["images"] += 1
        return f"![{escape(alt)}]({src})"


def _squeezed(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "")


def _paragraph(parts: list[str]) -> str:
    text = re.sub(r"(?:\\\n\s*)+$", "", "".join(parts).strip())
    return guard_lines(text)


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


def _code_span(text: str) -> str:
    text = " ".join(text.split())
    if not text:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _language(node: Any) -> str:
    for candidate in (node, *node.iter("code"), node.getparent() if node.getparent() is not None else node):
        for text in (
            candidate.get("class") or "",
            candidate.get("data-lang") or "",
            candidate.get("data-language") or "",
        ):
            if found := _LANGUAGE.search(text):
                return found.group(1).lower()
            if (
                text
                and text in {candidate.get("data-lang"), candidate.get("data-language")}
                and re.fullmatch(r"[\w+#.-]{1,20}", text)
            ):
                return text.lower()
    return ""


def _inside(node: Any, top: Any, tags: set[str]) -> bool:
    """Whether an element of ``tags`` stands between a node and ``top``."""
    parent = node.getparent()
    while parent is not None and parent is not top:
        if parent.tag in tags:
            return True
        parent = parent.getparent()
    return False


def _is_code_table(node: Any) -> bool:
    text = node.get("class") or ""
    return "highlight" in text or "js-file-line-container" in text or "rouge-table" in text


def _is_data(node: Any) -> bool:
    """Whether a table holds data: heads, or several rows of short cells and no tables or code inside."""
    if node.get("role") in {"presentation", "none"} or any(True for _ in node.iter("pre")):
        return False
    if any(True for _ in node.iter("th", "thead")):
        return True
    rows = list(node.iter("tr"))
    inner = any(child is not node for child in node.iter("table")) or any(
        True for _ in node.iter("pre", "p", "ul", "ol", "h1", "h2")
    )
    return len(rows) > 1 and not inner and max(len(list(row.iterchildren("td"))) for row in rows) > 1


def _holds_blocks(node: Any) -> bool:
    return any(
        True for _ in node.iter("p", "pre", "ul", "ol", "table", "blockquote", "h1", "h2", "h3", "h4", "div")
    )
