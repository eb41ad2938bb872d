"""The same work under two names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from kb.identity import identify
from kb.triage.findings import Finding, Subject

CODES = {"same-work": "two ids that seem to name one work"}
LEAST = 12
"""Letters from which two equal titles are no coincidence."""


def check(subject: Subject) -> Iterator[Finding]:
    """Items whose aliases are another item, or whose titles are the same; pairs a person split stay apart."""
    split = {frozenset((e.target, e.to)) for e in subject.base.log() if e.act in {"split", "merge"}}
    pairs: dict[frozenset[str], str] = {}
    titles: dict[str, str] = {}
    for id_, versions in subject.items.items():
        item = list(versions.values())[-1]
        for alias in item.aliases:
            work = identify(alias)
            if work and work.id != id_ and work.id in subject.items:
                pairs.setdefault(frozenset((id_, work.id)), f"{id_} lists {alias}")
        plain = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", item.title)).casefold()
        if len(plain) >= LEAST and titles.setdefault(plain, id_) != id_:
            pairs.setdefault(frozenset((id_, titles[plain])), f"both are called {item.title}")
    for pair, why in pairs.items():
        if pair in split:
            continue
        first, second = sorted(pair)
        message = f"{first} and {second}: {why}; kb merge them, or kb split them to keep them apart"
        yield Finding(_file(subject, second), 0, "same-work", message, stated=second, counted=first)


def _file(subject: Subject, item: str) -> str:
    seen = min(v.first_seen.at for v in subject.items[item].values())
    return f"items/{seen[:7]}.jsonl"
