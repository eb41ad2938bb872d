"""The latency model of speculative decoding, arxiv:2605.15051: why does its speed-up fade with load?

Backs     sd-latency/expected-tokens · closed-form · universal-curve · speedup-law · decay-with-load · c1r-below-one ·
          c2r-above-one · k-star-order · effective-coeffs · moe-r2-* · low-load-speedup-8b
Question  Tokens per pass are drawn and held against their formula (experts used per step: `kb repro moe-coverage`). A
          stepping engine under Poisson load gives C1 and C2, the curve 1/(1 - x), the speed-up by load and the load at
          which it is gone. Roofline curves say what six pooled coefficients can tell apart, what a term for expert
          coverage adds, and what acceptance a stated speed-up takes.
Shows not A real engine: verification is charged by a roofline here, and the fits of the paper's own sweeps are untested.
          Acceptance of a real pair on a small model: `kb repro real-drafting`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Figure, Level, Measurement, Record, Verdict
from kb.repro import _sd_figures
from kb.repro._sd_checks import CHECKS, CLOSE_FIT
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import judge as judge_one
from kb.repro.sim import sd_roofline
from kb.repro.sim.sd_law import DRAFTED, OUTPUT, PLAIN
from kb.repro.sim.sd_roofline import LLAMA_8B, QWEN3_8B, Pair, curve
from kb.repro.sim.stepper import expected_tokens, fit, mean_latency

CLAIMS = (
    "sd-latency/expected-tokens",
    "sd-latency/closed-form",
    "sd-latency/universal-curve",
    "sd-latency/speedup-law",
    "sd-latency/decay-with-load",
    "sd-latency/c1r-below-one",
    "sd-latency/c2r-above-one",
    "sd-latency/k-star-order",
    "sd-latency/effective-coeffs",
    "sd-latency/moe-r2-gpt-oss-20b",
    "sd-latency/moe-r2-qwen3-30b-a3b",
    "sd-latency/moe-r2-qwen3-235b-a22b",
    "sd-latency/low-load-speedup-8b",
    "sd-latency/context-law",
)
LEVELS = ("derived", "simulated")
NEEDS = ()
LOADS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75)
DRAFTED_LOADS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.5, 0.55)
"""The drafted engine saturates at 0.64 of these."""
REQUESTS = 6000
RUNS, RUNS_NEAR_SATURATION, NEAR = 4, 16, 0.65
"""Runs per load; more from this load of the engine itself on, where one run scatters by 4 % and more."""
RATES, LENGTHS = (0.5, 0.7, 0.8, 0.9, 0.95), range(1, 11)
ROUTINGS = {"even": 0.0, "uneven": 0.6}
"""How fast the popularity of experts falls with their rank."""


# Parameters


class Draws(Record):
    """Acceptance drawn at random."""

    part: Literal["tokens"] = "tokens"
    name: str
    rate: float
    """Acceptance rate."""
    size: float
    """Draft length."""
    count: int
    """Draws."""


class Load(Record):
    """One engine under one load."""

    part: Literal["load"] = "load"
    name: Literal["plain", "drafted"]
    load: float
    """Arrivals times C2 of the plain engine, r."""
    output: int = OUTPUT
    requests: int = REQUESTS


class Ratios(Record):
    """Cost ratios of speculation from a roofline of Qwen3-8B on an A100."""

    part: Literal["ratios"] = "ratios"
    name: str
    acceptance_rate: float
    draft_length: int


class Pooled(Record):
    """Six coefficients fitted to the roofline curves of all acceptance rates and draft lengths."""

    part: Literal["pooled"] = "pooled"


class LowLoad(Record):
    """Speed-up without load, 1/C1R, by roofline of Llama-3.1-8B with a drafter of 0.4e9 parameters."""

    part: Literal["low-load"] = "low-load"
    acceptance_rate: float
    draft_length: int


class Mixture(Record):
    """Fits of the dense form and of the one with expert coverage to one mixture's curve."""

    part: Literal["mixture"] = "mixture"
    model: str
    pattern: str
    """Routing: ``even``, or ``uneven`` with some experts more popular than others."""
    form: Literal["dense", "coverage"] = "dense"


def cases(scope: Scope) -> Iterator[Record]:
    """Draws, loads of both engines, and the grid of acceptance rates and draft lengths."""
    del scope
    for rate in (0.5, 0.8, 0.95):
        for length in (1, 3, 5, 10):
            yield Draws(name=f"{rate}-{length}", rate=rate, size=length, count=200_000)
    for load in LOADS:
        yield Load(name="plain", load=load)
    for load in DRAFTED_LOADS:
        yield Load(name="drafted", load=load)
    for rate in RATES:
        for length in LENGTHS:
            yield Ratios(name=f"{rate}-{length}", acceptance_rate=rate, draft_length=length)
            yield LowLoad(acceptance_rate=rate, draft_length=length)
    yield Pooled()
    for model in sd_roofline.MIXTURES:
        for routing in ROUTINGS:
            yield Mixture(model=model, pattern=routing)


