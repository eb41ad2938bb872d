"""Rules for structure: one file per unit, each with ``find(reading, options) -> Found | None``.

A unit is named by a rule of kind ``code`` (``rules/<name>.toml``); it looks, the rule weighs. A unit knows the shape of
texts, never a particular work, author or site.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kb.errors import BadConfig
from kb.triage.reading import Found, Reading

UNITS = Path(__file__).parent
Unit = Callable[[Reading, Mapping[str, Any]], Found | None]


def unit_names() -> list[str]:
    """Names of all units."""
    return sorted(path.stem for path in UNITS.glob("*.py") if not path.stem.startswith("_"))


@cache
def load_unit(name: str) -> Unit:
    """Find a unit by its name.

    Raises:
        BadConfig: There is none.
    """
    if name not in unit_names():
        raise BadConfig(
            f"rule with unit = {name!r}: not used",
            cause=f"there is no such unit; there are {', '.join(unit_names())}",
            remedy="name one of them, or add a file to kb/triage/rules",
        )
    unit: Unit = importlib.import_module(f"kb.triage.rules.{name}").find
    return unit
