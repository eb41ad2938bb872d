"""Draws that depend on who and where only, so that every policy and both loops see the same ones."""

from __future__ import annotations

import numpy as np

from kb.repro.sim.work import Floats

MASK = (1 << 64) - 1
STEP, MIX1, MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def uniform(seed: int, request: int, position: int) -> float:
    """A number in [0, 1): SplitMix64 of seed, request and position, each stirred in."""
    state = mix((seed + STEP) & MASK)
    state = mix((state + request * STEP) & MASK)
    state = mix((state + position * STEP) & MASK)
    return (state >> 11) * 2.0**-53


def mix(state: int) -> int:
    """The finaliser of SplitMix64."""
    state = ((state ^ (state >> 30)) * MIX1) & MASK
    state = ((state ^ (state >> 27)) * MIX2) & MASK
    return state ^ (state >> 31)


def acceptance_steps(rate: float, draft_length: int) -> Floats:
    """``[k]``: a draw below entry j accepts at least j + 1 drafted tokens."""
    return np.power(rate, np.arange(1, draft_length + 1, dtype=np.float64))


def accepted_drafts(seed: int, request: int, position: int, below: Floats) -> int:
    """Drafted tokens accepted at a position of a request's output."""
    draw, count = uniform(seed, request, position), 0
    for threshold in below:
        if draw >= threshold:
            break
        count += 1
    return count
