"""Two engines that step, with and without speculation, and the law of their speed-up by load.

Source: arXiv:2605.15051 Eq 2; r* is solved from it, since a printed form in circulation does not solve it.
"""

from __future__ import annotations

from kb.repro.sim.stepper import Engine

PLAIN = Engine(fixed=0.008, each=0.0002, prefill=0.03)
DRAFTED = Engine(fixed=0.011, each=0.0014, prefill=0.03, draft_length=5, acceptance_rate=0.8)
"""Verification of six tokens per request costs seven times the slope of one: compute-bound, as on a busy GPU."""
OUTPUT = 256
STEADY = 0.75
"""Load of the drafted engine up to which the law is held to 5 %."""


def break_even(c1_ratio: float, c2_ratio: float) -> float:
    """Load r* at which speculation stops paying: ``(1 - C1R) / (C2R - C1R)``."""
    return (1 - c1_ratio) / (c2_ratio - c1_ratio)


def speed_up(load: float, c1_ratio: float, c2_ratio: float) -> float:
    """``(1 - C2R·r) / (C1R·(1 - r))``."""
    return (1 - c2_ratio * load) / (c1_ratio * (1 - load))


def engine_ratios() -> tuple[float, float]:
    """C1R and C2R of the two engines in closed form."""
    (c1, c2), (c1_plain, c2_plain) = DRAFTED.coefficients(OUTPUT), PLAIN.coefficients(OUTPUT)
    return c1 / c1_plain, c2 / c2_plain
