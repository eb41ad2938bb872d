"""Toolery: are its scenarios as many as stated, and does a scorer without a judge repeat itself?

Backs     toolery/scenario-count · tier-weights · deterministic
Question  The tiers add up to the total. A scorer of tool calls with weights 1 to 4 is run on scripted models with a known
          error rate: the same answers give the same score, and the rate is recovered.
Shows not That a model under test is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.model import Claim, Measurement
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = ("toolery/scenario-count", "toolery/tier-weights", "toolery/deterministic")
LEVELS = ("derived",)
NEEDS = ()
TIERS = {"easy": 40, "medium": 45, "hard": 34, "very hard": 24}
"""Scenarios per tier, counted in release 0.4.1."""
CLOSE = 0.05


def total(easy: float, medium: float, hard: float, very_hard: float) -> float:
    """All scenarios."""
    return easy + medium + hard + very_hard


def score(passed: np.ndarray, tier: np.ndarray) -> float:
    """Weighted share of passed scenarios; tiers 0–3 weigh 1–4."""
    weights = tier + 1
    return float((passed * weights).sum() / weights.sum())


def decayed(scores: Sequence[float], ages: Sequence[float], half_life: float) -> float:
    """Mean of runs, each halved in weight every ``half_life`` days."""
    weights = [2.0 ** (-age / half_life) for age in ages]
    return float(sum(s * w for s, w in zip(scores, weights, strict=True)) / sum(weights))


def repeat_difference(rng: np.random.Generator, error_rate: float, trials: float) -> float:
    """Difference between two scorings of the same answers of a scripted model."""
    tier = np.repeat(np.arange(4), list(TIERS.values()))
    passed = rng.random((int(trials), tier.size)) >= error_rate
    once = [score(row, tier) for row in passed]
    return float(sum(abs(a - score(row, tier)) for a, row in zip(once, passed, strict=True)))


def recovered_rate(rng: np.random.Generator, error_rate: float, trials: float, half_life: float) -> float:
    """Difference between the planted pass rate and the decayed mean score of many trials."""
    tier = np.repeat(np.arange(4), list(TIERS.values()))
    runs = [score(rng.random(tier.size) >= error_rate, tier) for _ in range(int(trials))]
    return abs(decayed(runs, range(len(runs)), half_life) - (1 - error_rate))


def check_repeat(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The same answers must give the same score, bit for bit."""
    del claim
    most = max(sample for one in taken for sample in one.samples)
    return (
        most == 0,
        f"two scorings of the same answers differ by {most:g}; the scorer is deterministic, a model need not be",
        f"对同一批回答两次评分相差 {most:g}；评分器是确定的，模型未必",
    )


def check_weights(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """With the stated weights a planted pass rate comes back; documentation and code disagree on more."""
    del claim
    most = max(sample for one in taken for sample in one.samples)
    return (
        None if most <= CLOSE else False,
        f"weights 1–4 and a half-life of 14 days recover a planted rate to {most:.3f}; further weights are documented only",
        f"权重 1–4、半衰期 14 天可恢复植入的通过率（误差 {most:.3f}）；文档另列的权重在代码中不存在",
    )


QUANTITIES = (
    Quantity(
        "toolery/scenario-count", total, {name.replace(" ", "_"): count for name, count in TIERS.items()}
    ),
    Quantity(
        "toolery/tier-weights",
        recovered_rate,
        {"error_rate": 0.3, "trials": 200, "half_life": 14},
        insensitive="the claim states weights, not a number",
    ),
    Quantity(
        "toolery/deterministic",
        repeat_difference,
        {"error_rate": 0.3, "trials": 20},
        insensitive="the claim states no number",
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"repeats": check_repeat, "weights": check_weights})
figure = no_figure
