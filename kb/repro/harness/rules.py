"""Rules as data: which cases a claim's rule looks at, and its bands with the defaults worked out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kb.model import Claim, ClaimRule
from kb.vocab import METRICS, UNITS

SLACK = 0.10
"""Default half-width of the band around the stated range, as a share of it."""
Band = tuple[float, float]


@dataclass(frozen=True)
class Bands:
    """Closed bands in the metric's unit; ``partly`` contains ``holds``."""

    holds: Band
    partly: Band
    tells: bool = True
    """False where every possible value lies in ``partly``, so that lying there says nothing."""


def bands(claim: Claim) -> Bands | None:
    """Work out the bands of a claim; None for claims that are no number and declare none."""
    rule = claim.rule or ClaimRule()
    holds = rule.holds or _default_holds(claim)
    if holds is None:
        return None
    partly = rule.partly or _default_partly(claim, holds)
    metric = METRICS.get(metric_of(claim))
    least, most = (0.0, 1.0) if metric and metric.unit == "fraction" else (-math.inf, math.inf)
    tells = partly[0] > least or partly[1] < most
    return Bands(holds, (min(holds[0], partly[0]), max(holds[1], partly[1])), tells)


def _default_holds(claim: Claim) -> Band | None:
    """±10 % of the stated range; no far end for ``up-to`` and ``at-least``, which state an edge."""
    if claim.low is None or claim.high is None:
        return None
    low, high = claim.low - SLACK * abs(claim.low), claim.high + SLACK * abs(claim.high)
    if claim.bound == "up-to":
        reach = claim.high - SLACK * abs(claim.high)
        return (reach, math.inf) if claim.high >= 0 else (-math.inf, high)
    if claim.bound == "at-least":
        return (low, math.inf)
    return (low, high)


def _default_partly(claim: Claim, holds: Band) -> Band:
    """Same sign and at least half of the effect; on a log scale for factors and quantities."""
    if claim.low is None or claim.high is None:
        return holds
    low, high = claim.low, claim.high
    if claim.unit == "ratio" and low > 0:
        if low > 1:
            return (math.sqrt(low), math.inf)
        return (0.0, math.sqrt(high)) if high < 1 else holds
    # a claim's unit is text from outside: lint names an unknown one, and no band may fail over it
    unit = UNITS.get(claim.unit)
    if unit is not None and unit.scale == "ratio" and low > 0:
        return (low / 2, high * 2)
    if low > 0:
        return (low / 2, math.inf)
    return (-math.inf, high / 2) if high < 0 else holds


def stated_parameters(claim: Claim) -> dict[str, float]:
    """Conditions that are numbers, by their name: a case parameter of that name must have that value."""
    found = {}
    for name, text in claim.conditions.items():
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found[name] = value
    return found


def selects(claim: Claim, case: Mapping[str, Any]) -> bool:
    """Whether a case counts for a claim: ``at`` exactly, and stated conditions where the case has such a parameter."""
    wanted = (claim.rule or ClaimRule()).at
    if any(name not in case or case[name] != value for name, value in wanted.items()):
        return False
    return all(case[name] == value for name, value in stated_parameters(claim).items() if name in case)


def name_of(case: Mapping[str, Any]) -> str:
    """Name that ``over`` uses: the ``pattern`` or ``name`` parameter of a case."""
    return str(case.get("pattern", case.get("name", "")))


def is_wanted(claim: Claim, case: Mapping[str, Any]) -> bool:
    """Whether a case is one that the rule judges."""
    over = (claim.rule or ClaimRule()).over
    return selects(claim, case) and (not over or name_of(case) in over)


def metric_of(claim: Claim) -> str:
    """Metric the rule looks at."""
    return (claim.rule.metric if claim.rule else "") or claim.metric


def is_fit(claim: Claim) -> bool:
    """Whether the band contains a stated figure: a band that does not is no acceptance rule for it."""
    found = bands(claim)
    if found is None or claim.low is None or claim.high is None:
        return True
    metric = METRICS.get(metric_of(claim))
    if metric is None or metric.unit != claim.unit:
        return True  # the rule judges another quantity than the stated one
    return found.holds[0] <= claim.high and claim.low <= found.holds[1]


def effective_rule(claim: Claim) -> dict[str, Any]:
    """The rule with all defaults worked out, as JSON; infinities as text."""
    rule = (claim.rule or ClaimRule()).to_json()
    found = bands(claim)
    ends = {"holds": found.holds, "partly": found.partly} if found else {}
    return {
        **rule,
        "metric": metric_of(claim),
        "conditions": stated_parameters(claim),
        **{name: [str(end) if math.isinf(end) else end for end in band] for name, band in ends.items()},
    }
