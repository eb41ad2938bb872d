"""Heads that keep unequal shares of the context: laws of retention, pages that heads share, budgets, page tables.

Axes: L layers · H KV heads per layer · N = L·H heads · H_p heads that share a page · b tokens per page.
Heads that share pages form a group with one page table; the group holds as many pages as its longest head needs, because
a page is given back only when every head of it has let go. Source: the ragged paging of Tangram (arxiv:2606.06302).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Law = Literal["few-heads-keep", "two-bumps", "one-bump"]
Order = Literal["neighbours", "sorted-in-layer", "sorted"]
CENTRES, SPREAD = (0.2, 0.8), 20.0
"""Where the two bumps lie, and how narrow a bump is (the sum of the Beta law's parameters)."""
LOW, HIGH = 0.1, 0.85
"""Few heads keep: those that do draw between the two ends, the others keep next to nothing."""
NEXT_TO_NOTHING = 0.02
NOISE = 0.045
"""Spread of one head's retention from prompt to prompt, as in profiles that were published with the code."""


def retention(rng: np.random.Generator, law: Law, mean: float, shape: tuple[int, int]) -> Floats:
    """Share of the context each head keeps, ``[L, H]`` in 0–1.

    Args:
        rng: Source of draws.
        law: ``few-heads-keep``: some heads keep 0.1–0.85, the others at most 0.02; three in ten make a mean of 0.15.
            ``two-bumps``: heads near 0.2 or near 0.8. ``one-bump``: all near the mean.
        mean: Mean share; in the first two laws it comes out by how many heads are of which kind.
        shape: Layers and heads per layer.
    """
    if law == "few-heads-keep":
        floor = NEXT_TO_NOTHING / 2
        keeps = rng.random(shape) < (mean - floor) / ((LOW + HIGH) / 2 - floor)
        return np.where(
            keeps, LOW + (HIGH - LOW) * rng.beta(2, 2, shape), rng.uniform(0, NEXT_TO_NOTHING, shape)
        )
    if law == "one-bump":
        return rng.beta(SPREAD * mean, SPREAD * (1 - mean), shape)
    low, high = CENTRES
    centre = np.where(rng.random(shape) < (mean - low) / (high - low), high, low)
    return rng.beta(SPREAD * centre, SPREAD * (1 - centre))


def arranged(shares: Floats, order: Order) -> Floats:
    """Heads in the order in which they are grouped, ``[N]``."""
    if order == "sorted":
        return np.sort(shares, axis=None)
    return (np.sort(shares, axis=1) if order == "sorted-in-layer" else shares).ravel()


def held(shares: Floats, heads_per_page: int, order: Order = "neighbours") -> float:
    """Share of the full cache that is held when groups of heads share pages; pages of one token.

    Args:
        shares: Retention, ``[L, H]``.
        heads_per_page: H_p; N must be a multiple.
        order: How heads are grouped.
    """
    return float(arranged(shares, order).reshape(-1, heads_per_page).max(axis=1).mean())


def pages_held(shares: Floats, heads_per_page: int, order: Order, tokens: int, page_tokens: int) -> int:
    """The same in whole pages of ``page_tokens`` tokens and H_p heads, for one request of ``tokens`` tokens."""
    longest = np.ceil(arranged(shares, order) * tokens).reshape(-1, heads_per_page).max(axis=1)
    return int(np.ceil(longest / page_tokens).sum())


def over_allocated(shares: Floats, heads_per_page: int, order: Order) -> float:
    """Share of what is held that no head keeps."""
    return 1 - float(shares.mean()) / held(shares, heads_per_page, order)


def observed(rng: np.random.Generator, means: Floats, prompts: int, *, skewed: bool) -> Floats:
    """Retention of each head on some prompts, ``[prompts, N]`` in 0–1.

    Args:
        rng: Source of draws.
        means: Each head's mean, ``[N]``.
        prompts: How many.
        skewed: False draws normal noise, True noise of the same spread with a long upper tail (exponential).
    """
    size = (prompts, means.size)
    noise = rng.exponential(1, size) - 1 if skewed else rng.standard_normal(size)
    return np.clip(means + NOISE * noise, 0, 1)


def budgets(pilot: Floats, sigmas: float = 2.0) -> Floats:
    """Reserved share per head from a pilot set ``[prompts, N]``: ``min(1, mean + sigmas · standard deviation)``."""
    reserved: Floats = np.minimum(1, pilot.mean(axis=0) + sigmas * pilot.std(axis=0, ddof=1))
    return reserved


def overflow(reserved: Floats, seen: Floats) -> float:
    """Share of (prompt, head) pairs that keep more than was reserved."""
    return float((seen > reserved).mean())
