"""The look of advertising: exclamation marks, emoji, hashtags, talk about you."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

HASHTAG = re.compile(r"(?<![\w/&])#[A-Za-z\u3400-\u9fff]\w+")
EMOJI = re.compile("[\u23e9-\u23ff\u26a1\u2728\U0001f300-\U0001faff]")
"""Pictures that shout; the stars, ticks and warning signs of curators are not among them."""
YOU = re.compile(r"\byour?\b|\byours\b", re.IGNORECASE)
PER = 100
"""Words that counts refer to."""
LIMITS = {"exclamations": 1.5, "emoji": 2.0, "hashtags": 2.0, "you": 4.0}
"""Counts per `PER` words from which a sign counts fully."""


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """The strongest two signs; ``least`` (default 0.3) is where it begins to fire."""
    words = max(reading.num_words, 20)
    counts = {
        "exclamations": reading.whole.count("!"),
        "emoji": 0 if reading.whole.isascii() else len(EMOJI.findall(reading.whole)),
        "hashtags": len(HASHTAG.findall(reading.whole)),
        "you": len(YOU.findall(reading.whole)),
    }
    shares = {sign: min(1.0, count * PER / words / LIMITS[sign]) for sign, count in counts.items()}
    strength = min(1.0, sum(sorted(shares.values())[-2:]) / 2)
    if strength < float(options.get("least", 0.3)):
        return None
    return Found(strength, tuple(f"{sign}: {count}" for sign, count in counts.items() if count))
