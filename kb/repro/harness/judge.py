"""The one judging rule of the base: where an interval lies against the bands that were declared before the run.

inside ``holds``                        holds
outside ``holds`` and inside ``partly``  partly
outside ``partly``                      contradicted
across a border                         inconclusive, saying how many more runs would settle it

Over several cases: all in the band holds, some partly, none contradicted. Nothing here runs anything: the same records
give the same verdict on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kb.files import digest
from kb.model import Claim, ClaimRule, Interval, Level, Measurement, Outcome, Stated, Verdict
from kb.repro.harness import wording
from kb.repro.harness.rules import Bands, bands, is_fit, metric_of, name_of, selects
from kb.repro.harness.stats import mean_interval, median_interval, more_runs

LEVELS = tuple(Level)
"""Weakest first."""
MAX_DRIFT = 1.25
"""Most the machine's speed may change from the first to the last third of a run, as a factor, for a time to be judged."""
PAIRED = "speed_up"
"""Metric of samples taken in pairs: a drift hits both of a pair and cancels."""
MIN_SESSIONS = 2
"""Sessions a clock must have seen before it may contradict."""
Answer = tuple[bool | Outcome | None, str, str]
"""What a check answers: yes, no, None where the records do not tell, or an outcome outright; why in English; in Chinese."""
CHECKS = Mapping[str, Callable[[Claim, Sequence[Measurement]], Answer]]
"""Functions a rule's ``check`` may name."""


@dataclass(frozen=True)
class Ruling:
    """What the rule says, before it becomes a `Verdict`."""

    outcome: Outcome
    measured: Interval | None
    reason: str
    reason_zh: str
    cases: dict[str, Interval]


def place(interval: Interval, within: Bands) -> Outcome:
    """Say where an interval lies against closed bands; total, and narrowing it never overturns an answer."""
    if _inside(interval, within.holds):
        return Outcome.HOLDS
    if not _overlaps(interval, within.partly):
        return Outcome.CONTRADICTED
    if _inside(interval, within.partly) and not _overlaps(interval, within.holds):
        return Outcome.PARTLY
    return Outcome.INCONCLUSIVE


def _inside(interval: Interval, band: tuple[float, float]) -> bool:
    return band[0] <= interval.low and interval.high <= band[1]


def _overlaps(interval: Interval, band: tuple[float, float]) -> bool:
    return interval.low <= band[1] and band[0] <= interval.high


def combine(outcomes: Sequence[Outcome], needs: str, *, partly_tells: bool = True) -> Outcome:
    """Join the outcomes of several cases by ``all`` or ``any``.

    By ``all``: every case in the band holds, some partly, none contradicted; where all of them lie in a ``partly`` band
    that some values miss, the whole does too. An open case leaves the whole open only where it could still change it.
    """
    hold = outcomes.count(Outcome.HOLDS)
    is_open = Outcome.INCONCLUSIVE in outcomes
    if needs == "any":
        for first in (Outcome.HOLDS, Outcome.INCONCLUSIVE, Outcome.PARTLY):
            if first in outcomes:
                return first
        return Outcome.CONTRADICTED
    if hold == len(outcomes):
        return Outcome.HOLDS
    if hold and set(outcomes) & {Outcome.PARTLY, Outcome.CONTRADICTED}:
        return Outcome.PARTLY
    if is_open:
        return Outcome.INCONCLUSIVE
    return Outcome.PARTLY if partly_tells and set(outcomes) == {Outcome.PARTLY} else Outcome.CONTRADICTED


def interval_of(taken: Sequence[Measurement]) -> Interval:
    """One interval for some measurements of one metric.

    Samples of one case are pooled: median for what a clock saw, else mean. Several cases are no samples of each other:
    their intervals are spanned from the least to the greatest.
    """
    groups = _by_case(taken)
    if len(groups) > 1:
        return _spanning([interval_of(group) for group in groups], "all")
    samples = [sample for one in taken for sample in one.samples]
    timed = any("clock" in one.run_facts for one in taken)
    low, value, high = median_interval(samples) if timed else mean_interval(samples)
    return Interval(low=low, value=value, high=high, n=len(samples), unit=taken[0].unit)


