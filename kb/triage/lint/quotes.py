"""Publishers' text stays out of what is published: no long quotes, not many of one work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kb.errors import BadInput
from kb.files import decode_text, read_bytes
from kb.store import MAX_PAGE_BYTES
from kb.triage.findings import Finding, Subject, shown

CODES = {
    "long-quote": "a quote of more than 300 characters in published/",
    "many-quotes": "more than three quotes of one work on one page",
}
MAX_CHARS = 300
MAX_QUOTES = 3
_QUOTED = re.compile(r"“([^“”]+)”|「([^「」]+)」|\"([^\"\n]+)\"")


def check(subject: Subject) -> Iterator[Finding]:
    """Pages and accepted drafts under ``published/``; what kb keeps of its own blocks is not read twice."""
    root = subject.base.root / "published"
    quotes = {_flat(claim.quote): claim.item for _, _, claim in subject.claims if claim.quote}
    for path in sorted(root.glob("**/*.md")):
        if ".blocks" not in path.parts:
            yield from _page(subject, path, quotes)


def _page(subject: Subject, path: Path, quotes: dict[str, str]) -> Iterator[Finding]:
    file = subject.base.relative(path)
    try:
        text = decode_text(read_bytes(path, limit=MAX_PAGE_BYTES), path.name)
    except BadInput as error:
        yield Finding(file, 1, "unreadable", error.cause)
        return
    for line, quote in _quotes(text):
        if len(quote) > MAX_CHARS:
            message = f"{shown(quote)}: {len(quote)} characters are quoted"
            yield Finding(file, line, "long-quote", message, stated=str(MAX_CHARS), counted=str(len(quote)))
    flat = _flat(text)
    held = Counter(item for quote, item in quotes.items() if quote in flat)
    for item, count in sorted(held.items()):
        if count > MAX_QUOTES:
            message = f"{item}: {count} quotes on one page"
            yield Finding(file, 0, "many-quotes", message, stated=str(MAX_QUOTES), counted=str(count))


def _quotes(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of block quotes, their lines joined, and of text in quotation marks."""
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if found := re.match(r" {0,3}>\s?(.*)", line):
            start = start if block else number
            block.append(found.group(1))
            continue
        if block:
            yield start, " ".join(" ".join(block).split())
            block = []
        for hit in _QUOTED.finditer(line):
            yield number, next(group for group in hit.groups() if group)


def _flat(text: str) -> str:
    return " ".join(text.split())
