"""A page goes back exactly when its last owner lets go, and every page is owned once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.repro.sim.pages import OutOfPagesError, PagedCache, PagePool
from kb.repro.sim.survivors import PATTERNS, draw, expected_freed, none_of, num_heads


def random_masks():
    """Survivor masks of every shape."""
    return st.tuples(st.integers(1, 4), st.integers(1, 40)).flatmap(
        lambda shape: st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda bits: np.array(bits).reshape(shape)
        )
    )


@given(random_masks(), st.integers(1, 9))
def test_a_page_is_freed_exactly_when_no_head_keeps_any_of_its_tokens(kept, size):
    heads, tokens = kept.shape
    pool = PagePool(-(-tokens // size))
    cache = PagedCache.fill(pool, tokens, heads, size)
    freed = cache.evict(kept)
    empty = [not kept[:, start : start + size].any() for start in range(0, tokens, size)]
    assert freed == sum(empty) == pool.num_free
    assert [page < 0 for page in cache.table] == empty


@given(random_masks(), st.integers(1, 9), st.booleans())
def test_compaction_leaves_the_pages_of_the_longest_head_and_loses_no_entry(kept, size, keep_order):
    heads, tokens = kept.shape
    pool = PagePool(-(-tokens // size))
    cache = PagedCache.fill(pool, tokens, heads, size)
    cache.evict(kept)
    moved, _ = cache.compact(keep_order=keep_order)
    longest = int(kept.sum(axis=1).max())
    assert cache.num_pages == pool.num_pages - pool.num_free == -(-longest // size)
    assert cache.live.sum(axis=1).tolist() == kept.sum(axis=1).tolist()
    assert len(set(cache.table[cache.table >= 0].tolist())) == cache.num_pages
    assert moved == sum(_moves(head.tolist(), keep_order) for head in kept)


def _moves(kept: list[bool], keep_order: bool) -> int:
    """Survivors whose place changes, entry by entry."""
    count = sum(kept)
    places = [i for i, alive in enumerate(kept) if alive]
    if keep_order:
        return sum(place != slot for slot, place in enumerate(places))
    return sum(place >= count for place in places)


@given(random_masks())
def test_filling_holes_never_moves_more_than_keeping_the_order(kept):
    cache = PagedCache.fill(PagePool(kept.shape[1]), kept.shape[1], kept.shape[0], 1)
    cache.evict(kept)
    assert cache.copies(keep_order=False) <= cache.copies(keep_order=True)


def test_a_shared_page_stays_until_its_last_owner_drops_it():
    pool = PagePool(4)
    pages = pool.take(3)
    pool.share(pages[:1])
    assert pool.drop(pages) == 2
    assert pool.owners(int(pages[0])) == 1
    assert pool.drop(pages[:1]) == 1
    assert pool.num_free == 4


def test_a_pool_that_is_too_small_gives_nothing():
    pool = PagePool(2)
    with pytest.raises(OutOfPagesError):
        pool.take(3)
    assert pool.num_free == 2


def test_a_free_page_cannot_be_dropped_or_shared():
    pool = PagePool(2)
    with pytest.raises(ValueError, match="cannot be dropped"):
        pool.drop(np.array([0]))
    with pytest.raises(ValueError, match="cannot be shared"):
        pool.share(np.array([0]))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("context", "size"), [(4_000, 16), (1_000, 7), (4_000, 64)])
def test_counts_agree_with_the_closed_form(pattern, context, size):
    """Within five standard errors of forty draws; runs have an approximate form and two points of slack."""
    rng = np.random.default_rng(1)
    freed = []
    for _ in range(40):
        kept = draw(pattern, context, context // 10, rng)
        pool = PagePool(-(-context // size))
        PagedCache.fill(pool, context, num_heads(pattern), size).evict(kept)
        freed.append(pool.num_free / pool.num_pages)
    slack = 0.02 if pattern.startswith("runs") else 0.0
    error = 5 * np.std(freed) / np.sqrt(40) + slack + 1.5 / (context / size)
    assert np.mean(freed) == pytest.approx(expected_freed(pattern, context, context // 10, size), abs=error)


def test_the_chance_that_a_page_is_empty_is_the_hypergeometric_one():
    assert none_of(16_000, 1_600, 16) == pytest.approx(0.18515, abs=5e-6)
    assert none_of(10, 10, 1) == 0
    assert none_of(10, 3, 2) == pytest.approx(7 / 10 * 6 / 9)
