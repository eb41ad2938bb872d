"""Timings beside exact quantities: a module that counts most things and puts a clock to a few.

    cases, check, measure = exact_and_timed(QUANTITIES, TIMINGS)

A clock on this machine is a proxy for the source's: such a measurement has the level `Level.PROXY`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.model import Claim, Level, Measurement, Verdict
from kb.repro.harness.bench import Bench
from kb.repro.harness.exact import CHECKED, Cases, Check, Measure, Named, Point, Quantity, exact
from kb.repro.harness.judge import judge
from kb.repro.harness.timing import Candidate

CLOCKED = "duration"


@dataclass(frozen=True)
class Timing:
    """Candidates that are timed in turn at one point; the first is the baseline."""

    claim: str
    candidates: Callable[[Mapping[str, float]], Mapping[str, Candidate]]
    """From the inputs."""
    inputs: Mapping[str, float]
    pattern: str = ""


def exact_and_timed(
    quantities: Sequence[Quantity], timings: Sequence[Timing]
) -> tuple[Cases, Check, Measure]:
    """Make ``cases``, ``check`` and ``measure`` of a module from what it counts and what it times."""
    count_cases, count_check, count_measure = exact(quantities)
    clocked = {(timing.claim, timing.pattern): timing for timing in timings}

    def cases(claims: Mapping[str, Claim]) -> Iterator[Point]:
        yield from count_cases(claims)
        for timing in timings:
            yield Point(
                claim=timing.claim, metric=CLOCKED, pattern=timing.pattern, inputs=dict(timing.inputs)
            )

    def check(case: Point, bench: Bench) -> None:
        if (case.claim, case.pattern) not in clocked:
            count_check(case, bench)

    def measure(case: Point, bench: Bench) -> Iterator[Measurement]:
        if timing := clocked.get((case.claim, case.pattern)):
            yield from bench.alternate(case, timing.candidates(case.inputs), level=Level.PROXY)
        else:
            yield from count_measure(case, bench)

    return cases, check, measure


def durations(taken: Sequence[Measurement], name: str) -> list[float]:
    """Samples of one candidate's ``duration``, s."""
    return [
        sample
        for one in taken
        if one.metric == CLOCKED and one.case.get("timed") == name
        for sample in one.samples
    ]


def sharing(
    checks: Mapping[str, Named], shared: Mapping[str, str]
) -> Callable[[Sequence[Claim], Sequence[Measurement]], list[Verdict]]:
    """Make ``judge``: each claim by its rule over its own records, and over the clock's of the claim it shares with.

    Args:
        checks: Adds to `CHECKED`.
        shared: Claim → the claim whose `Timing` speaks to it too.
    """

    def judge_all(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
        verdicts = []
        for claim in claims:
            mine = [one for one in taken if one.case.get("claim") == claim.id]
            if other := shared.get(claim.id):
                mine += [one for one in taken if one.case.get("claim") == other and "timed" in one.case]
            verdicts.append(judge(claim, mine, {**CHECKED, **checks}))
        return verdicts

    return judge_all
