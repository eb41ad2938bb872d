"""A primary source: a paper, or authors who report what they did themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

FIRST_HAND = re.compile(
    r"\b(?:we|I) (?:ran|run|measured?|tested|tried|benchmark(?:ed)?|report|built|deployed|present|propose|show|derive|learned)\b"
    r"|\bour (?:own )?(?:benchmarks?|measurements?|tests?|deployment|experiments?|results)\b"
    r"|\b(?:engineers|researchers|authors)\b[^.]{0,60}?\b(?:reports?|describes?|asks?|shows?|presents?|measures?|explains?|finds?)\b"
    r"|\b(?:articles?|posts?|series|reports?) by [^.]{0,30}?\b(?:engineers|researchers|maintainers)\b|\btheir (?:own )?(?:benchmarks?|measurements?|traffic)\b"
    r"|\bwhat it took\b|\bwe learned\b"
    r"|我们(?:在|用|对|提出|部署|实测|测试|总结)|本文(?:提出|总结|用|研究)|实测",
    re.IGNORECASE,
)
MAX_EVIDENCE = 3


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """Whole for a paper; ``first_hand`` (default 0.5) for a text that reports its authors' own work."""
    if reading.is_paper:
        return Found(1.0, (reading.item.id,))
    hits = tuple(dict.fromkeys(hit.group() for hit in FIRST_HAND.finditer(reading.text)))[:MAX_EVIDENCE]
    return Found(float(options.get("first_hand", 0.5)), hits) if hits else None
