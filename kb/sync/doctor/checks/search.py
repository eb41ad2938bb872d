"""Search finds a Chinese title by two characters from its middle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "search finds Chinese words"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    from kb.search import search, tokens

    if not {"中缓", "缓存"} <= set(tokens("其中缓存的命中率")):
        yield Finding(State.FAIL, "the search index does not split Chinese text into pairs", "report this")
        return
    title = next(
        (page for page in sorted(patient.base.root.glob("published/**/*.md")) if _chinese(page)), None
    )
    if title is None:
        yield Finding(State.NOTE, "not tried on a page: none has a Chinese title")
        return
    words = _chinese(title)
    middle = words[len(words) // 2 - 1 : len(words) // 2 + 1]
    found = [hit.path for hit in search(patient.base, middle, limit=1000)]
    if not any(str(path).endswith(patient.base.relative(title)) for path in found):
        yield Finding(
            State.FAIL, f"searching {middle} does not find {patient.base.relative(title)}",
            f"rm -r {patient.base.cache}/search*, then kb search {middle}",
        )  # fmt: skip
    else:
        yield Finding(State.OK, f"searching {middle} finds {patient.base.relative(title)} among {len(found)}")


def _chinese(page: Path) -> str:
    """The longest run of Chinese characters in a page's first heading."""
    with page.open(encoding="utf-8", errors="replace") as lines:
        heading = next((line for line in lines if line.startswith("# ")), "")
    runs = re.findall(r"[\u4e00-\u9fff]{3,}", heading)
    return max(runs, key=len, default="")
