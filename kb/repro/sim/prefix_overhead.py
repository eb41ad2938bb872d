"""What a radix tree costs where it gains nothing: requests that share no token, served one after another."""

from __future__ import annotations

import numpy as np

from kb.errors import WrongResult
from kb.repro.sim.prefix_workloads import Text
from kb.repro.sim.radix import RadixCache, to_key


def serve_all(prepared: tuple[RadixCache, list[tuple[list[int], int]]]) -> int:
    """Match, allocate and insert every request; tokens found."""
    cache, requests = prepared
    found = 0
    for tokens, prompt in requests:
        key = to_key(tokens)
        match = cache.match_prompt(key[: prompt * 4])
        cache.lock(match)
        matched = cache.tokens_of(match)
        fresh = cache.pool.alloc(len(tokens) - matched)
        cache.insert(match, key[matched * 4 :], fresh or b"")
        cache.unlock(match)
        found += matched
    return found


def unshared(rng: np.random.Generator, count: int) -> tuple[RadixCache, list[tuple[list[int], int]]]:
    """Requests that share nothing: prompt and output lognormal, a few hundred tokens each."""
    sizes = np.maximum(4, rng.lognormal(5.0, 1.0, size=(count, 2)).astype(int))
    text = Text(rng)
    requests = [([number, *text(int(p + o))], int(p)) for number, (p, o) in enumerate(sizes)]
    return RadixCache(1, int(sizes.sum()) + count), requests


def nothing_shared(prepared: tuple[RadixCache, list[tuple[list[int], int]]], found: int) -> None:
    """The reference for `serve_all`: every token is new and is kept."""
    cache, requests = prepared
    kept = sum(len(tokens) for tokens, _ in requests)
    if found or cache.evictable != kept:
        raise WrongResult(
            f"{found} tokens found and {cache.evictable} kept where none is shared and {kept} are new",
            cause="the tree matches what is not there or loses what is",
            remedy="pytest tests/repro/sim/test_radix.py",
        )
