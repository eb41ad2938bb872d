"""In which order waiting requests are admitted: what decides how often a prefix cache hits.

Source: arXiv:2312.07104 algorithm 1 and theorem 3.1; today's policies of SGLang, whose longest-prefix order
falls back to arrival order for long queues and whose in-batch rule lets one of several siblings go first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

ORDERS = ("fcfs", "lpm", "dfs", "random")
LONG_QUEUE = 128
"""Waiting requests above which SGLang stops sorting by longest prefix."""
IN_BATCH_TOKENS = 32
"""A request with at most this many cached tokens waits if a sibling ahead of it shares more than this many."""


def order(
    waiting: Sequence[bytes],
    cached_tokens: Callable[[bytes], int],
    policy: str,
    rng: random.Random,
    *,
    queue_limit: int | None = None,
) -> list[int]:
    """Positions of ``waiting`` in the order of admission.

    Args:
        waiting: Keys of the prompts, in order of arrival.
        cached_tokens: Tokens of a key in the cache, which is not touched: `RadixCache.peek`.
        policy: One of `ORDERS`. ``lpm`` sorts by cached prefix, longest first; ``dfs`` walks the tree of all
            waiting prompts depth first, so that requests of one prefix stay together.
        rng: For ``random``.
        queue_limit: Longest queue that ``lpm`` sorts, `LONG_QUEUE` in SGLang; None for no limit.

    Raises:
        ValueError: ``policy`` is none of `ORDERS`.
    """
    positions = list(range(len(waiting)))
    if policy == "fcfs" or (policy == "lpm" and queue_limit is not None and len(waiting) > queue_limit):
        return positions
    if policy == "random":
        rng.shuffle(positions)
        return positions
    cached = [cached_tokens(key) for key in waiting]
    if policy == "lpm":
        return sorted(positions, key=lambda i: -cached[i])
    if policy == "dfs":
        # sorting by the keys themselves is a depth-first walk; the subtree that is warm goes first
        walk = sorted(positions, key=lambda i: waiting[i])
        at = max(range(len(walk)), key=lambda rank: cached[walk[rank]], default=0)
        return walk[at:] + walk[:at]
    raise ValueError(f"no order called {policy!r}; there are {', '.join(ORDERS)}")


def hold_back_siblings(
    sequence: Sequence[int],
    waiting: Sequence[bytes],
    cached_tokens: Callable[[bytes], int],
    *,
    token_bytes: int = 4,
) -> list[int]:
    """Move requests to the end whose uncached prefix a sibling ahead of them is about to compute.

    Args:
        sequence: Order so far, positions in ``waiting``.
        waiting: Keys of the prompts.
        cached_tokens: Tokens of a key in the cache.
        token_bytes: Width of a token id.

    Returns:
        The same positions: first those that go now, then those that had better wait for a sibling.
    """
    now, later = [], []
    ahead: set[bytes] = set()
    width = (IN_BATCH_TOKENS + 1) * token_bytes
    for i in sequence:
        head = waiting[i][:width]
        if len(head) == width and cached_tokens(waiting[i]) <= IN_BATCH_TOKENS:
            if head in ahead:
                later.append(i)
                continue
            ahead.add(head)
        now.append(i)
    return now + later
