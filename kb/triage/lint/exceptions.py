"""“All of A, B and C need it” beside “only B does not”."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.curated import Line
from kb.curated.match import words_of
from kb.triage.findings import DraftText, Finding, Subject, shown

CODES = {"contradicts-itself": "two places of one text that cannot both be true"}
_VERBS_ZH = "需要|依赖|要求|支持|使用|采用|具有|提供"
_VERBS_EN = "needs?|requires?|depends? on|supports?|uses?"
_ALL = re.compile(
    rf"[（(]?(?P<names>[\w+.-]+(?:\s*(?:、|,|，|/|和|与|\band\b)\s*(?:and\s+)?[\w+.-]+)+)(?:\s*等)?[)）]?\s*"
    rf"(?:都|均|全都|一律|全部|\ball\b)\s*(?:{_VERBS_ZH}|{_VERBS_EN})\s*(?P<what>[^。；;.]{{2,60}})",
    re.IGNORECASE,
)
_ALL_BEFORE = re.compile(
    rf"\ball (?:of|methods|systems|engines)[^.;]{{0,30}}?[(（](?P<names>[^()（）]{{3,120}})[)）]\s*(?:{_VERBS_EN})\s*(?P<what>[^.;]{{2,60}})",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"(?:只有|唯独|仅有?|除了?|\bonly\b|\bexcept(?: for)?\b)\s*(?P<name>[A-Za-z0-9][A-Za-z0-9+._-]*|[\u4e00-\u9fff]{2,10}?)[^。；;]{0,60}?"
    r"(?:不需要|无需|不依赖|不要求|不支持|不使用|does not need|does not require|needs no|does not support|is independent of|例外|除外|does not|doesn't)"
    r"\s*(?P<what>[^。；;.]{0,60})",
    re.IGNORECASE,
)


def check(subject: Subject) -> Iterator[Finding]:
    """Every entry and section of every draft, each by itself."""
    for draft in subject.drafts:
        for part in draft.curated.parts:
            yield from _part(draft, [line for line in part.lines if line.kind != "code"])


def _part(draft: DraftText, lines: list[Line]) -> Iterator[Finding]:
    exceptions = [
        (found["name"].casefold(), words_of(found["what"]), found.group())
        for line in lines
        for found in _ONLY.finditer(line.text)
    ]
    if not exceptions:
        return
    for line in lines:
        for found in [*_ALL.finditer(line.text), *_ALL_BEFORE.finditer(line.text)]:
            names = [
                n.strip().casefold()
                for n in re.split(r"\s*(?:、|,|，|/|和|与|\band\b)\s*", found["names"])
                if n.strip()
            ]
            for name, what, said in exceptions:
                if name in names and (not what or what & words_of(found["what"])):
                    message = f"{shown(found.group())}: but {shown(said)}"
                    yield draft.finding(
                        line.number, "contradicts-itself", message, stated=name, counted=shown(said)
                    )
