"""Claims, what was measured for them, and what follows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from kb.model.base import Level, Outcome, Record, Text


class Relay(Record):
    """A second-hand quotation of a claim and whether it matches the source."""

    draft: str
    """Draft and entry: ``jay/2026-07-02-inference-systems-brief#2.1``."""
    said: str
    """The figure as quoted there, shortened to the number and its qualifiers."""
    match: str
    """Key of `kb.vocab.RELAY_MATCHES`; ``unchecked`` until compared."""


class ClaimRule(Record):
    """When a claim holds: declared before the run, hashed into every measurement."""

    metric: str = ""
    """Key of `kb.vocab.METRICS`: which measurements it looks at."""
    at: dict[str, Any] = {}
    """Case parameters a measurement must have to count."""
    over: tuple[str, ...] = ()
    """Cases that are judged one by one, by their ``pattern`` or ``name`` parameter; empty: all that match ``at``."""
    holds: tuple[float, float] | None = None
    """Closed band in the metric's unit; None: ±10 % of the stated range."""
    partly: tuple[float, float] | None = None
    """Wider band; None: same sign and at least half the effect on a log scale."""
    needs: Literal["all", "any", "median"] = "all"
    """How many of ``over`` must be in the band."""
    check: str = ""
    """Name of a function of the reproduction, for claims that are no number."""
    any_scale: bool = False
    """True where the conditions allow another scale, so that a proxy may contradict."""


class Claim(Record):
    """One thing somebody published, precise enough to be wrong."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9._-]*$")
    """``system/claim``."""
    kind: Literal["number", "formula", "state", "design"] = "number"
    """What sort of statement it is."""
    item: str
    """`Item.id` of the source."""
    version: str = ""
    """Version of the source the claim was read in."""
    statement: Text
    """In our own words."""
    quote: str = Field(default="", max_length=300)
    """Shortest passage that carries the number, in the source's language; empty = unverified."""
    quote_sha256: str = ""
    """Of the fetched bytes the quote was found in; empty = unverified."""
    locator: str = ""
    """Where in the item: ``abstract``, ``§3.2``, ``fig. 5``."""
    metric: str = ""
    """Key of `kb.vocab.METRICS`."""
    unit: str = ""
    """Key of `kb.vocab.UNITS`."""
    low: float | None = None
    """Least stated value, in ``unit``; None for claims that are no number."""
    high: float | None = None
    """Greatest stated value; equal to ``low`` for a single figure."""
    bound: Literal["exact", "about", "up-to", "at-least", "range"] = "exact"
    """How the source qualifies the figure."""
    baseline: str = ""
    """What it is compared with; required for a ratio."""
    conditions: dict[str, str] = {}
    """``hardware``, ``model``, ``workload``, ``load``: whatever the source states."""
    provenance: Literal["primary", "review", "secondhand", "computed", "memory"]
    """How the figure reached us. Figures from memory stay off published pages."""
    relayed: tuple[Relay, ...] = ()
    """Where drafts quoted it, and whether that matches."""
    valid_until: str = ""
    """Day after which a product-state claim has expired; empty for what does not age."""
    doubt: Text | None = None
    """Why the figure itself is doubtful, where our reading of the source says so."""
    planned: str = ""
    """What would test it, where nothing does yet: a mechanism, a device, an engine."""
    topics: tuple[str, ...] = ()
    """Topic pages that show it."""
    rule: ClaimRule | None = None
    """Acceptance rule; None where no run is planned."""

    @model_validator(mode="after")
    def _range_is_ordered(self) -> Claim:
        if (self.low is None) != (self.high is None):
            raise ValueError(f"claim {self.id}: low and high come together")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"claim {self.id}: low {self.low} exceeds high {self.high}")
        return self


class Environment(Record):
    """The class of machine a measurement was taken on: no host or user name. Its digest is its name."""

    machine: str
    """``cpu`` or the GPU's name: ``NVIDIA H200``."""
    cpu: str = ""
    """CPU model."""
    num_cores: int = 0
    """Logical cores the process may use."""
    python: str = ""
    """``3.11``: what changes results is the minor version."""
    numpy: str = ""
    """Version, empty where not used."""
    torch: str = ""
    """Version, empty where not used."""
    triton: str = ""
    """Version, empty where not used."""
    driver: str = ""
    """GPU driver, empty without one."""
    details: dict[str, str] = {}
    """CUDA, ECC, MIG, clock policy: whatever else tells two machines of this class apart."""


