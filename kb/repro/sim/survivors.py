"""Which tokens an eviction policy keeps, as masks ``[H, N]``, and the share of pages each shape frees in theory.

N tokens, K kept per head, b tokens per page, H heads that share a page, ρ = K/N.

uniform        K tokens at random, one set for all heads
runs-w         runs of w adjacent tokens at random places, as max-pooled scores give; overlapping runs merge
stratified     one token in every N/K
contiguous     the last K tokens
sink-recent    the first ``SINK`` tokens and the last K − SINK, as StreamingLLM keeps
per-head-H     K tokens at random for each of H heads by itself
correlated-κ   a share κ of the K common to 8 heads, the others for each head by itself
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Bools = np.ndarray[Any, np.dtype[np.bool_]]
SINK = 4
"""First tokens that sink-and-recent policies always keep."""
CORRELATED_HEADS = 8
PATTERNS = (
    "uniform", "runs-4", "runs-7", "runs-16", "runs-64", "stratified", "contiguous", "sink-recent", "per-head-2",
    "per-head-4", "per-head-8", "correlated-0.5", "correlated-0.9",
)  # fmt: skip


def parse(pattern: str) -> tuple[str, float]:
    """Split a pattern's name into its kind and parameter: ``("runs", 4.0)``; 0 where it has none."""
    for kind in ("runs", "per-head", "correlated"):
        if pattern.startswith(f"{kind}-"):
            return kind, float(pattern.removeprefix(f"{kind}-"))
    return pattern, 0.0


def num_heads(pattern: str) -> int:
    """Heads that choose on their own; 1 where all share one set."""
    kind, parameter = parse(pattern)
    return {"per-head": int(parameter), "correlated": CORRELATED_HEADS}.get(kind, 1)


def is_random(pattern: str) -> bool:
    """Whether two draws of a pattern differ."""
    return pattern not in {"stratified", "contiguous", "sink-recent"}


def draw(pattern: str, num_tokens: int, num_kept: int, rng: np.random.Generator) -> Bools:
    """Draw the survivors of every head, ``[H, N]``, exactly ``num_kept`` per head.

    Raises:
        ValueError: There is no such pattern.
    """
    kind, parameter = parse(pattern)
    kept = np.zeros((num_heads(pattern), num_tokens), dtype=np.bool_)
    if kind in {"uniform", "per-head"}:
        for head in kept:
            head[rng.choice(num_tokens, num_kept, replace=False, shuffle=False)] = True
    elif kind == "runs":
        kept[0] = _runs(num_tokens, num_kept, int(parameter), rng)
    elif kind == "stratified":
        kept[0, ((np.arange(num_kept) + 0.5) * num_tokens / num_kept).astype(np.int64)] = True
    elif kind in {"contiguous", "sink-recent"}:
        sink = _sink(kind, num_kept)
        kept[0, :sink] = True
        kept[0, num_tokens - (num_kept - sink) :] = True
    elif kind == "correlated":
        common = rng.permutation(num_tokens)
        num_common = round(parameter * num_kept)
        kept[:, common[:num_common]] = True
        for head in kept:
            head[rng.choice(common[num_common:], num_kept - num_common, replace=False, shuffle=False)] = True
    else:
        raise ValueError(f"no survivor pattern {pattern!r}")
    return kept


def _runs(num_tokens: int, num_kept: int, width: int, rng: np.random.Generator) -> Bools:
    """Place runs at random until ``num_kept`` tokens are covered; the last run is cut to fit."""
    kept = np.zeros(num_tokens, dtype=np.bool_)
    missing = num_kept
    while missing >= width:
        # so many runs cover at most the missing tokens, fewer where they overlap
        starts = rng.integers(num_tokens - width + 1, size=missing // width)
        kept[(starts[:, None] + np.arange(width)).ravel()] = True
        missing = num_kept - int(np.count_nonzero(kept))
    while missing:
        start = int(rng.integers(num_tokens - width + 1))
        fresh = start + np.flatnonzero(~kept[start : start + width])[:missing]
        kept[fresh] = True
        missing -= len(fresh)
    return kept


def expected_freed(pattern: str, num_tokens: int, num_kept: int, page_tokens: int) -> float:
    """Share of pages that eviction alone empties, by closed form.

    Exact in expectation for all but runs, which are taken as thrown independently: ``(1 − ρ)^((b + w − 1)/w)``. The last
    page counts with the tokens it holds.
    """
    num_pages = -(-num_tokens // page_tokens)
    tail = num_tokens - (num_pages - 1) * page_tokens
    kind, parameter = parse(pattern)
    if kind == "stratified":
        gap = num_tokens / num_kept
        return max(0.0, 1 - num_kept / num_pages) if gap >= page_tokens else 0.0
    if kind in {"contiguous", "sink-recent"}:
        return 1 - _recent_pages(num_tokens, num_kept, _sink(kind, num_kept), page_tokens) / num_pages
    empty = [_page_empty(kind, parameter, num_tokens, num_kept, size) for size in (page_tokens, tail)]
    return (empty[0] * (num_pages - 1) + empty[1]) / num_pages


def _sink(kind: str, num_kept: int) -> int:
    return min(SINK, num_kept) if kind == "sink-recent" else 0


def _recent_pages(num_tokens: int, num_kept: int, sink: int, page_tokens: int) -> int:
    """Pages that hold the first ``sink`` and the last other tokens."""
    sink_pages = -(-sink // page_tokens)
    recent = num_kept - sink
    if not recent:
        return sink_pages
    first_recent = (num_tokens - recent) // page_tokens
    return sink_pages + -(-num_tokens // page_tokens) - max(first_recent, sink_pages)


def _page_empty(kind: str, parameter: float, num_tokens: int, num_kept: int, size: int) -> float:
    """Probability that no head keeps any of ``size`` given tokens."""
    if kind == "uniform":
        return none_of(num_tokens, num_kept, size)
    if kind == "runs":
        return float((1 - num_kept / num_tokens) ** ((size + parameter - 1) / parameter))
    if kind == "per-head":
        return none_of(num_tokens, num_kept, size) ** int(parameter)
    common = round(parameter * num_kept)
    alone = none_of(num_tokens - common, num_kept - common, size)
    return none_of(num_tokens, common, size) * alone**CORRELATED_HEADS


def none_of(num_tokens: int, num_kept: int, size: int) -> float:
    """Probability that K of N tokens chosen at random miss ``size`` given ones: C(N−b, K) / C(N, K)."""
    if num_kept > num_tokens - size:
        return 0.0
    g = math.lgamma
    left = num_tokens - size
    return math.exp(g(left + 1) - g(left - num_kept + 1) - g(num_tokens + 1) + g(num_tokens - num_kept + 1))
