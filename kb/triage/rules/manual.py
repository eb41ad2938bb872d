"""A manual: reference text that is kept up to date by whoever makes the thing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kb.triage.reading import Found, Reading

PATH = re.compile(r"/(?:docs?|manual|reference|latest|stable|configuration|user-?guide|operations)(?:/|$)")


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """Whole for a host or a path of documentation."""
    first = reading.host.partition(".")[0]
    if first in {"docs", "doc", "manual", "documentation"}:
        return Found(1.0, (first,))
    hit = PATH.search(reading.path)
    return Found(1.0, (hit.group().strip("/"),)) if hit else None
