"""UniBoost, arxiv:2606.18431, and gamma-Boost, arxiv:2404.08826: one server, many sizes, first come beside SRPT.

Backs     uniboost/memguard-revision-count · fcfs-plus-crossing-work-bound · gamma-boost/tail-constant-vs-fcfs
Question  Priorities change at bin edges k·2^i: counted token by token. In an M/G/1 queue with known sizes, how far does
          boosting lower the tail against first come, and does a request ever wait longer than its first-come latency
          plus the work that crossed it?
Shows not An engine: batching, KV pressure and swapping need the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kb.model import Claim, Measurement
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = (
    "uniboost/memguard-revision-count",
    "uniboost/fcfs-plus-crossing-work-bound",
    "gamma-boost/tail-constant-vs-fcfs",
)
LEVELS = ("derived",)
NEEDS = ()
SLACK = 1e-9


def revisions(tokens: float, base: float) -> float:
    """Most priority revisions of a request: one per bin edge it crosses, and its first priority."""
    return 1 + math.floor(math.log2(tokens / base))


def revisions_by_counting(tokens: float, base: float) -> float:
    """The same, token by token."""
    count, current = 0, None
    for attained in range(1, int(tokens) + 1):
        binned = base * 2 ** math.floor(math.log2(max(attained, base) / base))
        if binned != current:
            count, current = count + 1, binned
    return float(count)


def serve(arrivals: np.ndarray, sizes: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Departures of one preemptive server that always serves the waiting request of least key.

    Args:
        arrivals: Ascending, ``[n]`` s.
        sizes: Work of each, ``[n]`` s.
        keys: Fixed priority of each, least first.

    Returns:
        Departure times, ``[n]`` s.
    """
    import heapq

    left, done, now, following = sizes.copy(), np.zeros(len(sizes)), 0.0, 0
    waiting: list[tuple[float, int]] = []
    while following < len(sizes) or waiting:
        if not waiting:
            now = max(now, float(arrivals[following]))
        while following < len(sizes) and arrivals[following] <= now:
            heapq.heappush(waiting, (float(keys[following]), following))
            following += 1
        _, chosen = waiting[0]
        until = float(arrivals[following]) if following < len(sizes) else math.inf
        if now + left[chosen] <= until:
            now += float(left[chosen])
            done[chosen] = now
            heapq.heappop(waiting)
        else:
            left[chosen] -= until - now
            now = until
    return done


def serve_in_order(arrivals: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Departures of first come, first served: Lindley's recursion in closed form, ``[n]`` s."""
    work = np.cumsum(sizes)
    departures: np.ndarray = work + np.maximum.accumulate(arrivals - (work - sizes))
    return departures


LAWS = ("exponential", "gamma-half", "two-point")
"""Size laws of mean 1: squared coefficient of variation 1, 2 and 6.8."""


def transform(law: str, gamma: float) -> float:
    """``E[e^(γ S)]``, infinite where it does not exist."""
    if law == "exponential":
        return 1 / (1 - gamma) if gamma < 1 else math.inf
    if law == "gamma-half":
        return float((1 - 2 * gamma) ** -0.5) if gamma < 0.5 else math.inf  # noqa: PLR2004  its pole
    return 0.95 * math.exp(0.4 * gamma) + 0.05 * math.exp(12.4 * gamma)


def decay_rate(law: str, load: float) -> float:
    """γ, the positive root of ``γ = λ·(E[e^(γ S)] - 1)``, by bisection."""
    low, high = 1e-6, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if load * (transform(law, middle) - 1) < middle else (low, middle)
    return low


def queue(rng: np.random.Generator, law: str, load: float, requests: int) -> tuple[np.ndarray, np.ndarray]:
    """Poisson arrivals at rate ``load`` and sizes of mean 1."""
    arrivals = np.cumsum(rng.exponential(1 / load, requests))
    if law == "exponential":
        return arrivals, rng.exponential(1, requests)
    if law == "gamma-half":
        return arrivals, rng.gamma(0.5, 2, requests)
    return arrivals, np.where(rng.random(requests) < 0.95, 0.4, 12.4)  # noqa: PLR2004  the two points


def boost(sizes: np.ndarray, gamma: float) -> np.ndarray:
    """``b(s) = ln(1 / (1 - e^(-γ s))) / γ``: how much earlier a request of known size counts as arrived."""
    return -np.log1p(-np.exp(-gamma * sizes)) / gamma


def tail_cut(rng: np.random.Generator, law: float, load: float, requests: float, runs: float) -> list[float]:
    """Relative reduction of the tail constant, read at the 95th percentile of first come, one per run.

    The tail is ``C·e^(-γ t)`` under both, so the ratio of constants is the ratio of the shares above one threshold.

    Args:
        rng: Source of draws.
        law: Place of the size law in `LAWS`.
        load: Arrivals times mean size, below 1.
        requests: Per run.
        runs: Independent runs.
    """
    name, found = LAWS[int(law)], []
    gamma = decay_rate(name, load)
    for _ in range(int(runs)):
        arrivals, sizes = queue(rng, name, load, int(requests))
        first_come = serve_in_order(arrivals, sizes) - arrivals
        boosted = serve(arrivals, sizes, arrivals - boost(sizes, gamma)) - arrivals
        limit = np.quantile(first_come, 0.95)
        found.append(1 - float((boosted > limit).mean() / (first_come > limit).mean()))
    return found


def worst_excess(rng: np.random.Generator, load: float, requests: float) -> float:
    """Largest excess of a boosted latency over first-come latency plus crossing work; never above 0.

    Crossing work is the size of all later arrivals whose boosted arrival lies before the request's own.
    """
    arrivals, sizes = queue(rng, "exponential", load, int(requests))
    keys = arrivals - boost(sizes, decay_rate("exponential", load))
    first_come = serve(arrivals, sizes, arrivals) - arrivals
    boosted = serve(arrivals, sizes, keys) - arrivals
    worst = -math.inf
    for one in range(len(sizes)):
        later = slice(one + 1, None)
        crossing = float(sizes[later][keys[later] < keys[one]].sum())
        worst = max(worst, float(boosted[one] - first_come[one] - crossing))
    return worst


def check_bound(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """No request may exceed the bound by more than rounding."""
    del claim
    worst = max(sample for one in taken for sample in one.samples)
    return (
        worst <= SLACK,
        f"over all requests, latency exceeds first-come latency plus crossing work by at most {worst:.1e} s",
        f"所有请求中，延迟超出先来先服务延迟与越位工作量之和最多 {worst:.1e} s",
    )


QUANTITIES = (
    Quantity(
        "uniboost/memguard-revision-count",
        revisions,
        {"tokens": 10_000, "base": 256},
        by_hand=revisions_by_counting,
    ),
    Quantity(
        "uniboost/fcfs-plus-crossing-work-bound",
        worst_excess,
        {"load": 0.9, "requests": 4000},
        insensitive="the claim states an inequality, not a number",
    ),
    *(
        Quantity(
            "gamma-boost/tail-constant-vs-fcfs",
            tail_cut,
            {"law": place, "load": 0.7, "requests": requests, "runs": runs},
            pattern=law,
        )
        # variability decides: the tail of the two-point law is noisiest and takes the most draws
        for place, (law, requests, runs) in enumerate(
            zip(LAWS, (20_000, 20_000, 40_000), (3, 3, 6), strict=True)
        )
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"never-above": check_bound})
figure = no_figure