def _by_case(taken: Sequence[Measurement]) -> list[list[Measurement]]:
    groups: dict[str, list[Measurement]] = {}
    for one in taken:
        groups.setdefault(digest(one.case), []).append(one)
    return list(groups.values())


def by_rule(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
    """Judge every claim by its declared rule over the measurements that the rule selects."""
    return [judge(claim, taken) for claim in claims]


def with_checks(
    **checks: Callable[[Claim, Sequence[Measurement]], Answer],
) -> Callable[[Sequence[Claim], Sequence[Measurement]], list[Verdict]]:
    """Make a module's ``judge``: by declared rules, which may name these functions as their ``check``."""

    def judge_all(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
        return [judge(claim, taken, checks) for claim in claims]

    return judge_all


def judge(claim: Claim, taken: Sequence[Measurement], checks: CHECKS | None = None) -> Verdict:
    """Judge one claim from records of one class of machine.

    Args:
        claim: With its rule; without one the defaults of the base apply.
        taken: All records that may count; the rule selects among them.
        checks: Functions for rules that name one.
    """
    rule = claim.rule or ClaimRule()
    if rule.check:
        return _by_check(claim, taken, checks or {})
    within = bands(claim)
    groups = _group(claim, taken)
    if within is None or not groups:
        return unjudged(claim, Outcome.UNTESTED, *wording.untested(claim))
    if not is_fit(claim):
        return unjudged(claim, Outcome.INCONCLUSIVE, *wording.unfit(claim, within))
    if missing := [name for name in rule.over if name not in groups]:
        return unjudged(claim, Outcome.UNTESTED, *wording.missing(missing))
    counted = [one for group in groups.values() for one in group]
    if rule.over:
        ruling = _over_cases(within, groups, rule.needs)
    else:
        ruling = _over_grid(claim, within, counted, rule.needs)
    return finish(claim, ruling, counted)


def _group(claim: Claim, taken: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    """Measurements the rule looks at, by the name that ``over`` uses and in its order."""
    over = claim.rule.over if claim.rule else ()
    groups: dict[str, list[Measurement]] = {name: [] for name in over}
    for one in taken:
        name = name_of(one.case)
        if one.metric == metric_of(claim) and selects(claim, one.case) and (not over or name in over):
            groups.setdefault(name, []).append(one)
    return {name: group for name, group in groups.items() if group}


def _over_cases(within: Bands, groups: Mapping[str, Sequence[Measurement]], needs: str) -> Ruling:
    """Each name of ``over`` is one case."""
    cases = {name: interval_of(group) for name, group in groups.items()}
    whole = _spanning(list(cases.values()), needs)
    if needs == "median":
        outcome = place(whole, within)
    else:
        outcomes = [place(interval, within) for interval in cases.values()]
        outcome = combine(outcomes, needs, partly_tells=within.tells)
    more = _settle(cases.values(), within) if outcome is Outcome.INCONCLUSIVE else None
    return Ruling(outcome, whole, *wording.over(within, cases, outcome, more), cases)


def _over_grid(claim: Claim, within: Bands, taken: Sequence[Measurement], needs: str) -> Ruling:
    """All selected cases: one case is judged by itself; of a grid, ``up-to`` is reached somewhere, else all count."""
    intervals = [interval_of(group) for group in _by_case(taken)]
    needs = "any" if claim.bound == "up-to" and not (claim.rule and claim.rule.holds) else needs
    if len(intervals) == 1:
        whole = intervals[0]
        outcome = place(whole, within)
    elif needs == "median":
        whole = _spanning(intervals, needs)
        outcome = place(whole, within)
    else:
        whole = max(intervals, key=lambda i: i.value) if needs == "any" else _spanning(intervals, needs)
        outcomes = [place(interval, within) for interval in intervals]
        outcome = combine(outcomes, needs, partly_tells=within.tells)
    more = _settle(intervals, within) if outcome is Outcome.INCONCLUSIVE else None
    median = _spanning(intervals, "median") if len(intervals) > 1 else None
    return Ruling(outcome, whole, *wording.grid(claim, within, whole, outcome, more, median), {})


def _spanning(intervals: Sequence[Interval], needs: str) -> Interval:
    """One interval for many: their medians, or from the least to the greatest with the median as centre."""

    def middle(values: list[float]) -> float:
        ordered = sorted(values)
        half = len(ordered) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    pick_low, pick_high = (middle, middle) if needs == "median" else (min, max)
    return Interval(
        low=pick_low([i.low for i in intervals]),
        value=middle([i.value for i in intervals]),
        high=pick_high([i.high for i in intervals]),
        n=sum(i.n for i in intervals),
        unit=intervals[0].unit,
    )


def _settle(intervals: Iterable[Interval], within: Bands) -> int | None:
    """Most samples any open interval needs to leave the border it lies across; None where no number would do."""
    needed = []
    for interval in intervals:
        borders = [b for b in (*within.holds, *within.partly) if interval.low <= b <= interval.high]
        if place(interval, within) is Outcome.INCONCLUSIVE:
            nearest = min(borders, key=lambda b: abs(b - interval.value))
            needed.append(more_runs(interval.low, interval.value, interval.high, nearest, interval.n))
    known = [count for count in needed if count is not None]
    return max(known) if known and len(known) == len(needed) else None


def _by_check(claim: Claim, taken: Sequence[Measurement], checks: CHECKS) -> Verdict:
    rule = claim.rule or ClaimRule()
    if rule.check not in checks:
        return unjudged(claim, Outcome.UNTESTED, *wording.no_check(rule.check))
    counted = [
        one for one in taken if (not rule.metric or one.metric == rule.metric) and selects(claim, one.case)
    ]
    if not counted:
        return unjudged(claim, Outcome.UNTESTED, *wording.untested(claim))
    answer, reason, reason_zh = checks[rule.check](claim, counted)
    if isinstance(answer, Outcome):
        outcome = answer
    else:
        outcome = {True: Outcome.HOLDS, False: Outcome.CONTRADICTED, None: Outcome.INCONCLUSIVE}[answer]
    return finish(claim, Ruling(outcome, None, reason, reason_zh, {}), counted, check=rule.check)


def finish(claim: Claim, ruling: Ruling, counted: Sequence[Measurement], *, check: str = "") -> Verdict:
    """Make the verdict, after the two limits on contradiction: scale and sessions."""
    level = min((one.level for one in counted), key=LEVELS.index)
    outcome, reason, reason_zh = ruling.outcome, ruling.reason, ruling.reason_zh
    moved = max(
        (float(one.run_facts.get("drift", 1)) for one in counted if one.metric != PAIRED), default=1.0
    )
    if moved > MAX_DRIFT and outcome is not Outcome.INCONCLUSIVE:
        outcome = Outcome.INCONCLUSIVE
        reason, reason_zh = wording.drifted(moved, reason, reason_zh)
    slowed = {str(cause) for one in counted for cause in one.run_facts.get("throttled", ())}
    if slowed:
        reason, reason_zh = wording.throttled(sorted(slowed), reason, reason_zh)
    if outcome is Outcome.CONTRADICTED:
        rule = claim.rule or ClaimRule()
        sessions = {one.at for one in counted if "clock" in one.run_facts}
        if level is Level.PROXY and not rule.any_scale:
            outcome = Outcome.NOT_COMPARABLE
            reason, reason_zh = wording.other_scale(claim, reason, reason_zh)
        elif sessions and len(sessions) < MIN_SESSIONS:
            outcome = Outcome.INCONCLUSIVE
            reason, reason_zh = wording.one_session(reason, reason_zh)
    return Verdict(
        claim=claim.id,
        verdict=outcome,
        level=level,
        source=stated(claim),
        measured=ruling.measured,
        reason=reason,
        reason_zh=reason_zh,
        cases=ruling.cases,
        at=max(one.at for one in counted),
        digests={"check": check} if check else {},
    )


def unjudged(claim: Claim, outcome: Outcome, reason: str, reason_zh: str) -> Verdict:
    """A verdict that rests on no number: untested, blocked, not comparable."""
    return Verdict(claim=claim.id, verdict=outcome, source=stated(claim), reason=reason, reason_zh=reason_zh)


def stated(claim: Claim) -> Stated:
    """The source's figure as a verdict repeats it."""
    return Stated(low=claim.low, high=claim.high, unit=claim.unit, bound=claim.bound)
