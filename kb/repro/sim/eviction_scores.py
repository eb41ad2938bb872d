"""Scores by which KV eviction policies choose survivors, from real queries and keys; and the choice itself.

Axes: H query heads · K KV heads · G = H/K query heads per KV head · N tokens · D head dim · F = D/2 bands of RoPE.

accumulated    H2O (2306.14048): attention a key received from all queries so far; the recent half of the budget stays
last_window    SnapKV (2404.14469): attention from the last 32 queries, mean-pooled over 5 neighbours; the window stays
redundancy     R-KV (2505.24133): attention from the last 8 queries, max-pooled over 7, minus likeness to later keys
trigonometric  TriAttention (2604.04921): what queries before RoPE are on average like, turned to future distances
(none)         StreamingLLM (2309.17453): the first 4 and the most recent tokens

Each method is applied once, at the end of a prompt; the originals repeat it while they decode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kb.repro.sim.survivors import Bools

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
"""float32, but for the turn of the bands."""
Complex = np.ndarray[Any, np.dtype[np.complex64]]
SNAP_WINDOW, SNAP_POOL = 32, 5
RKV_WINDOW, RKV_POOL, RKV_WEIGHT, ALIKE = 8, 7, 0.1, 0.5
"""R-KV's window, pooling, weight of attention and cosine from which keys count as alike, as its README states them."""
OFFSETS = tuple(2**power for power in range(17))
"""Future distances TriAttention averages over: 1, 2, 4, …, 65,536 tokens."""


@dataclass(frozen=True)
class Scored:
    """Scores of one layer and the tokens the method keeps whatever their score."""

    scores: Floats
    """``[K, N]``; larger stays."""
    recent: int
    """Last tokens that always stay."""


