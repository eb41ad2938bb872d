"""The publisher a draft names against the host it links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.curated import Entry
from kb.curated.match import words_of
from kb.triage.findings import DraftText, Finding, Subject, shown

CODES = {"host-mismatch": "the publisher named and the host linked have nothing in common"}
PLATFORMS = (
    "arxiv.org doi.org openreview.net aclanthology.org acm.org ieee.org usenix.org github.com github.io gitlab.com "
    "huggingface.co pypi.org medium.com substack.com youtube.com zhihu.com qq.com csdn.net readthedocs.io docs.rs "
    "semanticscholar.org nature.com springer.com sciencedirect.com reddit.com x.com twitter.com linkedin.com dev.to"
).split()
"""Hosts that carry everybody's work, so that a name says nothing about them."""
MIN_NAME = 3
"""Letters a name has."""
GENERIC = frozenset(
    "blog blogs docs official guide benchmark benchmarks research labs lab engineering developer developers team "
    "network networks news posts post paper technologies inc ai the llm llms gpu inference".split()
)
_DOCUMENT = re.compile(
    r"指南|手册|文档|基准|对比|比较|评测|博客|教程|报告|全解|笔记|guide|notes|handbook|manual|benchmark|blog|compared|comparison|tutorial|report|review",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^([^·：:|—–]{2,40}?)\s*(?:·|：|:\s|\||\s[—–]\s)\s*(.+)$")


def check(subject: Subject) -> Iterator[Finding]:
    """Entries of every draft whose title or source names a publisher."""
    for draft in subject.drafts:
        for entry in draft.curated.entries:
            named = _publisher(entry)
            if named and not _fits(named, entry):
                yield from _findings(draft, entry, named)


def _publisher(entry: Entry) -> str:
    """Name before the dot or colon, where the rest is the kind of thing a publisher puts out."""
    source = _LEAD.match(entry.value("source"))
    if (
        source
        and entry.value("source").count(":") + entry.value("source").count("：") == 1
        and _names(source.group(1))
    ):
        works_own_name = source.group(1).casefold() in entry.title.casefold() and not _DOCUMENT.search(
            source.group(2)
        )
        return "" if works_own_name else source.group(1).strip()
    title = _LEAD.match(entry.title)
    return title.group(1).strip() if title and _DOCUMENT.search(f"{title.group(1)} {title.group(2)}") else ""


def _names(text: str) -> set[str]:
    return {
        w
        for w in words_of(text)
        if w.isascii() and len(w) >= MIN_NAME and w not in GENERIC and not w[0].isdigit()
    }


def _fits(named: str, entry: Entry) -> bool:
    """True where the name is in the address, or where the address or the name can tell nothing."""
    if not entry.works or not entry.works[0].id.startswith("url:"):
        return True
    address = entry.works[0].id.removeprefix("url:").casefold()
    host = address.split("/")[0].split(":")[0]
    if any(host == p or host.endswith(f".{p}") for p in PLATFORMS):
        return True
    plain = re.sub(r"[^a-z0-9]", "", address)
    names = _names(named)
    return not names or any(re.sub(r"[^a-z0-9]", "", name) in plain for name in names)


def _findings(draft: DraftText, entry: Entry, named: str) -> Iterator[Finding]:
    """One per line that credits the entry to that name."""
    host = entry.works[0].id.removeprefix("url:").split("/")[0]
    yield draft.finding(
        entry.line,
        "host-mismatch",
        f"{entry.title}: it names {named} and links {host}",
        stated=named,
        counted=host,
    )
    rest = words_of(_LEAD.sub(r"\2", entry.title)) - words_of(named)
    own = {line.number for line in entry.lines}
    for line in draft.all_lines():
        if line.number in own or line.kind == "code" or named.casefold() not in line.text.casefold():
            continue
        after = line.text[line.text.casefold().index(named.casefold()) + len(named) :]
        near = words_of(after[: len(named) + 40])
        if rest & {w for w in near if w.isascii()} and not _means_another(draft, entry, line.text):
            message = f"{shown(line.text)}: credits {named} with what {host} published"
            yield draft.finding(line.number, "host-mismatch", message, stated=named, counted=host)


def _means_another(draft: DraftText, entry: Entry, text: str) -> bool:
    """True where the words fit another entry better."""
    words = words_of(text)
    best = max(
        draft.curated.entries, key=lambda e: len(words & words_of(e.title)) / (1 + len(words_of(e.title)))
    )
    return best.n != entry.n and bool(words & words_of(best.title) - words_of(entry.title))
