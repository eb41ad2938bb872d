"""A page of the base → what the site's generator reads: markers out, links and verdicts in the site's form. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kb.markers import find_blocks
from kb.model import Outcome
from kb.publish.escape import one_line
from kb.publish.words import OUTCOMES, say

_OURS = re.compile(r'<a id="[A-Za-z0-9._-]+"></a>|\]\(<https?://[^<>\s]*>\)')
_RAW = re.compile(r"<[A-Za-z/!?]")
_COUNT = re.compile(r"\bn = (?=\d)")
"""A count keeps together when a line breaks."""
_FRONT = re.compile(r"---[ \t]*\n.*?^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_MARKER_LINE = re.compile(r"^<!-- kb:(?:begin|end) [^\n]*-->\n", re.MULTILINE)
_LEAVES = re.compile(r"(\]\()(?:\.\./)+(figures|measurements)/([^)\s]*)(\))")

_NAMES = {name: outcome for outcome, text in OUTCOMES.items() for name in (text.zh, text.en)}
_VERDICT = re.compile(r"\*\*(" + "|".join(map(re.escape, sorted(_NAMES, key=len, reverse=True))) + r")\*\*")


def badges(text: str) -> str:
    """Turn verdicts in bold into badges."""
    return _VERDICT.sub(lambda found: badge(_NAMES[found[1]], found[1]), text)


def badge(outcome: Outcome, label: str) -> str:
    """A verdict as HTML; the colour is never the only sign, the word stands in it."""
    return f'<span class="kb-badge kb-{outcome.value}">{label}</span>'


def holds_html(text: str) -> bool:
    """Whether a page holds HTML that kb did not write; a comment counts, since browsers end some of them early."""
    return _RAW.search(_OURS.sub("", text)) is not None


@dataclass(frozen=True)
class Staged:
    """A page of the base as the site takes it."""

    text: str
    """Without markers and front matter; a held block says that newer text waits."""
    people: str
    """What people wrote: the page without its blocks."""


def read_page(page: bytes, held: Iterable[str], language: str) -> Staged:
    """Take the markers out of a page that people own.

    Args:
        page: Its bytes.
        held: Blocks whose newer text waits beside their page.
        language: Of the note on such a block.
    """
    waiting = set(held)
    shown: list[bytes] = []
    people: list[bytes] = []
    done = 0
    for block in find_blocks(page)[0]:
        people.append(page[done : block.start])
        note = f"\n> {say('held-note', language)}\n".encode() if block.id in waiting else b""
        shown += [people[-1], note, page[block.inner_start : block.inner_end]]
        done = block.end
    rest = page[done:]
    return Staged(_text([*shown, rest]), _text([*people, rest]))


def _text(pieces: Iterable[bytes]) -> str:
    """Decode, with LF and without front matter."""
    text = b"".join(pieces).decode("utf-8", "replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _FRONT.match(text)
    return text[found.end() :] if found else text


def heading_of(text: str) -> str:
    """The first heading of a page, empty where it has none."""
    found = re.search(r"^#[ \t]+(.+?)[ \t#]*$", text, re.MULTILINE)
    return one_line(found[1]) if found else ""


def without_own_markers(page: bytes) -> str:
    """Text of a page that kb made just now and no person has touched: each marker is a line of its own."""
    return _MARKER_LINE.sub("", page.decode())


def to_site(text: str, path: str, above: str = "") -> str:
    """Markdown of a page as the generator reads it.

    Args:
        text: From `read_page` or `without_own_markers`.
        path: Of the page below ``published/``: its distance from the root of its language.
        above: From there to the root of the site, where the samples are.
    """
    up = "../" * (path.count("/") + 1) if path else ""

    def link(found: re.Match[str]) -> str:
        target = f"{found[2]}/{found[3]}"
        if found[2] == "measurements":
            target = f"{above}api/measurements/{found[3].strip('/')}.json"
        return f"{found[1]}{up}{target}{found[4]}"

    return badges(_COUNT.sub("n\u00a0=\u00a0", _LEAVES.sub(link, text)))
