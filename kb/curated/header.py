"""Who wrote a draft and when, from its first lines."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Sequence

from kb.curated.shape import Line
from kb.curated.words import FIELD, NAMES

HEAD_LINES = 40
"""How far a header can reach."""
_DAY = re.compile(r"(?<!\d)(20\d\d)\s*(?:[-/.]|年)\s*(\d{1,2})\s*(?:[-/.]|月)\s*(\d{1,2})(?!\d)")
_NAME = r"[^\W\d_][\w .'-]{0,38}?"
_SIGNED = re.compile(rf"(?:#\s*)?({_NAME})[\s·|,，]+20\d\d[-/.年]")
_TITLED = re.compile(rf"(?:#\s*)?({_NAME})\s*·.*20\d\d[-/.年]")
_ZONE = re.compile(r"[(（]\s*([A-Z][A-Za-z]+/[A-Za-z_+-]+(?:/[A-Za-z_]+)?|UTC)\s*[)）]")


def read_day(text: str) -> str:
    """First calendar day in a text as ``YYYY-MM-DD``; empty where there is none that exists."""
    for found in _DAY.finditer(text):
        try:
            return dt.date(*(int(part) for part in found.groups())).isoformat()
        except ValueError:
            continue
    return ""


def read_zone(text: str) -> str:
    """IANA zone in brackets, empty where there is none that exists."""
    if found := _ZONE.search(text):
        try:
            zoneinfo.ZoneInfo(found.group(1))
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            return ""
        return found.group(1)
    return ""


def read_header(lines: Sequence[Line]) -> tuple[str, str, str]:
    """Curator, day and zone that a text's head names; empty strings for what it does not.

    Fields (“curator: …”, “date: …”) win over a first line such as ``Jay 2026-06-10``.
    """
    curator = date = zone = signed = titled = loose = ""
    for line in lines[:HEAD_LINES]:
        for part in re.split(r"\s*[|｜]\s*", line.text):
            key, value = _field(part)
            if key == "curator" and not curator:
                curator = re.split(r"[,，;；(（]", value)[0].strip()
            if key == "date" and not date:
                date = read_day(value)
        text = line.text
        if line.kind == "text" and len(text) <= 120:
            signed = signed or ((found := _SIGNED.match(text)) and found.group(1).strip()) or ""
            titled = titled or ((found := _TITLED.match(text)) and found.group(1).strip()) or ""
            loose = loose or (read_day(text) if signed or titled else "")
        zone = zone or read_zone(text)
    return curator or signed or titled, date or loose, zone


def _field(text: str) -> tuple[str, str]:
    found = FIELD.fullmatch(text)
    return (NAMES[found.group(1).lower()], found.group(2).strip()) if found else ("", "")
