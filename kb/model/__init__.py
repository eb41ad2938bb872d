"""The nouns: every record that is written into a knowledge base. No I/O, nothing that computes.

All records are frozen and refuse unknown keys. The string under a field is its documentation; `docs/records.md` is
generated from it. Which file holds which record is decided in `kb.store`.
"""

from __future__ import annotations

from kb.model.base import (
    JUDGED,
    Action,
    Decision,
    Level,
    Outcome,
    Record,
    Text,
)
from kb.model.evidence import (
    Claim,
    ClaimRule,
    Environment,
    Interval,
    Measurement,
    Relay,
    Stated,
    Verdict,
)
from kb.model.items import (
    DateStamp,
    Item,
    SourceConfig,
)
from kb.model.pages import (
    Figure,
    Guide,
    GuideSection,
    Passage,
    Point,
    Series,
    Topic,
    TopicPage,
)
from kb.model.triage import (
    Assessment,
    Candidate,
    CodeRule,
    Draft,
    DraftEntry,
    LogEntry,
    Origin,
    RuleFired,
    WordRule,
)

RECORDS: tuple[type[Record], ...] = (
    Item, Assessment, Draft, Claim, Environment, Measurement, Verdict, Figure, Topic, Guide, TopicPage, SourceConfig,
    WordRule, CodeRule, LogEntry,
)  # fmt: skip
"""Documented in ``docs/records.md``, in this order."""

__all__ = [
    "JUDGED",
    "RECORDS",
    "Action",
    "Assessment",
    "Candidate",
    "Claim",
    "ClaimRule",
    "CodeRule",
    "DateStamp",
    "Decision",
    "Draft",
    "DraftEntry",
    "Environment",
    "Figure",
    "Guide",
    "GuideSection",
    "Interval",
    "Item",
    "Level",
    "LogEntry",
    "Measurement",
    "Origin",
    "Outcome",
    "Passage",
    "Point",
    "Record",
    "Relay",
    "RuleFired",
    "Series",
    "SourceConfig",
    "Stated",
    "Text",
    "Topic",
    "TopicPage",
    "Verdict",
    "WordRule",
]
