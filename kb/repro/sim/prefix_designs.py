"""The two designs of prefix cache on one trace: a radix tree by the token, hashes by the page of 16."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.repro.sim.page_hash import PageHashCache
from kb.repro.sim.prefix_workloads import Text
from kb.repro.sim.radix import RadixCache, to_key

HASH_PAGE = 16


def shared_prompts(
    prefix: int, own: int, sharing: float, count: int, rng: np.random.Generator
) -> list[bytes]:
    """Prompts of which a share begins with one common prefix, in random order."""
    text = Text(rng)
    common = text(prefix)
    out = [
        to_key((common if number < round(sharing * count) else text(prefix)) + text(own))
        for number in range(count)
    ]
    return [out[i] for i in rng.permutation(count).tolist()]


def hits_of_both(prompts: Sequence[bytes]) -> tuple[int, int]:
    """Hit tokens of a radix tree with pages of one token and of page hashes with pages of 16, nothing evicted."""
    tokens = sum(len(key) for key in prompts) // 4
    tree, hashes = RadixCache(1, tokens), PageHashCache(HASH_PAGE, tokens // HASH_PAGE + len(prompts) + 1)
    by_tree = by_hash = 0
    for key in prompts:
        match = tree.match_prompt(key)
        found = tree.tokens_of(match)
        fresh = tree.pool.alloc(len(key) // 4 - found)
        request = hashes.admit(key)
        if fresh is None or request is None:
            raise ValueError("the prompts do not fit the pool that was made for them")
        tree.insert(match, key[found * 4 :], fresh)
        by_tree, by_hash = by_tree + found, by_hash + request.hit_tokens
        hashes.release(request)
    return by_tree, by_hash
