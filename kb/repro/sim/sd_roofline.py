"""Load curves of speculative decoding by roofline, and what can be read back from them by fitting.

A verify step of batch B takes the longer of reading the weights and of its FLOPs (a smooth maximum), reads 1,536 tokens of
KV per request, 1 ms on the host, and k drafts that each read the drafter once. Batch B, mean latency L and arrivals λ hang
together by ``L = steps·t(B) + B·prefill`` and ``λ = B/L``; loads reach 0.8 of the rate at batch 256. Prompts and outputs
of 1,024 tokens; an A100 by its data sheet, 80 GB at 2.04 TB/s and 312 TFLOP/s at 60 %.

The form that is fitted, arXiv:2605.15051 Eq 1 and 3, is linear in its coefficients once B = λ·L is known:
``L = c1p + (g/E)(c1v + k·c1d) + B·(c2p + (g/E)(c2v + k·c2d))``. MoE doubles C1 and C2 by a term times the coverage φ(B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kb.repro.sim.stepper import expected_tokens

Floats = np.ndarray[Any, np.dtype[np.float64]]
BANDWIDTH, FLOPS, HOST, LENGTH = 2.04e12, 0.6 * 312e12, 1e-3, 1_024
LARGEST, REACH = 256, 0.8
"""Largest batch, and the share of its rate that loads go up to."""


@dataclass(frozen=True)
class Pair:
    """A verifier and its drafter."""

    verifier: float
    """Parameters."""
    drafter: float
    """Parameters."""
    kv: float
    """KV bytes per request that a step reads."""


QWEN3_8B = Pair(8.2e9, 0.4e9, 147_456 * 1536)
LLAMA_8B = Pair(8.03e9, 0.4e9, 131_072 * 1536)


@dataclass(frozen=True)
class Curve:
    """Points of one load curve of one configuration."""

    acceptance_rate: float
    draft_length: int
    batch: Floats
    rate: Floats
    """Arrivals per second."""
    latency: Floats
    """Mean, end to end, s."""


def curve(acceptance_rate: float, draft_length: int, pair: Pair = QWEN3_8B) -> Curve:
    """Latency by load; without speculation at draft length 0."""
    batch = np.linspace(1, LARGEST, 512)
    work = 2 * pair.verifier * (draft_length + 1) * batch / FLOPS
    step = ((2 * pair.verifier / BANDWIDTH) ** 4 + work**4) ** 0.25
    step = step + batch * pair.kv / BANDWIDTH + HOST + draft_length * 2 * pair.drafter / BANDWIDTH
    passes = LENGTH / expected_tokens(acceptance_rate, draft_length)
    latency = passes * step + batch * 2 * pair.verifier * LENGTH / FLOPS
    rate = batch / latency
    low = rate <= REACH * rate[-1]
    return Curve(acceptance_rate, draft_length, batch[low], rate[low], latency[low])


@dataclass(frozen=True)
class Pooled:
    """Six coefficients fitted to many configurations at once."""

    c1: tuple[float, float, float]
    """Prefill, verify, draft, s."""
    c2: tuple[float, float, float]
    """The same per concurrent request, s."""
    r2: float
    """Of the latencies that the coefficients predict at the true batch."""
    rank: int
    """Coefficients that the points tell apart, with a seventh added for work that grows with k + 1."""


def fit_pooled(curves: Sequence[Curve]) -> Pooled:
    """Least squares over all points, each weighted by its latency so that relative errors count alike."""
    rows = np.concatenate([_row(one) for one in curves])
    latency = np.concatenate([one.latency for one in curves])
    found, *_ = np.linalg.lstsq(rows / latency[:, None], np.ones_like(latency), rcond=None)
    first, second = (tuple(map(float, part)) for part in (found[:3], found[3:]))
    seventh = np.concatenate(
        [
            one.batch * (one.draft_length + 1) / expected_tokens(one.acceptance_rate, one.draft_length)
            for one in curves
        ]
    )
    scaled = np.column_stack([rows, seventh])
    scaled /= np.linalg.norm(scaled, axis=0)
    return Pooled(first, second, r_squared(latency, rows @ found), int(np.linalg.matrix_rank(scaled)))  # type: ignore[arg-type]


def _row(one: Curve) -> Floats:
    """Regressors of a configuration's points, ``[points, 6]``."""
    passes = LENGTH / expected_tokens(one.acceptance_rate, one.draft_length)
    alone = np.broadcast_to([1.0, passes, passes * one.draft_length], (len(one.batch), 3))
    return np.concatenate([alone, alone * one.batch[:, None]], axis=1)


