"""Text from outside, made inert: it cannot become Markdown, HTML, a block marker, a link or a terminal command.

What must not act is written as a character reference, which every Markdown reader and HTML itself show as the
character; backslashes alone would not do, because readers differ in which characters they let a backslash escape.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import quote, urlsplit

ACTIVE = {ord(char): f"&#{ord(char)};" for char in "\\`*{}[]<>|~$^"} | {ord("&"): "&amp;"}
ACTIVE |= {ord("<"): "&lt;", ord(">"): "&gt;"}
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_EDGE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
"""An underscore that could begin or end emphasis; one inside a word cannot."""
_STARTS = re.compile(r"(?:#{1,6}|[-+:]|=+|-+|\d{1,9}[.)])(?=\s|$)|!!!|\?\?\?")
_IN_CODE = re.compile(r"[^\w ./=:#,+@%()\[\]'\"-]")
MAX_TEXT = 2_000
"""Characters kept of one text from outside."""


class Safe(str):
    """Markdown or HTML that was made here; everything else is escaped when a template prints it."""

    __slots__ = ()


def one_line(text: str, limit: int = MAX_TEXT) -> str:
    """Collapse white space, drop control and direction characters, cut to ``limit`` characters ending in ``…``."""
    if not text.isprintable():  # else there is neither white space but spaces nor anything to drop
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace()
            or (char not in _BIDI and unicodedata.category(char) not in {"Cc", "Cs", "Co", "Cn"})
        )
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


@lru_cache(maxsize=4_096)  # labels and figures come again and again
def markdown(text: str) -> Safe:
    """Text as inert inline Markdown, on one line."""
    line = _EDGE.sub("\0", one_line(text)).translate(ACTIVE).replace("\0", "&#95;")
    # schemes would become links in readers that link bare addresses; a zero-width reference keeps the text readable
    line = line.replace("://", "&#58;//").replace("www.", "www&#46;")
    if found := _STARTS.match(line):
        last = found.end() - 1
        line = f"{line[:last]}&#{ord(line[last])};{line[last + 1 :]}"
    return Safe(line)


def code(text: str) -> Safe:
    """Text as a code span; characters that could end it or a table cell become ``?``."""
    return Safe(f"`{_IN_CODE.sub('?', one_line(text, 200)) or '?'}`")


def address(url: str) -> str:
    """A web address that is safe as the target of a Markdown or HTML link; empty where it is none."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.hostname or len(url) > MAX_TEXT:
        return ""
    return quote(one_line(url), safe="/:?#@!,;=+%.-~&").replace("&", "%26" if "&" in parts.netloc else "&")


def link(text: str, url: str) -> Safe:
    """A link to a web address; only the text where the address is not usable."""
    target = address(url)
    return Safe(f"[{markdown(text)}](<{target}>)") if target else markdown(text)


def path_link(text: Safe, path: str) -> Safe:
    """A link inside the base; ``text`` is Markdown already, ``path`` is relative and made by us."""
    return Safe(f"[{text}]({quote(path, safe='/.#-_')})")
