"""Prefix caching by page hashes: what vLLM's block pool promises, one sentence each, and brute force beside it."""

import random

import pytest

from kb.repro.sim.page_hash import PageHashCache, page_hashes
from kb.repro.sim.radix import RadixCache, to_key

PAGE = 4


def cache(pages=64):
    return PageHashCache(PAGE, pages)


def serve(pool, tokens, extra=b""):
    """Run one request to its end; the tokens it found."""
    request = pool.admit(to_key(tokens), extra)
    pool.release(request)
    return request.hit_tokens


class TestHashes:
    def test_equal_tokens_at_another_place_have_another_hash(self):
        first, second = page_hashes(to_key([1, 2, 3, 4] * 2), 16)
        assert first != second

    def test_a_hash_covers_all_that_came_before(self):
        one, other = (page_hashes(to_key([x, 2, 3, 4, 5, 6, 7, 8]), 16) for x in (0, 1))
        assert one[1] != other[1]

    def test_only_full_pages_have_one(self):
        assert len(page_hashes(to_key(range(7)), 16)) == 1

    def test_what_else_decides_the_contents_keeps_requests_apart(self):
        pool = cache()
        for extra in (b"", b"adapter a", b"image 1 at 0"):
            assert serve(pool, [1] * 9, extra) == 0
            assert serve(pool, [1] * 9, extra) == 8


