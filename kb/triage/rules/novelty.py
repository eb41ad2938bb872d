"""What it adds to what the base has: an earlier item that says much the same takes away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:
    """Grows from 0 at a similarity of ``least`` (default 0.25) to 1 at identity; the evidence is the earlier item."""
    least = float(options.get("least", 0.25))
    near = [one for one in reading.neighbours if one.similarity > least]
    if not near:
        return None
    strength = (near[0].similarity - least) / (1 - least)
    return Found(min(1.0, strength), tuple(f"{one.item} ({one.similarity:.0%})" for one in near[:3]))
