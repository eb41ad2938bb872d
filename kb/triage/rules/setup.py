"""A set-up that can be repeated: hardware, versions, model and load are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.triage.figures import setup_of
from kb.triage.reading import Found, Reading

PARTS = 4
"""Hardware, version, model, load."""


def find(reading: Reading, options: Mapping[str, Any]) -> Found | None:  # noqa: ARG001  the units' signature
    """A quarter for each of the four parts."""
    named = setup_of(reading.text)
    if not named:
        return None
    return Found(len(named) / PARTS, tuple(words[0] for words in named.values()))
