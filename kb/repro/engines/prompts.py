"""Prompts as token ids for real engines: drawn, so that nothing is shared but what is meant to be."""

from __future__ import annotations

import numpy as np

FIRST, BEYOND = 100, 40_000
"""Ordinary tokens of SmolLM2's vocabulary of 49,152; control tokens lie below."""


def draw_tokens(rng: np.random.Generator, count: int) -> tuple[int, ...]:
    """Random token ids; two draws of 16 tokens agree by chance once in 10^73."""
    return tuple(rng.integers(FIRST, BEYOND, count).tolist())


def overlapping(
    rng: np.random.Generator, *, prefix: int, own: int, overlap: float, count: int
) -> list[tuple[int, ...]]:
    """Prompts of equal length of which a share begins with one common prefix, spread evenly, the first one included."""
    common = draw_tokens(rng, prefix)
    shares = [int((i + 1) * overlap + 1e-9) > int(i * overlap + 1e-9) for i in range(count)]
    return [(common if one else draw_tokens(rng, prefix)) + draw_tokens(rng, own) for one in shares]
