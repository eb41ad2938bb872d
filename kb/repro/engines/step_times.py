"""How long one step of a real engine takes by the tokens it computes, for the simulator: probed, never set by hand.

A lone prompt of n tokens is one step of n prefill tokens; B requests that decode together are steps of B tokens. Between
the probed sizes the time is interpolated, beyond them continued along the last slope. What HTTP adds to a lone prompt
stays in: tens of milliseconds of step stand against two or three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from kb.repro.engines.launch import Serving
from kb.repro.engines.load import Ask, Driven, Terms, drive, need_clean
from kb.repro.engines.prompts import draw_tokens
from kb.repro.sim.work import StepCost

PREFILLS = (16, 48, 160, 480, 960)
BATCHES = (1, 4, 8, 16, 32)
REPEATS = 3
DECODED = 14
"""Tokens per request of a decode probe; the first gaps, while others are still admitted, do not count."""
SHORT = 20
DEADLINE_S = 120.0


@dataclass(frozen=True)
class StepTimes:
    """Median seconds of a step by the tokens in it."""

    prefill: dict[int, float]
    decode: dict[int, float]

    def cost(self, most_tokens: int) -> StepCost:
        """For the simulator: decode times up to the largest probed batch, prefill times beyond it."""
        known = {size: time for size, time in self.prefill.items() if size > max(self.decode)} | self.decode
        sizes = sorted(known)
        times = [known[size] for size in sizes]
        tokens = np.arange(most_tokens + 1, dtype=np.float64)
        dense = np.interp(tokens, sizes, times)
        slope = (times[-1] - times[-2]) / (sizes[-1] - sizes[-2])
        beyond = tokens > sizes[-1]
        dense[beyond] = times[-1] + slope * (tokens[beyond] - sizes[-1])
        dense[0] = 0.0
        return StepCost(dense=dense)


def together(server: Serving, prompts: Sequence[tuple[int, ...]], outputs: int) -> Driven:
    """Send requests at one moment and wait for all.

    Raises:
        CannotRun: One of them failed.
    """
    asks = [Ask(0.0, prompt, outputs) for prompt in prompts]
    terms = Terms(deadline_s=DEADLINE_S, most_open=max(1, len(asks)))
    return need_clean(drive(server.endpoint, server.model, asks, terms), "a probe")


def probe(server: Serving, rng: np.random.Generator) -> StepTimes:
    """Take the times, smallest first, each `REPEATS` times after one that does not count.

    Raises:
        CannotRun: A probe failed.
    """
    together(server, [draw_tokens(rng, max(PREFILLS))], 2)
    prefill = {
        size: median(together(server, [draw_tokens(rng, size)], 1).sent[0].ttft_s for _ in range(REPEATS))
        for size in PREFILLS
    }
    decode = {size: _decode(server, rng, size) for size in BATCHES}
    return StepTimes(prefill, decode)


def _decode(server: Serving, rng: np.random.Generator, batch: int) -> float:
    driven = together(server, [draw_tokens(rng, SHORT) for _ in range(batch)], DECODED)
    gaps = [gap for one in driven.sent for gap in one.itl_s[DECODED // 3 :]]
    return median(gaps) if gaps else driven.sent[0].tpot_s
