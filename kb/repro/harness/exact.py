"""The exact tier: reproductions that are arithmetic, exact counts or a stated formula drawn many times.

A module lists its `Quantity`s; the functions of the contract follow from the list:

    cases, check, measure = exact(QUANTITIES)
    judge = by_claim()

Each quantity is computed from named inputs, so that a test can change an input and see the verdict follow. Where there
is a second way to the same number, ``by_hand`` gives it, and ``check`` refuses to measure if the two disagree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.errors import WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Record, Verdict
from kb.repro.harness.bench import Bench
from kb.repro.harness.judge import CHECKS, Answer, judge, unjudged
from kb.repro.harness.rules import metric_of

TOLERANCE = 1e-3
"""Largest relative difference between a quantity and its second computation."""


class Point(Record):
    """Parameter point of a quantity."""

    claim: str
    """Claim it is held against."""
    metric: str
    """Metric of that claim's rule."""
    pattern: str
    """Tells several computations for one claim apart; the rule's ``over`` names it."""
    inputs: dict[str, float]
    """Every number that went in."""


@dataclass(frozen=True)
class Quantity:
    """One computed number, or a few draws of one."""

    claim: str
    compute: Callable[..., float | Sequence[float]]
    """Takes the inputs by name, and ``rng`` where it draws."""
    inputs: Mapping[str, float]
    pattern: str = ""
    by_hand: Callable[..., float] | None = None
    """The slow, obvious way; takes the same inputs."""
    insensitive: str = ""
    """Why the verdict cannot follow the stated number, where it cannot."""


Cases = Callable[[Mapping[str, Claim]], Iterator[Point]]
Check = Callable[[Point, Bench], None]
Measure = Callable[[Point, Bench], Iterator[Measurement]]
Named = Callable[[Claim, Sequence[Measurement]], Answer]
"""A named check of a rule."""


def exact(quantities: Sequence[Quantity]) -> tuple[Cases, Check, Measure]:
    """Make ``cases``, ``check`` and ``measure`` of a module from its quantities."""
    known = {(quantity.claim, quantity.pattern): quantity for quantity in quantities}

    def cases(claims: Mapping[str, Claim]) -> Iterator[Point]:
        for quantity in quantities:
            yield Point(
                claim=quantity.claim,
                metric=metric_of(claims[quantity.claim]),
                pattern=quantity.pattern,
                inputs=dict(quantity.inputs),
            )

    def check(case: Point, bench: Bench) -> None:
        quantity = known[case.claim, case.pattern]
        if quantity.by_hand is None:
            return
        fast, slow = samples(quantity, case, bench)[0], quantity.by_hand(**case.inputs)
        if not abs(fast - slow) <= TOLERANCE * max(abs(slow), 1e-300):
            raise WrongResult(
                f"{case.claim} {case.pattern}: {fast:g} is not {slow:g}",
                cause="the formula disagrees with the count it stands for",
                remedy="mend the formula or the count; nothing was stored",
            )

    def measure(case: Point, bench: Bench) -> Iterator[Measurement]:
        quantity = known[case.claim, case.pattern]
        expected = quantity.by_hand(**case.inputs) if quantity.by_hand else None
        yield bench.record(case.metric, case, samples(quantity, case, bench), expected=expected)

    return cases, check, measure


def samples(quantity: Quantity, case: Point, bench: Bench) -> list[float]:
    """Compute a quantity at a point; several numbers where it draws."""
    drawn = {"rng": bench.rng(case)} if "rng" in inspect.signature(quantity.compute).parameters else {}
    value = quantity.compute(**case.inputs, **drawn)
    return [float(value)] if isinstance(value, (int, float)) else [float(one) for one in value]


def ratio(new: float, old: float) -> float:
    """How many times ``old`` goes into ``new``."""
    return new / old


def gain(new: float, old: float) -> float:
    """Relative gain: ``new / old - 1``."""
    return new / old - 1


def cut(new: float, old: float) -> float:
    """Relative reduction: ``1 - new / old``."""
    return 1 - new / old


