"""Decisions, drafts, the rules that decide and the log of acts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from kb.model.base import Action, Decision, Record, Text


class RuleFired(Record):
    """One triage rule and the words that triggered it."""

    rule: str
    """Name of the file under ``rules/``."""
    weight: float
    """What it added to the score."""
    evidence: tuple[str, ...]
    """The words or figures that triggered it, verbatim."""


class Assessment(Record):
    """A decision about one item with every rule that fired."""

    item: str
    """`Item.id`."""
    version: str = ""
    """`Item.version` the decision was made on."""
    by: str
    """``rules`` for the machine, else the curator's name."""
    decision: Decision | None
    """None where a curator gave none."""
    stars: int | None = Field(default=None, ge=1, le=5)
    """1–5; None where a curator gave none."""
    credibility: int | None = Field(default=None, ge=1, le=5)
    """1–5: how far the source's evidence can be trusted; None where not stated."""
    action: Action | None = None
    """What a reader is asked to do."""
    tags: tuple[str, ...] = ()
    """Free tags, as given."""
    topics: tuple[str, ...] = ()
    """Paths of topics: ``inference/kvcache``."""
    rules: tuple[RuleFired, ...] = ()
    """Every rule that fired, in name order; empty for a curator's decision."""
    reason: str = ""
    """One sentence a person can check."""
    duplicate_of: tuple[str, ...] = ()
    """Ids of items this one repeats."""
    blocked_by: tuple[str, ...] = ()
    """What kept it out of a draft: ``budget``, ``duplicate``, ``rule:thin-list``."""
    draft: str = ""
    """Draft that holds it, ``curator/date-slug#n``; empty for none."""
    at: str
    """Moment of the decision, UTC."""


class DraftEntry(Record):
    """One entry in a draft's front matter."""

    n: str
    """Number as the draft prints it: ``4``, ``10+1``, ``2.1``."""
    item: str
    """`Item.id`."""
    version: int | None = None
    """Version the entry speaks of; None where the source does not number them."""
    decision: Decision | None = None
    """keep, watch, drop; None where the curator gave none."""
    stars: int | None = Field(default=None, ge=1, le=5)
    """1–5 or None."""
    credibility: int | None = Field(default=None, ge=1, le=5)
    """1–5 or None."""
    action: Action | None = None
    """read, review, adopt, follow or None."""
    topics: tuple[str, ...] = ()
    """Paths of topics."""


class Candidate(Record):
    """A title a curator saw and left below the threshold; no item."""

    title: str
    """As written."""
    reason: str = ""
    """Why it stayed below."""


class Origin(Record):
    """Where an imported draft came from."""

    sha256: str
    """Of the untouched bytes, kept beside the draft as ``.orig``."""


class Draft(Record):
    """Front matter of a draft. Written once; from then on it belongs to the person."""

    kb: Literal["draft/1"] = "draft/1"
    """Format."""
    curator: str
    """Who wrote it."""
    date: str
    """Day of the draft, ``2026-06-10``."""
    origin: Origin | None = None
    """Only for imported drafts."""
    entries: tuple[DraftEntry, ...] = ()
    """One per ``## n · title`` of the body."""
    candidates: tuple[Candidate, ...] = ()
    """Below the threshold, with reasons."""
    taken_from: str = ""
    """``curator/date-slug#n``: the entry this draft was made of by `kb move`; empty for all others."""


class WordRule(Record):
    """A triage rule that looks for words."""

    name: str
    kind: Literal["words"] = "words"
    weight: float
    """Added once per distinct word found, at most ``max`` times."""
    zh: tuple[str, ...] = ()
    en: tuple[str, ...] = ()
    max: int = 1
    """How many distinct words count."""
    why: str = ""
    """What the rule is for, shown by `kb why`."""
    topics: tuple[str, ...] = ()
    """Topics an item gains when it fires."""
    credibility: float = 0.0
    """Added to the credibility once when it fires."""
    says: Text = Text()
    """What it says about an item, in the words of a draft; empty: not said there."""


class CodeRule(Record):
    """A triage rule that runs a function of ``kb/triage/rules/``."""

    name: str
    kind: Literal["code"] = "code"
    unit: str
    """Module under ``kb/triage/rules/``."""
    weight: float
    """Multiplied with what the unit returns, 0–1."""
    why: str = ""
    options: dict[str, Any] = {}
    """Passed to the unit."""
    credibility: float = 0.0
    """Multiplied likewise and added to the credibility."""
    says: Text = Text()
    """What it says about an item, in the words of a draft; empty: not said there."""


class LogEntry(Record):
    """One act of a person or of the machine on the base; append-only, ordered by (seq, id)."""

    id: str
    """Digest of the other fields."""
    seq: int = Field(ge=1)
    """One more than the highest known when it was written."""
    at: str
    who: str
    act: Literal["move", "hold", "release", "overrule", "merge", "split", "drop", "accept", "reject"]
    target: str
    """Draft, entry, item, block or claim."""
    from_: str = Field(default="", alias="from")
    to: str = ""
    reason: str = ""

    model_config = ConfigDict(populate_by_name=True)