class Measurement(Record):
    """Samples of one metric for one case on one machine: whole, never a summary."""

    id: str
    """Digest of all inputs of the record."""
    repro: str
    """Name of the reproduction."""
    case: dict[str, Any]
    """The whole parameter record."""
    metric: str
    """Key of `kb.vocab.METRICS`."""
    unit: str
    """Key of `kb.vocab.UNITS`; the unit of ``samples``."""
    samples: tuple[float, ...] = Field(min_length=1)
    """Every repetition, in order, unrounded."""
    expected: float | None = None
    """Closed form for the same case, where there is one."""
    seed: int
    """Seed of the run."""
    rule: str
    """Digest of the rules that were declared when the run began."""
    code: str
    """Digest of the reproduction and the modules of the package it imports."""
    inputs: str
    """Digest of its inputs: claims' numbers and data files."""
    level: Level
    """Evidence level this measurement can carry."""
    env: str
    """Digest of the `Environment`."""
    at: str
    """Moment, UTC."""
    run_facts: dict[str, Any] = {}
    """Facts of the run beside its class: commit, dirty flag, load, clocks and throttle reasons seen."""
    imported: dict[str, str] = {}
    """Who brought it and when, for imported runs; empty for our own."""


class Stated(Record):
    """The source's figure, repeated in a verdict so that it stands beside ours."""

    low: float | None = None
    """Least stated."""
    high: float | None = None
    """Greatest stated."""
    unit: str = ""
    """Key of `kb.vocab.UNITS`."""
    bound: str = ""
    """As in the claim."""


class Interval(Record):
    """What was measured: a 95 % interval, its centre and how much went into it."""

    low: float
    """Lower end."""
    value: float
    """Centre: the median or the exact count."""
    high: float
    """Upper end."""
    n: int = Field(ge=1)
    """Samples or cases behind it."""
    unit: str
    """Key of `kb.vocab.UNITS`."""


class Verdict(Record):
    """What our own numbers say about one claim."""

    claim: str
    """`Claim.id`."""
    verdict: Outcome
    """One of seven."""
    level: Level | None = None
    """Evidence level; None where nothing was measured."""
    source: Stated
    """The stated figure."""
    measured: Interval | None = None
    """Null unless something was measured."""
    reason: str = Field(min_length=1)
    """One sentence a reader can check."""
    reason_zh: str = ""
    """The same in Chinese."""
    cases: dict[str, Interval] = {}
    """Per case of the rule, where it is judged over several."""
    repro: str = ""
    """Reproduction it rests on."""
    machine: str = ""
    """Machine class, ``cpu`` or a GPU name."""
    env: str = ""
    """Digest of the `Environment`."""
    at: str = ""
    """Moment of the newest measurement behind it; empty where nothing was measured."""
    since: str = ""
    """Moment since which our numbers say just this: a run that finds the same again does not move it."""
    run: str = ""
    """Digest of the measurements it rests on."""
    digests: dict[str, str] = {}
    """What would make it stale when it changes: source, claim, rule, code, inputs, environment."""
    overruled: dict[str, str] = {}
    """``by``, ``reason``, ``at`` and ``rule_says`` where a person overruled the numbers; empty otherwise."""
    insensitive: str = ""
    """Why the verdict does not follow the stated number, where it does not."""

    @model_validator(mode="after")
    def _a_judgement_rests_on_something(self) -> Verdict:
        if self.verdict in {Outcome.HOLDS, Outcome.PARTLY, Outcome.CONTRADICTED}:
            if self.measured is None and not self.digests.get("check"):
                raise ValueError(
                    f"verdict on {self.claim}: {self.verdict} needs a measurement or a named check"
                )
            if self.level is None:
                raise ValueError(f"verdict on {self.claim}: {self.verdict} needs an evidence level")
        return self
