"""The base of all records, and the words several of them share."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all that is written into a knowledge base."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types, every field present, in field order."""
        return self.model_dump(mode="json", by_alias=True)


class Text(Record):
    """The same text in the two languages of the base."""

    zh: str = ""
    """Chinese."""
    en: str = ""
    """English."""


class Decision(StrEnum):
    """What triage decided."""

    KEEP = "keep"
    WATCH = "watch"
    DROP = "drop"


class Action(StrEnum):
    """What a reader is asked to do with an item."""

    READ = "read"
    REVIEW = "review"
    ADOPT = "adopt"
    FOLLOW = "follow"


class Level(StrEnum):
    """How strong the evidence is; only a run raises it."""

    DERIVED = "derived"
    SIMULATED = "simulated"
    PROXY = "proxy"
    MEASURED = "measured"


class Outcome(StrEnum):
    """What our own numbers say about a claim."""

    HOLDS = "holds"
    PARTLY = "partly"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not-comparable"
    BLOCKED = "blocked"
    UNTESTED = "untested"


JUDGED = frozenset({Outcome.HOLDS, Outcome.PARTLY, Outcome.CONTRADICTED, Outcome.INCONCLUSIVE})
"""Outcomes that rest on something measured."""
