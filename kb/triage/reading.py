"""What the rules look at: an item with its text, split once into what several rules need."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from kb.model import Item

MAX_TEXT = 20_000
"""Characters of a text that the rules look at; a decision does not hang on what comes later."""
MIN_PHRASE = 2
"""Shorter sentences are leftovers of splitting."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？；])|\n+")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*|\d[\d.,]*")
TOKEN = re.compile(r"[a-z0-9]+")
"""A word in Latin letters and digits, in lower case."""
_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Found:
    """What a unit found."""

    strength: float
    """0–1; multiplied with the rule's weight."""
    evidence: tuple[str, ...]
    """The words or figures that triggered it, verbatim."""


@dataclass(frozen=True)
class Neighbour:
    """An earlier item that says much the same."""

    item: str
    """`Item.id`."""
    similarity: float
    """Estimated share of common word runs, 0–1."""
    title: str = ""


@dataclass(frozen=True)
class Reading:
    """An item and the text it is judged by. Everything here is from outside and only ever compared, never obeyed."""

    item: Item
    body: str = ""
    """Extracted text where the cache still has it; else the summary is read."""
    shelves: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Topics found so far, each with the words that drew the item there, best first."""
    neighbours: tuple[Neighbour, ...] = ()
    """Earlier items that say much the same, most similar first."""

    @cached_property
    def title(self) -> str:
        """Title in compatibility form, so that full-width letters match."""
        return plain(self.item.title)

    @cached_property
    def text(self) -> str:
        """Text in compatibility form, cut at `MAX_TEXT`."""
        return plain((self.body or self.item.summary)[:MAX_TEXT])

    @cached_property
    def whole(self) -> str:
        """Title and text."""
        return f"{self.title}\n{self.text}"

    @cached_property
    def lower(self) -> str:
        """Title and text in lower case; as long as `whole`, so that positions agree."""
        return lower(self.whole)

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Distinct Latin words of title and text, in lower case."""
        return frozenset(TOKEN.findall(self.lower))

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Sentences of the text as written, in order."""
        text = (self.body or self.item.summary)[:MAX_TEXT]
        # extracted pages begin with their own heading, which is no sentence
        text = text.removeprefix(f"# {self.item.title}").lstrip()
        return tuple(part.strip() for part in _SENTENCE.split(text) if len(part.strip()) > MIN_PHRASE)

    @cached_property
    def num_words(self) -> int:
        """Words; two Chinese characters count as one."""
        return len(_WORD.findall(self.whole)) + len(_CJK.findall(self.whole)) // 2

    @cached_property
    def host(self) -> str:
        """Host of the item's address without ``www.``, lower case; empty where it has none."""
        try:
            return (urlsplit(self.item.url).hostname or "").removeprefix("www.")
        except ValueError:
            return ""

    @cached_property
    def path(self) -> str:
        """Path of the item's address, lower case."""
        try:
            return urlsplit(self.item.url).path.lower()
        except ValueError:
            return ""

    @property
    def is_paper(self) -> bool:
        """Whether it is a work with an id of arXiv or a DOI."""
        return self.item.id.startswith(("arxiv:", "doi:"))


def plain(text: str) -> str:
    """Compatibility form without format and control characters: what a reader sees is what the rules see."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text)
    return "".join(c for c in folded if c in "\n\t" or unicodedata.category(c) not in {"Cf", "Cc"})


def lower(text: str) -> str:
    """Lower case of the same length: the few letters that would grow stay as they are."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(c if len(c.lower()) != 1 else c.lower() for c in text)
