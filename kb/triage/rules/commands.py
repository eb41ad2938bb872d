"""Commands, code or settings that a reader can run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

SHAPES = (
    re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+(?:[ =][\w./:-]+)?"),
    re.compile(
        r"\b(?:pip3? install|git clone|docker run|kubectl|helm install|npm install|cargo install|apt install|curl -)\s?\S*"
    ),
    re.compile(r"\b[a-z][a-z0-9_]*_[a-z0-9_]+\s?=\s?[\w\"'.-]+"),
    re.compile(r"\b[A-Za-z_]\w*\([^()]*\w+\s?=\s?[^()]*\)"),
    re.compile(r"\b(?:SELECT|MATCH|CREATE TABLE|INSERT INTO)\b[^.]*\b(?:FROM|RETURN|VALUES|WHERE)\b"),
    re.compile(r"\b[a-z][a-z0-9-]+ (?:serve|run|create|pull|build|backup) [\w./:-]+(?= |$)"),
    re.compile(r"```"),
)
"""Flags, installs, settings, calls, queries, verbs of tools, fences."""
ENOUGH = 2
MAX_EVIDENCE = 4


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """Half for one shape of code, all for two distinct pieces."""
    hits = [hit.group().strip() for shape in SHAPES for hit in shape.finditer(reading.text)]
    pieces = tuple(dict.fromkeys(hit for hit in hits if hit))
    return Found(min(1, len(pieces) / ENOUGH), pieces[:MAX_EVIDENCE]) if pieces else None
