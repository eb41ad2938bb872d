"""The engine beside queueing theory: gates that need no measurement.

One request at a time, a step for the whole prompt, time in proportion to its tokens: the engine is then a single server
whose service times we choose, and its mean latencies are known in closed form. Sources: M/M/1, and the
Pollaczek-Khinchine formula for M/G/1. With tokens in unit steps and interruptions, no policy has a smaller mean than
shortest remaining time first, on any common path of arrivals (Schrage 1968).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kb.repro.sim import arrivals, compiled, loop, policies
from kb.repro.sim.invariants import require
from kb.repro.sim.work import Engine, Floats, Requests, Run, StepCost

TOKENS = 4000
"""Mean tokens of a service: how finely its law is cut."""
REQUESTS, PATHS, PATH_REQUESTS = 800_000, 20, 200
MEAN_BAR, TAIL_BAR, WAIT_BAR = 0.02, 0.05, 0.03
LAWS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda rng, n: rng.uniform(0, 2, n),
    "erlang-4": lambda rng, n: rng.gamma(4, 0.25, n),
    "hyperexponential": lambda rng, n: rng.exponential(1, n) * rng.choice([5 / 9, 5], n, p=[0.9, 0.1]),
}
"""Light-tailed service laws of mean 1."""


@dataclass(frozen=True)
class Gate:
    """One comparison with theory."""

    name: str
    simulated: float
    expected: float
    bar: float
    """Largest relative error."""
    at_least: bool = False
    """Whether more than expected is as good."""

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.simulated / self.expected - 1

    @property
    def holds(self) -> bool:
        """Whether the gate is passed."""
        return self.error >= -self.bar if self.at_least else abs(self.error) <= self.bar


def run(requests: Requests, engine: Engine, cost: StepCost) -> Run:
    """Simulate, compiled where numba is there, and hold the run to its own laws."""
    simulate = compiled.simulate if compiled.has_compiler() else loop.simulate
    return require(simulate(requests, engine, cost), requests, engine)


def single_server(services: Floats, rate: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Arrival, start of service and end of service of a first-come queue run by the engine, ``[n]`` s each.

    Args:
        services: Service times, mean near 1, ``[n]`` s; cut to whole tokens.
        rate: Poisson arrivals per second, below 1 / mean service.
        rng: Source of arrivals.
    """
    prompt = np.maximum(np.rint(services * TOKENS).astype(np.int64), 1)
    requests = Requests(arrivals.poisson(rng, rate, len(prompt)), prompt, np.ones_like(prompt))
    budget = int(prompt.max())
    engine = Engine(pages=budget + 1, page_tokens=1, token_budget=budget, max_sequences=1)
    done = run(requests, engine, StepCost(np.arange(budget + 1) / TOKENS))
    return done.arrival, done.finish - prompt / TOKENS, done.finish


def markov(seed: int, load: float = 0.8, count: int = REQUESTS) -> Iterator[Gate]:
    """M/M/1: mean response ``1 / (μ - λ)``, and its 99th percentile ``ln 100`` times that."""
    rng = np.random.default_rng(seed)
    arrived, _, ended = single_server(rng.exponential(1, count), load, rng)
    response = (ended - arrived)[count // 10 :]
    yield Gate(f"M/M/1 mean response, load {load}", float(response.mean()), 1 / (1 - load), MEAN_BAR)
    tail = float(np.quantile(response, 0.99))
    yield Gate(f"M/M/1 P99 of response, load {load}", tail, math.log(100) / (1 - load), TAIL_BAR)


def general(seed: int, load: float = 0.7, count: int = REQUESTS) -> Iterator[Gate]:
    """M/G/1: mean wait ``λ E[S²] / (2 (1 - ρ))``, with the moments of the services drawn."""
    for name, law in LAWS.items():
        rng = np.random.default_rng(seed)
        services = law(rng, count)
        services *= 1 / services.mean()
        arrived, begun, _ = single_server(services, load, rng)
        wait = (begun - arrived)[count // 10 :]
        expected = load * float((services**2).mean()) / (2 * (1 - load))
        yield Gate(f"M/G/1 mean wait, {name} services, load {load}", float(wait.mean()), expected, WAIT_BAR)


def shortest_first(seed: int, load: float = 0.9, paths: int = PATHS) -> Iterator[Gate]:
    """Mean response of each policy over that of SRPT, on each of many common paths: never below 1.

    Services are whole numbers of unit steps, so all policies finish the same work at the same moments, and no step
    holds two requests.
    """
    best = [_mean_on_path("srpt", seed + path, load) for path in range(paths)]
    for name in policies.names():
        if name == "srpt":
            continue
        ratios = [_mean_on_path(name, seed + path, load) / best[path] for path in range(paths)]
        yield Gate(f"{name} over SRPT, least of {paths} paths", min(ratios), 1.0, 1e-12, at_least=True)


def _mean_on_path(policy: str, seed: int, load: float) -> float:
    rng = np.random.default_rng(seed)
    units = rng.geometric(0.1, PATH_REQUESTS)
    requests = Requests(
        arrivals.poisson(rng, load / 10, PATH_REQUESTS), units, np.ones(PATH_REQUESTS, dtype=np.int64)
    )
    engine = Engine(
        pages=int(units.sum()) + PATH_REQUESTS,
        page_tokens=1,
        token_budget=1,
        max_sequences=PATH_REQUESTS,
        policy=policy,
    )
    done = run(requests, engine, StepCost(np.array([0.0, 1.0])))
    return float((done.finish - done.arrival).mean())


def gates(seed: int = 0) -> list[Gate]:
    """All gates of queueing theory."""
    return [*markov(seed), *general(seed), *shortest_first(seed)]
