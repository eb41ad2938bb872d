"""Text from outside on its way into a draft: inert in Markdown, HTML and YAML, and still readable as plain text.

Drafts are read raw by the people who edit them, so only what could act is escaped: by a character reference where
readers of Markdown disagree about backslashes, else by a backslash.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, urlsplit

MAX_TEXT = 500
"""Characters kept of one text from outside."""
MAX_ADDRESS = 2_000
REFERENCES = {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("|"): "&#124;",
    ord("`"): "&#96;",
    ord("$"): "&#36;",
}
REFERENCES |= {ord("{"): "&#123;", ord("}"): "&#125;"}
BACKSLASHED = re.compile(r"[\\*\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~)|(?<=~)~")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_IN_CODE = re.compile(r"[^\w ./=:#,+@%()-]")


class Safe(str):
    """Markdown that was made here; everything else is escaped when a template prints it."""

    __slots__ = ()


def one_line(text: str, limit: int = MAX_TEXT) -> str:
    """Collapse white space, drop control, direction and unassigned characters, cut to ``limit`` with ``…``."""
    if not text.isascii() or not text.isprintable():
        text = "".join(
            " " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in _HIDDEN
        )
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def inline(text: str, limit: int = MAX_TEXT) -> Safe:
    """Text as inert Markdown on one line, for anywhere but the start of a line."""
    line = BACKSLASHED.sub(lambda hit: f"\\{hit.group()}", one_line(text, limit)).translate(REFERENCES)
    # bare addresses would become links in many readers
    return Safe(line.replace("://", "&#58;//").replace("www.", "www&#46;"))


def code(text: str) -> Safe:
    """Text as a code span; characters that could end it or a table cell become ``?``."""
    return Safe(f"`{_IN_CODE.sub('?', one_line(text, 200)) or '?'}`")


def address(url: str) -> str:
    """A web address that is safe between angle brackets; empty where it is none."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.hostname or len(url) > MAX_ADDRESS:
        return ""
    return quote(one_line(url, MAX_ADDRESS), safe="/:?#@!,;=+%.-~&'*()")


def link(url: str) -> Safe:
    """The address itself as a link; code where it is no web address."""
    target = address(url)
    return Safe(f"<{target.replace('|', '%7C')}>") if target else code(url)
