"""Quantisers of keys and values, and planted keys to try them on.

Axes: T tokens · d head dim. A quantiser takes ``[T, d]`` and gives what would be read back, in the same shape.
Sources: min-max groups as in KIVI and KVQuant (arxiv:2401.18079); rotation and the Lloyd–Max codebook as in TurboQuant
(arxiv:2504.19874).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
GRID = 40_001
ROPE_BASE = 1e4


@cache
def codebook(bits: int, dim: int) -> tuple[tuple[float, ...], float]:
    """Levels of the optimal scalar quantiser for one coordinate of a random unit vector, and its total squared error.

    The density of a coordinate is proportional to ``(1 - x²)^((d-3)/2)``. Lloyd's iteration on a fine grid.

    Args:
        bits: Per coordinate.
        dim: Dimension d of the sphere.

    Returns:
        Sorted levels, and the error summed over all d coordinates (the squared norm is 1).
    """
    x = np.linspace(-1, 1, GRID)
    density = np.maximum(1 - x**2, 0) ** ((dim - 3) / 2)
    density /= density.sum()
    cumulative = np.cumsum(density)
    levels = np.interp((np.arange(2**bits) + 0.5) / 2**bits, cumulative, x)
    for _ in range(2000):
        nearest = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
        mass = np.bincount(nearest, density, 2**bits)
        moved = np.bincount(nearest, density * x, 2**bits) / np.maximum(mass, 1e-300)
        if np.abs(moved - levels).max() < 1e-12:  # noqa: PLR2004  converged
            break
        levels = moved
    nearest = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
    return tuple(levels.tolist()), float(dim * np.sum(density * (x - levels[nearest]) ** 2))


def min_max(x: Floats, bits: int, axis: int, aside: float = 0.0) -> Floats:
    """Even steps between the least and the greatest number along an axis.

    Args:
        x: Numbers.
        bits: Per number.
        axis: 0 gives each channel its own range, 1 each token.
        aside: Share of the numbers along the axis, furthest from their median, that is kept exactly.
    """
    if aside:
        far = np.abs(x - np.median(x, axis=axis, keepdims=True))
        apart = far > np.quantile(far, 1 - aside, axis=axis, keepdims=True)
        inside = np.where(apart, np.median(x, axis=axis, keepdims=True), x)
        kept: Floats = np.where(apart, x, min_max(inside, bits, axis))
        return kept
    least, most = x.min(axis=axis, keepdims=True), x.max(axis=axis, keepdims=True)
    step = np.maximum(most - least, 1e-12) / (2**bits - 1)
    back: Floats = np.round((x - least) / step) * step + least
    return back


@cache
def hadamard(dim: int) -> Floats:
    """The orthonormal Hadamard matrix, ``[d, d]``; d a power of two."""
    rows = np.arange(dim)
    signs = np.array([[int(a & b).bit_count() & 1 for b in rows] for a in rows])
    made: Floats = (1 - 2.0 * signs) / np.sqrt(dim)
    return made


def rotated(x: Floats, bits: int, signs: Floats) -> Floats:
    """Normed tokens, signs flipped at random and Hadamard-rotated, each number rounded to the Lloyd–Max codebook.

    Args:
        x: Numbers.
        bits: Per number.
        signs: ±1 per channel, ``[d]``.
    """
    dim = x.shape[1]
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    turned = (x / norm * signs) @ hadamard(dim)
    levels = np.array(codebook(bits, dim)[0])
    near = levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, turned)]
    back: Floats = norm * (near @ hadamard(dim)) * signs
    return back


def sketched(x: Floats, bits: int, signs: Floats, sketch: Floats) -> Floats:
    """The two-stage scheme: one bit less for `rotated`, and one bit for the sign of a random projection of the rest.

    Args:
        x: Numbers.
        bits: Per number in all, at least 2.
        signs: As in `rotated`.
        sketch: Gaussian matrix, ``[d, d]``.
    """
    dim = x.shape[1]
    first = rotated(x, bits - 1, signs)
    rest = x - first
    size = np.linalg.norm(rest, axis=1, keepdims=True)
    back: Floats = first + np.sqrt(np.pi / 2) / dim * size * (np.sign(rest @ sketch.T) @ sketch)
    return back


def planted_keys(rng: np.random.Generator, tokens: int, dim: int, outlier: float) -> Floats:
    """Heavy-tailed keys whose scale differs by channel, four channels far from zero: what key caches look like.

    Args:
        rng: Source of draws.
        tokens: T.
        dim: d.
        outlier: Mean of the four channels, the others 0; noise has scale about 1.
    """
    scale = rng.lognormal(0, 0.5, dim)
    keys = rng.standard_t(5, (tokens, dim)) * scale
    keys[:, rng.permutation(dim)[:4]] += outlier
    made: Floats = keys
    return made


def with_rope(keys: Floats) -> Floats:
    """Keys turned by their position, channel i paired with channel i + d/2."""
    tokens, dim = keys.shape
    angle = np.arange(tokens)[:, None] * ROPE_BASE ** (-2 * np.arange(dim // 2) / dim)
    first, second = keys[:, : dim // 2], keys[:, dim // 2 :]
    turned: Floats = np.concatenate(
        [first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle)],
        axis=1,
    )
    return turned


def squared_error(x: Floats, back: Floats) -> float:
    """Squared error over squared size."""
    return float(((x - back) ** 2).sum() / (x**2).sum())


def attention(q: Floats, k: Floats, v: Floats) -> Floats:
    """Attention output of queries ``[Q, d]`` over all tokens."""
    logits = q @ k.T / np.sqrt(k.shape[1])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    out: Floats = weights / weights.sum(axis=1, keepdims=True) @ v
    return out
