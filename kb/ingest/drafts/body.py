"""A curator's text as clean Markdown: the same words, with headings, lists, tables and fences that Markdown reads.

Nothing of the text can open a heading, a fence, a comment or an element of its own: what would is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kb.curated import Curated, Entry, Line
from kb.curated.lines import cells_of, is_rule
from kb.curated.words import FIELDS, STARS

_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
_OPENS_BLOCK = re.compile(r"^(#{1,6}(?=\s|$)|>|[-=*_]{3,}\s*$|=+\s*$|-\s*$|`{3,}|~{3,}|\||[-+*](?=\s))")
_BAD_LINK = re.compile(r"\]\((?=\s*(?:javascript|data|vbscript|file)\s*:)", re.IGNORECASE)


def inline(text: str) -> str:
    """Escape what would be HTML or a dangerous link; code spans are left as they are."""
    parts = _CODE_SPAN.split(" ".join(text.split()))
    for i in range(0, len(parts), 2):
        plain = re.sub(r"<(?=[A-Za-z/!?])(?!https?://)", "&lt;", parts[i])
        parts[i] = _BAD_LINK.sub("] (", plain)
    return "".join(parts)


def paragraph(text: str) -> str:
    """A line of text that opens no block."""
    safe = inline(text)
    return f"\\{safe}" if _OPENS_BLOCK.match(safe) else safe


def to_markdown(curated: Curated) -> str:
    """Body of a draft file: ``# title``, ``## section``, ``## n · title`` per entry."""
    blocks = [f"# {paragraph(curated.title)}"] if curated.title else []
    titled = [i for i, x in enumerate(curated.preamble) if re.sub(r"^#\s+", "", x.text) == curated.title][:1]
    blocks.extend(_blocks([line for i, line in enumerate(curated.preamble) if i not in titled]))
    chinese = sum("\u3400" <= c <= "\u9fff" for part in curated.parts for c in part.title) > 0
    for part in curated.parts:
        if isinstance(part, Entry):
            blocks.append(f"## {part.n} · {inline(part.title)}")
            blocks.extend(_blocks([*_facts(part, chinese=chinese), *part.lines]))
        elif inline(part.title) != inline(curated.title):
            blocks.append(f"## {inline(part.title)}")
        if not isinstance(part, Entry):
            blocks.extend(_blocks(part.lines))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _facts(entry: Entry, *, chinese: bool) -> Iterator[Line]:
    """What the heading and the reference list say of an entry, as fields."""
    colon = "：" if chinese else ": "
    if entry.stars is not None and not entry.value("stars"):
        name = FIELDS["stars"][0] if chinese else "Rating"
        stars = f"{name}{colon}{STARS[0] * entry.stars} {entry.label}".rstrip()
        yield Line(entry.line, stars, "bullet")
    written = " ".join(f.value for f in entry.fields if f.key == "link")
    for work in entry.works:
        url = entry.urls[0] if entry.urls and work is entry.works[0] else work.url
        if work.url and url not in written and not (written and work is entry.works[0]):
            name = FIELDS["link"][0] if chinese else "Link"
            yield Line(entry.line, f"{name}{colon}{url}", "bullet")


def _blocks(lines: Sequence[Line]) -> Iterator[str]:
    """Blocks of Markdown: lists and tables gather their lines, everything else is a paragraph."""
    i = 0
    while i < len(lines):
        kinds = {"bullet", "number"} if lines[i].kind in {"bullet", "number"} else {lines[i].kind}
        j = i + 1
        while lines[i].kind in {"bullet", "number", "row"} and j < len(lines) and lines[j].kind in kinds:
            j += 1
        group = lines[i:j]
        if lines[i].kind == "row":
            yield _table(group)
        elif lines[i].kind in {"bullet", "number"}:
            yield _list(group)
        elif lines[i].kind == "code":
            yield _fence(lines[i])
        elif found := re.match(r"(?:#{1,6}\s+)?(\d{1,3}(?:\.\d{1,3})+\s+\S.*)", lines[i].text):
            yield f"### {inline(found.group(1))}" if len(lines[i].text) <= 120 else paragraph(lines[i].text)  # noqa: PLR2004
        else:
            yield paragraph(lines[i].text)
        i = j


def _list(group: Sequence[Line]) -> str:
    out, level, ground = [], -1, group[0].level
    for line in group:
        level = min(max(line.level - ground, 0), level + 1)
        sign = f"{line.mark}." if line.kind == "number" and line.mark else "-"
        out.append(f"{'    ' * level}{sign} {paragraph(line.text)}".rstrip())
    return "\n".join(out)


def _table(group: Sequence[Line]) -> str:
    rows = [[inline(cell) for cell in cells_of(line)] for line in group if not is_rule(line)]
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in padded]
    return "\n".join([lines[0], f"|{'---|' * width}", *lines[1:]])


def _fence(line: Line) -> str:
    longest = max((len(run) for run in re.findall(r"`+", line.text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{line.mark}\n{line.text}\n{fence}"
