"""An engine that steps: continuous batching with a step time linear in the batch, open-loop arrivals.

Each step serves every request in flight once: ``t = a + b·B`` seconds for a batch of B, plus ``prefill`` for each request
that joins in it. A request leaves after its output tokens; a step yields one token, or with speculation the accepted
draft and one more. Little's law makes the mean latency ``C1 / (1 - λ·C2)`` with ``C1 = steps·(a + b) + prefill`` and
``C2 = steps·b + prefill``. This is the smallest engine in which load slows a request; it has no memory limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Engine:
    """Times of one engine, s."""

    fixed: float
    """a: a step with nothing in it."""
    each: float
    """b: what one more request adds to a step."""
    prefill: float
    """What one joining request adds to the step it joins."""
    draft_length: int = 0
    """Tokens drafted per step; 0 without speculation."""
    acceptance_rate: float = 0.0
    """Chance that a drafted token is accepted, given that those before it were."""

    @property
    def tokens_per_pass(self) -> float:
        """Expected tokens of a step: ``(1 - α^(k+1)) / (1 - α)``."""
        return expected_tokens(self.acceptance_rate, self.draft_length)

    def coefficients(self, output: int) -> tuple[float, float]:
        """C1 and C2 in closed form, s, for ``output`` tokens per request."""
        steps = self.expected_steps(output) + 0.5  # a request joins at the next step: half a step on average
        return steps * (self.fixed + self.each) + self.prefill, steps * self.each + self.prefill

    def expected_steps(self, output: int) -> float:
        """Expected steps to ``output`` tokens, the surplus of the last one included; near ``output / tokens_per_pass``."""
        k, rate = self.draft_length, self.acceptance_rate
        chance = [rate**j * (1 - rate) for j in range(k)] + [rate**k]
        needed = [0.0] * (output + 1)
        for n in range(1, output + 1):
            needed[n] = 1 + sum(p * needed[max(n - j - 1, 0)] for j, p in enumerate(chance))
        return needed[output]


def expected_tokens(acceptance_rate: float, draft_length: float) -> float:
    """Tokens per pass, bonus included, if each drafted token is accepted with the same chance."""
    if acceptance_rate >= 1:
        return draft_length + 1
    return float((1 - acceptance_rate ** (draft_length + 1)) / (1 - acceptance_rate))


def mean_latency(rng: np.random.Generator, engine: Engine, rate: float, output: int, requests: int) -> float:
    """Mean end-to-end latency of Poisson arrivals, s; the first tenth of the requests is left out.

    Args:
        rng: Source of arrivals and acceptances.
        engine: Its times.
        rate: Arrivals per second, below ``1 / C2``.
        output: Tokens per request.
        requests: Arrivals in the run.
    """
    arrivals = np.cumsum(rng.exponential(1 / rate, requests)).tolist()
    steps = needed_steps(rng, engine, output, requests).tolist()
    done = [0.0] * requests
    leaving: dict[int, list[int]] = {}  # step → requests whose last token it yields
    now, step, batch, following, finished = 0.0, 0, 0, 0, 0
    while finished < requests:
        if not batch:
            now = max(now, arrivals[following])
        joined = 0
        while following < requests and arrivals[following] <= now:
            leaving.setdefault(step + steps[following] - 1, []).append(following)
            following += 1
            joined += 1
        batch += joined
        now += engine.fixed + engine.each * batch + engine.prefill * joined
        for one in leaving.pop(step, ()):
            done[one] = now
            batch -= 1
            finished += 1
        step += 1
    return float((np.array(done) - arrivals)[requests // 10 :].mean())


def needed_steps(rng: np.random.Generator, engine: Engine, output: int, requests: int) -> np.ndarray:
    """Steps each request takes to ``output`` tokens, ``[requests]`` int."""
    if not engine.draft_length:
        return np.full(requests, output)
    accepted = rng.geometric(1 - engine.acceptance_rate, (requests, output)) - 1
    tokens = np.minimum(accepted, engine.draft_length) + 1
    return np.asarray((np.cumsum(tokens, axis=1) >= output).argmax(axis=1) + 1)


def fit(rates: np.ndarray, latencies: np.ndarray) -> tuple[float, float, float]:
    """Fit ``L = C1 / (1 - λ·C2)``, which is linear in ``1/L``; C1, C2 and R² of the latencies.

    ``1/L = 1/C1 - λ·C2/C1``: least squares weighted by L, so that relative errors count alike.
    """
    design = np.stack([latencies, -rates * latencies], axis=1)
    (inverse, slope), *_ = np.linalg.lstsq(design, np.ones_like(latencies), rcond=None)
    c1, c2 = 1 / inverse, slope / inverse
    predicted = c1 / (1 - rates * c2)
    spread = float(((latencies - latencies.mean()) ** 2).sum())
    return float(c1), float(c2), 1 - float(((latencies - predicted) ** 2).sum()) / spread