def r_squared(values: Floats, predicted: Floats) -> float:
    """Share of the variance explained; below 0 where a constant does better."""
    spread = float(((values - values.mean()) ** 2).sum())
    return 1 - float(((values - predicted) ** 2).sum()) / spread


# Mixture of experts


@dataclass(frozen=True)
class Mixture:
    """Sizes that decide how a mixture's step grows with its batch. Source: public configurations."""

    shared: float
    """Parameters every token passes: attention, embeddings, shared layers."""
    routed: float
    """Parameters of all experts."""
    chosen: int
    """Experts per token."""
    experts: int
    """Experts per layer."""
    weight_bytes: float
    """Per parameter of an expert."""
    kv: float
    """KV bytes per request that a step reads, 1,536 tokens."""


MIXTURES = {
    # experts in MXFP4; half of its 24 layers look back 128 tokens only
    "gpt-oss-20b": Mixture(1.8e9, 19.1e9, 4, 32, 4.25 / 8, 24 * 2 * 8 * 64 * 2 * (1536 + 128) / 2),
    "qwen3-30b-a3b": Mixture(1.5e9, 29.0e9, 8, 128, 2.0, 48 * 2 * 4 * 128 * 2 * 1536),
    "qwen3-235b-a22b": Mixture(8.0e9, 227e9, 8, 128, 2.0, 94 * 2 * 4 * 128 * 2 * 1536),
}
GPUS = {"gpt-oss-20b": 1, "qwen3-30b-a3b": 1, "qwen3-235b-a22b": 8}
"""A100s that share one model."""


def coverage(tokens: Floats, chosen: int, experts: int) -> Floats:
    """Expected share of the experts that a step's tokens use: ``1 − (1 − m/M)^T``."""
    covered: Floats = 1 - (1 - chosen / experts) ** tokens
    return covered


def counted_coverage(
    rng: np.random.Generator, tokens: Floats, chosen: int, experts: int, skew: float
) -> Floats:
    """The same counted over drawn routings whose experts' popularity falls as ``1/rank^skew``; mean of 16 layers."""
    popularity = -skew * np.log(np.arange(1, experts + 1))
    out = []
    for count in tokens:
        used = np.zeros((16, experts), dtype=np.bool_)
        for _ in range(round(float(count))):
            # the largest of popularity plus Gumbel noise are a draw without replacement
            scores = popularity + rng.gumbel(size=(16, experts))
            picked = np.argpartition(-scores, chosen - 1, axis=1)[:, :chosen]
            np.put_along_axis(used, picked, values=True, axis=1)
        out.append(float(used.mean()))
    return np.asarray(out)


def mixture_curve(name: str, rng: np.random.Generator, skew: float) -> Curve:
    """Latency by load of a mixture whose step reads the experts that its batch uses, counted; no speculation.

    24 loads over the lower half of the range that is swept.
    """
    one, gpus = MIXTURES[name], GPUS[name]
    batch = np.arange(1.0, LARGEST + 1)
    used = one.routed * counted_coverage(rng, batch, one.chosen, one.experts, skew)
    active = one.shared + one.routed * one.chosen / one.experts
    read = (2 * one.shared + one.weight_bytes * used + batch * one.kv) / (gpus * BANDWIDTH)
    step = (read**4 + (2 * active * batch / (gpus * FLOPS)) ** 4) ** 0.25 + HOST
    latency = LENGTH * step + batch * 2 * active * LENGTH / (gpus * FLOPS)
    rate = batch / latency
    wanted = np.linspace(rate[0], REACH * rate[-1] / 2, 24)
    at = np.interp(wanted, rate, batch)
    return Curve(0.0, 0, at, wanted, np.interp(at, batch, latency))


def mixture_fits(name: str, one: Curve) -> tuple[float, float]:
    """R² of the dense form (two coefficients) and of the form with coverage (four) over a curve."""
    parts = MIXTURES[name]
    phi = coverage(one.batch, parts.chosen, parts.experts)
    plain = np.stack([np.ones_like(one.batch), one.batch], axis=1)
    wide = np.concatenate([plain, plain * phi[:, None]], axis=1)
    found = []
    for rows in (plain, wide):
        coefficients, *_ = np.linalg.lstsq(rows / one.latency[:, None], np.ones_like(one.latency), rcond=None)
        found.append(r_squared(one.latency, rows @ coefficients))
    return found[0], found[1]