def planned(test: str, test_zh: str) -> Callable[[Sequence[Claim], Sequence[Measurement]], list[Verdict]]:
    """Make ``judge`` for claims that no number answers: untested, naming the test that would.

    Args:
        test: What would test them, in English.
        test_zh: The same in Chinese.
    """
    reason, reason_zh = f"it states no measured number; planned: {test}", f"没有可测的数字；计划：{test_zh}"

    def judge_all(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
        del taken
        return [unjudged(claim, Outcome.UNTESTED, reason, reason_zh) for claim in claims]

    return judge_all


def no_figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """A ``figure`` for modules with nothing to draw."""
    del taken
    return ()


def by_claim(
    checks: CHECKS | None = None,
) -> Callable[[Sequence[Claim], Sequence[Measurement]], list[Verdict]]:
    """Make ``judge``: each claim by its rule over its own quantities; ``checks`` adds to `CHECKED`."""

    def judge_all(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
        known = {**CHECKED, **(checks or {})}
        verdicts = []
        for claim in claims:
            mine = [one for one in taken if one.case.get("claim") == claim.id]
            verdicts.append(judge(claim, mine, known))
        return verdicts

    return judge_all


def bounded(slack: float, what: str, what_zh: str) -> Named:
    """Make a check for a stated figure that counting bounds from above.

    Above the bound it is contradicted. Within it nothing follows: only a run can tell, so the verdict stays open.

    Args:
        slack: Share of the bound granted to rounding.
        what: What the bound is, in English.
        what_zh: The same in Chinese.
    """

    def check(claim: Claim, taken: Sequence[Measurement]) -> Answer:
        bound = max(sample for one in taken for sample in one.samples)
        stated = claim.low if claim.low is not None else 0.0
        if stated > bound * (1 + slack):
            return (
                False,
                f"the stated {stated:.4g} exceeds {what}, {bound:.4g} {taken[0].unit}",
                f"所述 {stated:.4g} 超过{what_zh} {bound:.4g}（{taken[0].unit}）",
            )
        return (
            None,
            f"the stated {stated:.4g} is within {what}, {bound:.4g} {taken[0].unit}: possible, but only a run can tell",
            f"所述 {stated:.4g} 未超过{what_zh} {bound:.4g}（{taken[0].unit}）：有可能，须实际运行才能判定",
        )

    return check


def explained(what: str, what_zh: str) -> Named:
    """Make a check that sets a stated figure beside what one cause alone would give; it never decides.

    Args:
        what: What the cause gives, in English.
        what_zh: The same in Chinese.
    """

    def check(claim: Claim, taken: Sequence[Measurement]) -> Answer:
        ends = sorted(sample for one in taken for sample in one.samples)
        shown = _span(ends[0], ends[-1])
        stated = _span(claim.low or 0.0, claim.high or 0.0)
        return (
            None,
            f"{what} gives {shown}, the source states {stated}: the difference needs another cause, which only a run can show",
            f"{what_zh}得 {shown}，来源称 {stated}：差额须由其他原因解释，只有实际运行才能判定",
        )

    return check


def _span(low: float, high: float) -> str:
    return "–".join(f"{end:.4g}" for end in dict.fromkeys((low, high)))


def printed_tolerance(stated: float) -> float:
    """How far a figure may lie from its recomputation: half a unit of its last printed digit, and at least 2 %.

    Args:
        stated: The figure as the registry holds it.
    """
    digits = f"{stated:.10g}"
    decimals = len(digits.partition(".")[2])
    return max(0.5 * 10.0**-decimals, 0.02 * abs(stated))


def own_figures(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Recompute a figure from the source's other figures.

    Disagreement contradicts the source by itself. Agreement checks its arithmetic and says nothing about the effect, so
    the claim stays untested.
    """
    ends = sorted(sample for one in taken for sample in one.samples)
    low, high = claim.low or 0.0, claim.high or 0.0
    shown, stated = _span(ends[0], ends[-1]), _span(low, high)
    if low - printed_tolerance(low) <= ends[0] and ends[-1] <= high + printed_tolerance(high):
        return (
            Outcome.UNTESTED,
            f"the source's own figures give {shown}, as stated; that checks its arithmetic, not the effect",
            f"来源自己的数字得 {shown}，与所述一致；这只核对了算术，没有检验效果",
        )
    return (
        False,
        f"the source's own figures give {shown}, not {stated}",
        f"来源自己的数字得 {shown}，而不是 {stated}",
    )


CHECKED: dict[str, Named] = {"own-figures": own_figures}
"""Checks every exact module knows; a module adds its own."""
