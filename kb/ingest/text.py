"""Text from outside: one line without tricks, markup as plain text, bytes without a label as what they are.

Imports nothing of `kb`, so that processes that only parse start quickly.
"""

from __future__ import annotations

import re
import unicodedata

TITLE_CHARS = 500
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control
    "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # invisible, direction
    "\ud800-\udfff\ue000-\uf8ff\ufff0-\uffff\U000e0000-\U000e007f\U000f0000-\U0010ffff]"  # surrogate, private, tags
)


def one_line(text: str, limit: int = TITLE_CHARS) -> str:
    """A text as one line: white space collapsed, control, direction and invisible characters gone, NFC, cut with …."""
    longest = (
        8 * limit
    )  # white space and invisible characters included; a summary needs no more of a whole text
    is_cut = len(text) > longest
    line = " ".join((text[:longest] if is_cut else text).split())
    if not (line.isascii() and line.isprintable()):
        line = unicodedata.normalize("NFC", " ".join(_UNSEEN.sub("", line).split()))
    return line if len(line) <= limit and not is_cut else line[: limit - 1].rstrip() + "…"


def plain_text(markup: str) -> str:
    """The text of an HTML fragment, entities decoded once; for summaries, not for extraction."""
    import html

    if "<" in markup:
        markup = re.sub(r"(?is)<(script|style|template|noscript)\b.*?(?:</\1\s*>|$)", " ", markup)
        markup = re.sub(r"(?s)<!--.*?(?:-->|$)", " ", markup)
        markup = re.sub(
            r"(?i)</?(?:p|br|div|li|tr|h[1-6]|td|th|ul|ol|pre|blockquote|hr)\b[^<>]*>", " ", markup
        )
        markup = re.sub(r"</?[A-Za-z][^<>]*>", "", markup)
    return html.unescape(markup)


def guess_charset(body: bytes) -> str:
    """Charset of bytes that are no UTF-8 and carry no label: GB 18030 where that gives Chinese, else Windows-1252 or nothing."""
    for name in ("gb18030", "cp1252"):
        try:
            text = body.decode(name)
        except UnicodeDecodeError:
            continue
        letters = re.findall(r"[^\x00-\x7f]", text)
        common = sum(1 for c in letters if "\u4e00" <= c <= "\u9fa5" or c in "，。、：；（）“”《》")
        if name != "gb18030" or (letters and common > len(letters) * 0.9):
            return name
    return ""
