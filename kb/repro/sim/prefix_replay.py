"""Replay requests through a prefix cache under an order of admission: which share of prompt tokens hits.

No clock: requests are admitted while there is room, the one admitted first ends first. A hit is counted as the SGLang
paper counts it: prompt tokens found in the cache over all prompt tokens, the last token of a prompt never found.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kb.repro.sim.prefix_workloads import Request
from kb.repro.sim.radix import Match, RadixCache
from kb.repro.sim.radix_order import hold_back_siblings, order

TOKEN_BYTES = 4


@dataclass(frozen=True)
class Replay:
    """What happened."""

    prompt_tokens: int
    hit_tokens: int
    stuck: int
    """Requests that never fitted: longer than the pool."""

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens found in the cache."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def edge_tokens(requests: Sequence[Request]) -> int:
    """Distinct prompt and output tokens as a tree stores them: what a cache must hold to keep everything."""
    total, before = 0, b""
    for text in sorted(request.prompt + request.output for request in requests):
        common = _common_tokens(before, text)
        total += len(text) // TOKEN_BYTES - common
        before = text
    return total


def longest_tokens(requests: Sequence[Request]) -> int:
    """Tokens of the longest request, output included."""
    return max(len(one.prompt) + len(one.output) for one in requests) // TOKEN_BYTES


def _common_tokens(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other)) // TOKEN_BYTES
    while low < high:
        middle = (low + high + 1) // 2
        if one[: middle * TOKEN_BYTES] == other[: middle * TOKEN_BYTES]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass
class _Running:
    position: int
    match: Match
    matched: int
    fresh: bytes


class _Server:
    """A cache, a queue and what runs."""

    def __init__(
        self, requests: Sequence[Request], cache: RadixCache, policy: str, width: int, seed: int
    ) -> None:
        self.requests = requests
        self.cache = cache
        self.policy = policy
        self.width = width
        self.rng = random.Random(seed)  # noqa: S311  an order of admission, not a secret
        self.ready: list[int] = []
        self.running: deque[_Running] = deque()
        self.hits = self.prompt = 0

    def admit(self) -> None:
        """One round of scheduling: take from the queue, in the policy's order, what fits."""
        if len(self.running) >= self.width:
            return
        waiting = [self.requests[i].prompt for i in self.ready]
        looked_up = lru_cache(maxsize=None)(
            self.cache.peek
        )  # nothing changes in the tree before the first start
        sequence = order(waiting, looked_up, self.policy, self.rng)
        if self.policy in {"lpm", "dfs"} and self.width > 1:
            sequence = hold_back_siblings(sequence, waiting, looked_up)
        gone = set()
        for at in sequence:
            if len(self.running) >= self.width or not self._start(self.ready[at]):
                break
            gone.add(at)
        self.ready = [position for at, position in enumerate(self.ready) if at not in gone]

    def _start(self, position: int) -> bool:
        cache, request = self.cache, self.requests[position]
        match = cache.match_prompt(request.prompt)
        cache.lock(match)
        matched = cache.tokens_of(match)
        size = (len(request.prompt) + len(request.output)) // TOKEN_BYTES
        need = -(-(size - matched) // cache.page_tokens)
        if need > cache.pool.free_pages:
            cache.evict(need - cache.pool.free_pages)
        fresh = cache.pool.alloc(need)
        if fresh is None:
            cache.unlock(match)
            return False
        self.hits += matched
        self.prompt += len(request.prompt) // TOKEN_BYTES
        self.running.append(_Running(position, match, matched, fresh))
        return True

    def end(self) -> int:
        """The request that runs longest ends; its prompt and output stay cached."""
        one = self.running.popleft()
        request = self.requests[one.position]
        rest = (request.prompt + request.output)[one.matched * TOKEN_BYTES :]
        self.cache.insert(one.match, rest, one.fresh)
        self.cache.unlock(one.match)
        return one.position


def replay(
    requests: Sequence[Request],
    arrival: Sequence[int],
    *,
    policy: str,
    pool_tokens: int,
    page_tokens: int = 1,
    width: int = 1,
    seed: int = 0,
) -> Replay:
    """Serve all requests and count.

    Args:
        requests: See `kb.repro.sim.prefix_workloads`.
        arrival: Positions in order of arrival; one that waits for another arrives when that one ends.
        policy: One of `kb.repro.sim.radix_order.ORDERS`.
        pool_tokens: Tokens that cache and running requests share.
        page_tokens: Tokens per page.
        width: Requests that run at once.
        seed: Of the ``random`` order.
    """
    cache = RadixCache(page_tokens, -(-pool_tokens // page_tokens))
    server = _Server(requests, cache, policy, width, seed)
    after: dict[int, list[int]] = {}
    for position in arrival:
        if requests[position].after < 0:
            server.ready.append(position)
        else:
            after.setdefault(requests[position].after, []).append(position)
    while server.ready or server.running:
        server.admit()
        if not server.running:
            break  # what waits is longer than the pool
        server.ready += after.get(server.end(), [])
    return Replay(server.prompt, server.hits, len(server.ready))
