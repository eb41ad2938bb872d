r"""TeX accents in names and titles as the characters they mean: ``Andr\'e`` → ``André``. Mathematics stays as it is."""

from __future__ import annotations

import re
import unicodedata

ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
           "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "r": "\u030a", "k": "\u0328", "d": "\u0323"}  # fmt: skip
LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "aa": "å", "AA": "Å", "oe": "œ",
           "OE": "Œ", "i": "ı", "j": "ȷ", "dh": "ð", "th": "þ"}  # fmt: skip
_ACCENT = re.compile(
    r"\{?\\(?:([\'`^\"~=.])\s*|([cvuHrkd])(?:\s+|(?=\{)))(?:\{\s*(\\?[A-Za-z])\s*\}|(\\?[A-Za-z]))\}?"
)
_LETTER = re.compile(r"\{?\\(ss|ae|AE|aa|AA|oe|OE|dh|th|[oOlLij])(?:\{\}|(?![A-Za-z])\s?)\}?")


def plain_tex(text: str) -> str:
    """Decode accents and special letters of TeX; anything else is kept."""
    if "\\" not in text:
        return text
    text = _ACCENT.sub(_accented, text)
    return _LETTER.sub(lambda m: LETTERS[m[1]], text)


def _accented(found: re.Match[str]) -> str:
    letter = (found[3] or found[4]).lstrip("\\")
    return unicodedata.normalize("NFC", letter + ACCENTS[found[1] or found[2]])