def attention(q: Floats, k: Floats) -> Floats:
    """Causal softmax weights ``[H, N, N]`` of queries ``[H, N, D]`` over keys ``[K, N, D]``, both after RoPE."""
    import torch

    heads, tokens, dim = q.shape
    spread = torch.from_numpy(np.repeat(k, heads // k.shape[0], axis=0))
    logits = torch.from_numpy(q) @ spread.transpose(1, 2) * dim**-0.5
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights: Floats = logits.masked_fill_(hidden, -torch.inf).softmax(-1).numpy()
    return weights


def _softmax(logits: Floats) -> Floats:
    np.subtract(logits, logits.max(axis=-1, keepdims=True), out=logits)
    np.exp(logits, out=logits)
    np.divide(logits, logits.sum(axis=-1, keepdims=True), out=logits)
    return logits


def by_group(per_head: Floats, kv_heads: int) -> Floats:
    """Query heads gathered under their KV head: ``[H, …]`` to ``[K, G, …]``."""
    return per_head.reshape(kv_heads, -1, *per_head.shape[1:])


def accumulated(weights: Floats, kv_heads: int, kept: int) -> Scored:
    """H2O: column sums over all queries, summed over the group."""
    return Scored(by_group(weights.sum(axis=1), kv_heads).sum(axis=1), recent=kept - kept // 2)


def last_window(weights: Floats, kv_heads: int) -> Scored:
    """SnapKV: column sums over the last window, summed over the group, mean-pooled."""
    voted = by_group(weights[:, -SNAP_WINDOW:].sum(axis=1), kv_heads).sum(axis=1)
    return Scored(_pooled(voted, SNAP_POOL, np.mean), recent=SNAP_WINDOW)


def redundancy(q: Floats, k: Floats) -> Scored:
    """R-KV: ``λ·attention − (1 − λ)·likeness``; the window itself always stays.

    Attention is the softmax of the largest logit in the group, averaged over the window, max-pooled. Likeness is the mean
    cosine to all other keys, each of them leaving out the latest key that is alike, as a softmax over tokens: as the
    released code does, which counts small cosines too where the paper sets them to zero.
    """
    kv_heads, tokens, dim = k.shape
    past = tokens - RKV_WINDOW
    logits = np.matmul(by_group(q[:, -RKV_WINDOW:], kv_heads), k[:, None].transpose(0, 1, 3, 2))
    largest = logits.max(axis=1)[:, :, :past] * np.float32(dim**-0.5)
    seen = _pooled(_softmax(largest).mean(axis=1), RKV_POOL, np.max)
    unit = k / (np.linalg.norm(k, axis=-1, keepdims=True) + np.float32(1e-8))
    cosine = np.matmul(unit, unit.transpose(0, 2, 1))
    cosine[:, np.arange(tokens), np.arange(tokens)] = 0
    alike = cosine > ALIKE
    latest = np.where(alike, np.arange(tokens), 0).max(axis=-1)
    np.put_along_axis(cosine, latest[..., None], 0, axis=-1)
    likeness = _softmax(cosine.mean(axis=1))[:, :past]
    scores = np.zeros((kv_heads, tokens), dtype=np.float32)
    scores[:, :past] = RKV_WEIGHT * seen - (1 - RKV_WEIGHT) * likeness
    return Scored(scores, recent=RKV_WINDOW)


def _pooled(scores: Floats, width: int, how: Any) -> Floats:
    """Running mean or maximum over ``width`` neighbours; the ends see fewer, a mean counts those as 0."""
    half = width // 2
    pad = 0.0 if how is np.mean else -np.inf
    wide = np.pad(scores, ((0, 0), (half, half)), constant_values=pad)
    out: Floats = how(np.lib.stride_tricks.sliding_window_view(wide, width, axis=1), axis=-1)
    return out.astype(np.float32)


def bands(x: Floats) -> Complex:
    """The adjacent pairs that RoPE turns, as complex numbers: ``[…, D]`` to ``[…, F]``."""
    out: Complex = np.ascontiguousarray(x, dtype=np.float32).view(np.complex64)
    return out


@dataclass(frozen=True)
class Calibration:
    """What the queries of each head are like on average, before RoPE, taken on other text."""

    mean: Complex
    """``E[q_f]``, ``[H, F]``."""
    size: Floats
    """``E|q_f|``, ``[H, F]``."""

    @classmethod
    def of(cls, q: Floats) -> Calibration:
        """Average queries ``[H, N, D]`` before RoPE."""
        turned = bands(q)
        return cls(turned.mean(axis=1), np.abs(turned).mean(axis=1))

    @property
    def concentration(self) -> Floats:
        """``R_f = |E q_f| / E|q_f|``, ``[H, F]``: 1 where all queries point the same way."""
        return np.abs(self.mean) / np.maximum(self.size, np.float32(1e-12))


def trigonometric(k: Floats, calibration: Calibration, omega: Floats) -> Scored:
    """TriAttention: mean over future distances of the logit an average query would give each key, and a norm term.

    ``Σ_f |E q_f|·|k_f|·cos(ω_f(Δ + δ) + φ_f) + Σ_f (E|q_f| − |E q_f|)·|k_f|``, averaged over `OFFSETS`, z-normalised per
    query head, largest of the group.

    Args:
        k: Keys before RoPE, ``[K, N, D]``.
        calibration: Of the queries that share these keys.
        omega: Turn of each band per token, ``[F]``.
    """
    kv_heads, tokens, _ = k.shape
    turned = bands(k)
    ahead = np.exp(1j * np.outer(omega, OFFSETS)).mean(axis=1)
    distance = np.arange(tokens - 1, -1, -1)
    turn = np.exp(1j * np.outer(distance, omega)) * ahead
    group = len(calibration.mean) // kv_heads
    out = np.empty((kv_heads, group, tokens), dtype=np.float32)
    for head, (mean, size) in enumerate(zip(calibration.mean, calibration.size, strict=True)):
        key = turned[head // group]
        wave = (np.conj(key) * turn) @ mean
        score = wave.real + np.abs(key) @ (size - np.abs(mean))
        out[head // group, head % group] = (score - score.mean()) / (score.std() + 1e-12)
    return Scored(out.max(axis=1), recent=0)


def keep(scored: Scored, kept: int) -> Bools:
    """Survivors ``[K, N]``: the recent ones and the best of the others, exactly ``kept`` per KV head."""
    kv_heads, tokens = scored.scores.shape
    recent = min(scored.recent, kept)
    out = np.zeros((kv_heads, tokens), dtype=np.bool_)
    out[:, tokens - recent :] = True
    best = np.argsort(-scored.scores[:, : tokens - recent], axis=1, kind="stable")[:, : kept - recent]
    np.put_along_axis(out, best, values=True, axis=1)
    return out


def one_set(scored: Scored) -> Scored:
    """Scores added up over KV heads, each brought to the same spread first: one choice for a page they share."""
    centred = scored.scores - scored.scores.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True) + np.float32(1e-12)
    return Scored((centred / spread).sum(axis=0, keepdims=True), scored.recent)
