"""A page of the base → what the site's generator reads: markers out, links and verdicts in the site's form. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kb.markers import find_blocks
from kb.model import Outcome
from kb.publish.words import OUTCOMES, say

_OURS = re.compile(r'<a id="[A-Za-z0-9._-]+"></a>|\]\(<https?://[^<>\s]*>\)|<!--.*?-->', re.DOTALL)
_RAW = re.compile(r"<[A-Za-z/!?]")
_COUNT = re.compile(r"\bn = (?=\d)")
"""A count keeps together when a line breaks."""
_FRONT = re.compile(r"---[ \t]*\n.*?^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_LEAVES = re.compile(r"(\]\()(?:\.\./)+(figures|measurements)/([^)\s]*)(\))")


def badges(text: str) -> str:
    """Turn verdicts in bold into badges."""
    names = {getattr(text, lang): outcome for outcome, text in OUTCOMES.items() for lang in ("zh", "en")}
    pattern = re.compile(r"\*\*(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")\*\*")
    return pattern.sub(lambda found: badge(names[found[1]], found[1]), text)


def badge(outcome: Outcome, label: str) -> str:
    """A verdict as HTML; the colour is never the only sign, the word stands in it."""
    return f'<span class="kb-badge kb-{outcome.value}">{label}</span>'


def holds_html(text: str) -> bool:
    """Whether a page holds HTML that kb did not write."""
    return _RAW.search(_OURS.sub("", text)) is not None


def without_markers(page: bytes, held: Iterable[str], language: str) -> str:
    """The page's text without markers and front matter; a held block says that newer text waits."""
    waiting = set(held)
    pieces: list[bytes] = []
    done = 0
    for block in find_blocks(page)[0]:
        pieces.append(page[done : block.start])
        if block.id in waiting:
            pieces.append(f"\n> {say('held-note', language)}\n".encode())
        pieces.append(page[block.inner_start : block.inner_end])
        done = block.end
    pieces.append(page[done:])
    text = (
        b"".join(pieces)
        .decode("utf-8", "replace")
        .removeprefix("\ufeff")
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )
    found = _FRONT.match(text)
    return text[found.end() :] if found else text


def without_blocks(page: bytes) -> str:
    """What people wrote: the page without its blocks."""
    pieces: list[bytes] = []
    done = 0
    for block in find_blocks(page)[0]:
        pieces.append(page[done : block.start])
        done = block.end
    return b"".join([*pieces, page[done:]]).decode("utf-8", "replace")


def to_site(text: str, path: str) -> str:
    """Markdown of a page as the generator reads it.

    Args:
        text: From `without_markers`.
        path: Of the page below ``published/``: its distance from the root of the site.
    """
    up = "../" * (path.count("/") + 1) if path else ""

    def link(found: re.Match[str]) -> str:
        target = f"{found[2]}/{found[3]}"
        if found[2] == "measurements":
            target = f"api/measurements/{found[3].strip('/')}.json"
        return f"{found[1]}{up}{target}{found[4]}"

    return badges(_COUNT.sub("n\u00a0=\u00a0", _LEAVES.sub(link, text)))
