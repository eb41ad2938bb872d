"""An official voice: the site belongs to the project or firm that the text is about, or to its engineers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

ENGINEERS = frozenset({"research", "engineering", "eng", "developer", "developers", "labs", "tech", "docs"})
"""Parts of a host under which engineers of a firm publish."""
COMMON = frozenset(
    {"blog", "blogs", "forum", "forums", "community", "discuss", "news", "www", "en", "cloud", "the", "data"}
)
SHORTEST = 3


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """Half for the name of the site in the text, half for a part of the host where engineers publish."""
    labels = reading.host.split(".")[:-1]
    if reading.is_paper or not labels or FORUM & set(labels):
        return None
    squeezed = re.sub(r"[\s-]+", "", reading.lower)
    named = [
        x
        for x in labels
        if len(x) >= SHORTEST and x not in COMMON | ENGINEERS and x.replace("-", "") in squeezed
    ]
    voices = [label for label in labels if label in ENGINEERS]
    strength = 0.5 * bool(named) + 0.5 * bool(voices)
    return Found(strength, (*named, *voices)) if strength else None


FORUM = frozenset({"forum", "forums", "community", "discuss", "discourse"})
"""Parts of a host where anybody writes."""