# What is computed


def drawn_tokens(rng: np.random.Generator, case: Draws) -> float:
    """Mean tokens per pass of rejection sampling token by token."""
    accepted = rng.random((case.count, int(case.size))) < case.rate
    return float(np.cumprod(accepted, axis=1).sum(axis=1).mean() + 1)


def cost_ratios(acceptance_rate: float, draft_length: int, pair: Pair = QWEN3_8B) -> tuple[float, float]:
    """C1 and C2 with speculation over those without."""
    (c1, c2), (c1_plain, c2_plain) = fit_curve(acceptance_rate, draft_length, pair), fit_curve(0, 0, pair)
    return c1 / c1_plain, c2 / c2_plain


def fit_curve(acceptance_rate: float, draft_length: int, pair: Pair) -> tuple[float, float]:
    """C1 and C2, s, fitted to the loads of one configuration."""
    one = curve(acceptance_rate, draft_length, pair)
    c1, c2, _ = fit(one.rate, one.latency)
    return c1, c2


# The functions the harness calls


def check(case: Record, bench: Bench) -> None:
    """At next to no load a request takes C1: the engine and its closed form agree.

    Raises:
        WrongResult: They do not.
    """
    if not isinstance(case, Load) or case.load != LOADS[0]:
        return
    engine = PLAIN if case.name == "plain" else DRAFTED
    alone = mean_latency(bench.rng(case, 9), engine, 0.001, case.output, 200)
    if not abs(alone / engine.coefficients(case.output)[0] - 1) < CLOSE_FIT:
        raise WrongResult(
            f"sd-latency: {case.name} alone takes {alone:.3f} s, not {engine.coefficients(case.output)[0]:.3f} s",
            cause="the stepping engine and its closed form disagree",
            remedy="read kb/repro/sim/stepper.py; nothing was stored",
        )


def measure(case: Record, bench: Bench) -> Iterator[Measurement]:
    """Draw, simulate or compute one point."""
    if isinstance(case, Draws):
        drawn = drawn_tokens(bench.rng(case), case)
        yield bench.record("tokens_per_pass", case, [drawn], expected=expected_tokens(case.rate, case.size))
    elif isinstance(case, Load):
        engine = PLAIN if case.name == "plain" else DRAFTED
        rate = case.load / PLAIN.coefficients(case.output)[1]
        c1, c2 = engine.coefficients(case.output)
        count = RUNS if rate * c2 < NEAR else RUNS_NEAR_SATURATION
        rngs = (bench.rng(case, number) for number in range(count))
        runs = [mean_latency(rng, engine, rate, case.output, case.requests) for rng in rngs]
        yield bench.record("e2e_latency", case, runs, expected=c1 / (1 - rate * c2), level=Level.SIMULATED)
    elif isinstance(case, Ratios):
        c1_ratio, c2_ratio = cost_ratios(case.acceptance_rate, case.draft_length)
        yield bench.record("cost_ratio", case.model_copy(update={"name": f"c1-{case.name}"}), [c1_ratio])
        yield bench.record("cost_ratio", case.model_copy(update={"name": f"c2-{case.name}"}), [c2_ratio])
    elif isinstance(case, LowLoad):
        c1_ratio, _ = cost_ratios(case.acceptance_rate, case.draft_length, LLAMA_8B)
        yield bench.record("speed_up", case, [1 / c1_ratio])
    elif isinstance(case, Pooled):
        pooled = sd_roofline.fit_pooled([curve(rate, length) for rate in RATES for length in LENGTHS])
        share = QWEN3_8B.drafter / QWEN3_8B.verifier
        yield bench.record("fit_r2", case, [pooled.r2])
        yield bench.record("factor", case, [pooled.c2[2] / pooled.c2[1] / share])
        yield bench.record("count", case, [pooled.rank])
    elif isinstance(case, Mixture):
        one = sd_roofline.mixture_curve(case.model, bench.rng(case), ROUTINGS[case.pattern])
        dense, wide = sd_roofline.mixture_fits(case.model, one)
        yield bench.record("fit_r2", case, [dense], level=Level.SIMULATED)
        covered = case.model_copy(update={"form": "coverage"})
        yield bench.record("fit_r2", covered, [wide], level=Level.SIMULATED)


def judge(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
    """Each claim by its named check."""
    return [judge_one(claim, taken, CHECKS) for claim in claims]


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Speed-up by load, and the cost that grows with load by draft length."""
    return _sd_figures.draw(taken)