class TestHits:
    def test_a_prompt_of_whole_pages_all_cached_computes_its_last_page(self):
        pool = cache()
        serve(pool, [1] * 12)
        assert serve(pool, [1] * 12) == 8
        assert serve(pool, [1] * 13) == 12

    def test_a_request_that_must_not_read_the_cache_still_fills_it(self):
        pool = cache()
        serve(pool, [1] * 9)
        request = pool.admit(to_key([1] * 9), read_cache=False)
        assert request.hit_tokens == 0
        request = pool.admit(to_key([2] * 9), read_cache=False)
        assert pool.lookup(to_key([2] * 9)) == 8

    def test_looking_up_changes_nothing(self):
        pool = cache(2)
        serve(pool, [1] * 5)
        before = (pool.free_pages, pool.cached_pages)
        assert pool.lookup(to_key([1] * 5)) == 4
        assert (pool.free_pages, pool.cached_pages) == before

    def test_two_requests_at_once_keep_two_copies(self):
        pool = cache()
        one, two = (pool.admit(to_key([3] * 9), read_cache=False) for _ in range(2))
        assert set(one.pages).isdisjoint(two.pages)
        pool.release(one)
        pool.release(two)
        assert (pool.free_pages, pool.cached_pages) == (64, 4)

    def test_equal_to_the_radix_tree_when_nothing_is_evicted(self):
        """Same trace, same page, ample pool: the two designs find the same tokens."""
        rng, pool, tree = random.Random(7), PageHashCache(PAGE, 4000), RadixCache(PAGE, 4000)
        past = [[]]
        for _ in range(200):
            head = rng.choice(past)
            tokens = head[: rng.randrange(len(head) + 1)] + [
                rng.randrange(3) for _ in range(1 + rng.randrange(12))
            ]
            past.append(tokens)
            key = to_key(tokens)
            found = tree.match_prompt(key)
            have = tree.tokens_of(found)
            assert serve(pool, tokens) == have
            tree.insert(found, key[have * 4 :], tree.pool.alloc(-(-(len(tokens) - have) // PAGE)))


class TestEviction:
    def test_pages_without_contents_go_before_cached_ones_and_tails_before_prefixes(self):
        pool = cache(5)
        request = pool.admit(to_key(range(18)))  # four full pages and a part of a fifth
        pages = list(request.pages)
        pool.release(request)
        taken = [pool.admit(to_key([99 + i])).pages[0] for i in range(5)]
        assert taken == [pages[4], pages[3], pages[2], pages[1], pages[0]]

    def test_a_hit_protects_what_it_found(self):
        pool = cache(3)
        serve(pool, [1] * 4)
        serve(pool, [2] * 4)
        request = pool.admit(to_key([1] * 5 + [7] * 4))
        assert request.hit_tokens == 4
        assert pool.lookup(to_key([2] * 5)) == 0

    def test_a_page_taken_for_other_contents_is_forgotten(self):
        pool = cache(2)
        serve(pool, [1] * 8)
        serve(pool, [2] * 8)
        assert pool.lookup(to_key([1] * 9)) == 0
        assert pool.cached_pages == 2

    def test_a_refused_request_leaves_no_trace(self):
        pool = cache(3)
        serve(pool, [1] * 8)
        before = (pool.free_pages, pool.cached_pages)
        assert pool.admit(to_key([1] * 8 + [2] * 8)) is None
        assert (pool.free_pages, pool.cached_pages) == before

    def test_pages_found_do_not_count_as_free_for_the_rest(self):
        """Two cached pages and one other: a request that finds the two may take one more, not two."""
        pool = cache(3)
        serve(pool, [1] * 8)
        assert pool.admit(to_key([1] * 8 + [5] * 4)) is not None
        pool = cache(3)
        serve(pool, [1] * 8)
        assert pool.admit(to_key([1] * 8 + [5] * 5)) is None


class TestRunning:
    def test_growing_takes_a_page_only_when_one_is_crossed_and_names_it_when_full(self):
        pool = cache()
        request = pool.admit(to_key([1] * 3))
        free = pool.free_pages
        assert pool.extend(request, to_key([1]))
        assert (pool.free_pages, pool.cached_pages) == (free, 1)
        assert pool.extend(request, to_key([1]))
        assert (pool.free_pages, pool.cached_pages) == (free - 1, 1)

    def test_growing_past_the_pool_is_refused_and_changes_nothing(self):
        pool = cache(1)
        request = pool.admit(to_key([1] * 4))
        assert not pool.extend(request, to_key([1]))
        assert len(request.key) == 16

    def test_room_for_drafts_is_reused_and_refused_drafts_are_never_named(self):
        pool = cache()
        request = pool.admit(to_key([1] * 3))
        assert pool.extend(request, to_key([2]), lookahead=5)  # one accepted, room for five more
        assert len(request.pages) == 3
        assert pool.cached_pages == 1
        assert pool.extend(request, to_key([3, 3]), lookahead=3)
        assert len(request.pages) == 3

    def test_a_shared_page_is_free_only_after_both_let_go(self):
        pool = cache(8)
        serve(pool, [1] * 8)
        one, two = (pool.admit(to_key([1] * 8 + [x])) for x in (2, 3))
        free = pool.free_pages
        pool.release(one)
        assert pool.free_pages == free + 1
        pool.release(two)
        assert pool.free_pages == 8

    def test_a_page_given_back_twice_is_an_error(self):
        pool = cache()
        request = pool.admit(to_key([1] * 4))
        again = list(request.pages)
        pool.release(request)
        request.pages.extend(again)
        with pytest.raises(ValueError, match="free already"):
            pool.release(request)

    def test_a_request_preempted_finds_its_own_pages_again(self):
        pool = cache()
        request = pool.admit(to_key([1] * 10))
        pool.extend(request, to_key([2] * 3))
        key = request.key
        pool.release(request)
        assert pool.admit(key).hit_tokens == 12

    def test_a_sliding_window_gives_back_what_it_left(self):
        pool = cache(8)
        request = pool.admit(to_key([1] * 18))
        assert pool.drop_before(request, 9) == 2
        assert pool.drop_before(request, 9) == 0
        assert pool.free_pages == 5
        pool.release(request)
        assert pool.free_pages == 8

    def test_reset_needs_an_idle_pool(self):
        pool = cache()
        request = pool.admit(to_key([1] * 9))
        assert not pool.reset()
        pool.release(request)
        assert pool.reset()
        assert (pool.cached_pages, pool.lookup(to_key([1] * 9)), pool.free_pages) == (0, 0, 64)


def play(seed):
    """A random program: holders, queue and hashes stay consistent; unlimited pools find what brute force finds."""
    rng = random.Random(seed)
    pool, past, running = PageHashCache(PAGE, 5000 if seed % 2 else 20), [], []
    ample = bool(seed % 2)
    for _ in range(60):
        if rng.random() < 0.6 or not running:
            head = rng.choice(past) if past and rng.random() < 0.8 else []
            tokens = head[: rng.randrange(len(head) + 1)] + [
                rng.randrange(3) for _ in range(1 + rng.randrange(15))
            ]
            request = pool.admit(to_key(tokens))
            if request is None:
                assert not ample
                continue
            if ample:
                common = max((sum(1 for _ in shared(tokens, old)) for old in past), default=0)
                assert request.hit_tokens == min(common, len(tokens) - 1) // PAGE * PAGE
            past.append(tokens)
            running.append(request)
        else:
            pool.release(running.pop(rng.randrange(len(running))))
        held = {page for request in running for page in request.pages}
        assert len(held) + pool.free_pages == pool.num_pages
        assert pool.cached_pages <= pool.num_pages
    for request in running:
        pool.release(request)
    assert pool.free_pages == pool.num_pages


def shared(one, other):
    """The tokens two sequences have in common from the start."""
    for a, b in zip(one, other, strict=False):
        if a != b:
            return
        yield a


def test_random_programs_agree_with_brute_force():
    for seed in range(100):
        play(seed)


@pytest.mark.soak
def test_ten_thousand_random_programs_agree_with_brute_force():
    for seed in range(10_000):
        play(seed)
    print("10000 programs, seeds 0–9999")  # noqa: T201
