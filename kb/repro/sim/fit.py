"""Cost models from measured steps: least squares on relative error, never by hand.

A relative error, because a table spans three decades: in absolute terms the longest prefill would decide alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kb.errors import WrongResult
from kb.repro.sim.cost import Counts, Roofline, peaks
from kb.repro.sim.shapes import Hardware, ModelShape
from kb.repro.sim.work import Floats, StepCost, StepWork


def least_squares(terms: Floats, seconds: Floats) -> tuple[Floats, float]:
    """Coefficients with the least mean square of the relative error, and its root.

    Args:
        terms: ``[steps, coefficients]``.
        seconds: Measured, ``[steps]``, above 0.

    Raises:
        WrongResult: Fewer steps than coefficients, terms that cannot be told apart, or a time that is not above 0.
    """
    num_steps, num_terms = terms.shape
    if num_steps < num_terms or not (np.isfinite(seconds) & (seconds > 0)).all():
        raise _cannot(f"{num_steps} steps for {num_terms} coefficients, each must have a time above 0")
    scale = np.abs(terms).max(axis=0)
    if not (scale > 0).all():
        raise _cannot("a term is zero in every step")
    scaled = terms / scale
    solved, _, rank, _ = np.linalg.lstsq(scaled / seconds[:, None], np.ones(num_steps), rcond=1e-9)
    if rank < num_terms:
        raise _cannot("the steps do not tell the terms apart")
    error = float(np.sqrt(np.mean((scaled @ solved / seconds - 1) ** 2)))
    return np.asarray(solved / scale), error


def _cannot(cause: str) -> WrongResult:
    return WrongResult(
        "cost model: not fitted",
        cause=cause,
        remedy="measure steps that differ in tokens, in sequences and in KV length",
        next_command="kb repro calibrate",
    )


def bounded(terms: Floats, seconds: Floats, least: Sequence[float]) -> tuple[Floats, float, tuple[int, ...]]:
    """`least_squares` where no coefficient may be less than its bound.

    Args:
        terms: ``[steps, coefficients]``.
        seconds: Measured, ``[steps]`` s.
        least: Smallest value of each coefficient.

    Returns:
        Coefficients, root mean square of the relative error, and which coefficients lie on their bound.

    Raises:
        WrongResult: As `least_squares`.
    """
    free, error = least_squares(terms, seconds)
    floor = np.asarray(least, np.float64)
    if (free >= floor).all():
        return free, error, ()
    best: tuple[float, Floats, tuple[int, ...]] | None = None
    every = range(terms.shape[1])
    for size in range(1, terms.shape[1] + 1):
        for held in itertools.combinations(every, size):  # few coefficients: all active sets are tried
            left = [term for term in every if term not in held]
            values = floor.copy()
            rest = 1 - terms[:, held] @ floor[list(held)] / seconds
            if left:
                values[left] = np.linalg.lstsq(terms[:, left] / seconds[:, None], rest, rcond=None)[0]
            if (values[left] < floor[left]).any():
                continue
            error = float(np.sqrt(np.mean((terms @ values / seconds - 1) ** 2)))
            if best is None or error < best[0]:
                best = error, values, held
    assert best is not None  # noqa: S101  all on their bounds is always allowed
    return best[1], best[0], best[2]


def fit_roofline(
    works: Sequence[StepWork],
    seconds: Floats,
    model: ModelShape,
    gpu: Hardware,
    *,
    num_gpus: int = 1,
    counts: Counts | None = None,
) -> Roofline:
    """Fit t0, mfu and mbu, with t0 at least 0 and neither share above 1: such fits are rejected for the best within.

    Args:
        works: Measured steps.
        seconds: Their times, ``[steps]`` s.
        model: Its shape.
        gpu: One of the GPUs it ran on.
        num_gpus: How many.
        counts: What a step does, where that is not the whole model at 16 bits.

    Raises:
        WrongResult: The steps do not determine it.
    """
    most = max((work.tokens for work in works), default=0)
    counted = counts or Counts.of(model, most_tokens=most)
    flop_peak, byte_peak = peaks(gpu, num_gpus)
    terms = np.array([(1.0, counted.flops(w) / flop_peak, counted.bytes(w) / byte_peak) for w in works])
    (t0, flop_scale, byte_scale), error, held = bounded(terms.reshape(-1, 3), seconds, (0.0, 1.0, 1.0))
    names = tuple(("t0", "mfu", "mbu")[term] for term in held)
    return Roofline(float(t0), float(1 / flop_scale), float(1 / byte_scale), error, names)


@dataclass(frozen=True)
class StepFit:
    """Seconds of a step without a roofline, for engines whose hardware has no data sheet."""

    t0: float
    """Fixed part."""
    per_token: float
    """Each token computed."""
    per_kv_token: float
    """Each KV token a decoding sequence reads."""
    error: float
    """Root mean square of the relative error."""

    def cost(self, most_tokens: int = 8192) -> StepCost:
        """As the event loop takes it."""
        dense = np.asarray(self.t0 + self.per_token * np.arange(most_tokens + 1), np.float64)
        return StepCost(dense=dense, per_kv_token=self.per_kv_token)


def fit_steps(works: Sequence[StepWork], seconds: Floats) -> StepFit:
    """Fit the fixed part, the part per token and the part per KV token to an engine's own step times.

    No coefficient is negative: no token saves time.

    Args:
        works: Measured steps.
        seconds: Their times, ``[steps]`` s.

    Raises:
        WrongResult: The steps do not determine it.
    """
    terms = np.array([(1.0, w.tokens, w.kv_tokens) for w in works], np.float64).reshape(-1, 3)
    kept = terms if terms[:, 2].any() else terms[:, :2]
    values, error, _ = bounded(kept, seconds, [0.0] * kept.shape[1])
    t0, per_token, per_kv_token = (*values.tolist(), 0.0)[:3]
    return StepFit(t0, per_token, per_kv_token, error)
