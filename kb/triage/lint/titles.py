"""The title an entry gives its source against the title its reference gives."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.curated import Entry, Reference
from kb.curated.match import words_of
from kb.triage.findings import DraftText, Finding, Subject, shown

CODES = {"contradicts-itself": "two places of one text that cannot both be true"}
_QUOTED = re.compile(r"[\"“「『《]([^\"”」』》]+)[\"”」』》]")
LEAST_WORDS = 2
"""Words that must differ on each side; shortened titles differ on one side only."""


def check(subject: Subject) -> Iterator[Finding]:
    """Entries of every draft with a source and a reference of the same work."""
    for draft in subject.drafts:
        for entry in draft.curated.entries:
            reference = _reference(draft, entry)
            field = next((f for f in entry.fields if f.key == "source"), None)
            if reference and field and not _agree(_title(field.value), _title(reference.text)):
                message = f"{shown(field.value)}: the reference list calls it {shown(reference.text)}"
                yield draft.finding(
                    field.line, "contradicts-itself", message, stated=field.value, counted=reference.text
                )


def _reference(draft: DraftText, entry: Entry) -> Reference | None:
    ids = {work.id for work in entry.works}
    return next((r for r in draft.curated.references if r.work and r.work.id in ids), None)


def _title(text: str) -> tuple[str, str]:
    """(title, everything): the quoted part where there is one; brackets are remarks."""
    quoted = _QUOTED.search(text)
    return re.sub(r"[（(][^()（）]*[)）]", " ", quoted.group(1) if quoted else text), text


def _words(text: str) -> set[str]:
    plain = re.sub(r"[\u2010-\u2015-]", " ", text)
    return {re.sub(r"(?<=\w{3})s$", "", w) for w in words_of(plain)}


def _agree(left: tuple[str, str], right: tuple[str, str]) -> bool:
    """One is a shortening of the other: what it says, the other says too."""
    a, b = _words(left[0]), _words(right[0])
    only_a, only_b = a - _words(right[1]), b - _words(left[1])
    if not only_a or not only_b or any(w[0] > "\u33ff" for w in only_a | only_b):
        return True
    if min(len(only_a), len(only_b)) >= LEAST_WORDS and len(a & b) < LEAST_WORDS:
        return True  # nothing in common: a translation or a nickname, not two titles
    return not _names(left[0]) - _names(right[1])


def _names(text: str) -> set[str]:
    """Proper names: words with a capital inside or digits, such as TensorRT-LLM or 2026."""
    return {
        w.casefold()
        for w in re.findall(r"[A-Za-z0-9][\w.+-]*", text)
        if re.search(r"[a-z][A-Z]|[A-Z]{2}|\d", w)
    }
