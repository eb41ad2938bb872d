"""The radix cache: what a prefix cache must never do, one sentence each, then random programs against brute force."""

import random
import time

import pytest

from kb.repro.sim.radix import PagePool, RadixCache, page_ids, to_key
from tests.repro.sim.radix_model import play


def cache(page=1, pages=64):
    return RadixCache(page, pages)


def put(tree, tokens, namespace=""):
    """Serve a request that runs alone: match, take pages, insert. Returns the pages of all its tokens."""
    key = to_key(tokens)
    found = tree.match(key, namespace)
    have = tree.tokens_of(found)
    fresh = tree.pool.alloc(-(-(len(tokens) - have) // tree.page_tokens))
    tree.insert(found, key[have * 4 :], fresh)
    return page_ids(found[1] + fresh).tolist()


def hit(tree, tokens, namespace=""):
    return tree.tokens_of(tree.match(to_key(tokens), namespace))


def held(tree):
    return tree.evictable + tree.protected


class TestMatching:
    def test_an_empty_cache_matches_nothing(self):
        assert hit(cache(), [1, 2, 3]) == 0

    @pytest.mark.parametrize("tokens", [[], [1] * 15], ids=["empty", "shorter-than-a-page"])
    def test_a_key_without_a_whole_page_matches_nothing_and_touches_nothing(self, tokens):
        tree = cache(16)
        put(tree, [1] * 32)
        assert hit(tree, tokens) == 0
        assert held(tree) == 2

    def test_a_stored_key_gives_its_pages_in_order(self):
        tree = cache()
        pages = put(tree, [1, 2, 3])
        assert page_ids(tree.match(to_key([1, 2, 3]))[1]).tolist() == pages
        assert page_ids(tree.match(to_key([1, 2]))[1]).tolist() == pages[:2]

    def test_a_shared_prefix_is_stored_once(self):
        tree = cache()
        put(tree, [1, 2, 3, 4, 5, 6, 7, 8])
        put(tree, [1, 2, 9, 10])
        assert held(tree) == 10
        assert hit(tree, [1, 2, 3, 4, 999, 1000]) == 4

    def test_a_match_inside_a_run_changes_no_other_match(self):
        tree = cache()
        pages = put(tree, list(range(10)))
        hit(tree, [0, 1, 2, 77])
        assert held(tree) == 10
        assert page_ids(tree.match(to_key(range(10)))[1]).tolist() == pages

    @pytest.mark.parametrize("page", [1, 16, 64])
    def test_a_divergence_rounds_down_to_a_page(self, page):
        tree = cache(page)
        put(tree, [5] * (4 * page))
        for at in range(4 * page):
            assert hit(tree, [5] * at + [6] * (4 * page - at)) == at // page * page

    def test_keys_that_differ_inside_their_first_page_share_nothing(self):
        tree = cache(16)
        put(tree, [1] * 32)
        put(tree, [1] * 15 + [2] * 17)
        assert held(tree) == 4

    def test_first_insertion_of_a_page_is_the_one_that_stays(self):
        tree = cache()
        pages = put(tree, [1, 2, 3])
        assert put(tree, [1, 2, 3, 4])[:3] == pages

    def test_a_prompt_keeps_its_last_token_to_compute(self):
        tree = cache(16)
        put(tree, [1] * 48)
        assert tree.tokens_of(tree.match_prompt(to_key([1] * 48))) == 32
        assert tree.tokens_of(tree.match_prompt(to_key([1] * 49))) == 48

    def test_peeking_changes_neither_order_nor_splits(self):
        tree = cache()
        put(tree, [1, 2, 3])
        put(tree, [7, 8, 9])
        nodes = len(list(tree.nodes()))
        assert tree.peek(to_key([1, 2, 5])) == 2
        assert len(list(tree.nodes())) == nodes
        tree.evict(1)
        assert (hit(tree, [1, 2, 3]), hit(tree, [7, 8, 9])) == (0, 3)


class TestInsertion:
    def test_insert_says_what_was_there(self):
        tree = cache(16)
        root = tree.match(b"")
        assert tree.insert(root, to_key([1] * 40), tree.pool.alloc(3)) == 0
        assert tree.insert(root, to_key([1] * 40), tree.pool.alloc(3)) == 32
        assert held(tree) == 2

    def test_a_tail_shorter_than_a_page_goes_back_to_the_pool(self):
        tree = cache(16, pages=4)
        put(tree, [1] * 40)
        assert (held(tree), tree.pool.free_pages) == (2, 2)

    def test_two_requests_with_the_same_prompt_leave_one_copy(self):
        tree = cache(16, pages=8)
        key = to_key([3] * 48)
        both = [(tree.match(key), tree.pool.alloc(3)) for _ in range(2)]
        for found, fresh in both:
            tree.insert(found, key, fresh)
        assert (held(tree), tree.pool.free_pages) == (3, 5)

    def test_a_buffer_changed_after_the_insert_changes_nothing(self):
        tree, tokens = cache(), [1, 2, 3]
        put(tree, tokens)
        tokens[0] = 9
        assert hit(tree, [1, 2, 3]) == 3

    def test_fewer_pages_than_the_key_needs_are_refused_before_anything_changes(self):
        tree = cache(16)
        found, fresh = tree.match(b""), tree.pool.alloc(1)
        with pytest.raises(ValueError, match="1 fresh pages, 2 needed"):
            tree.insert(found, to_key([1] * 32), fresh)
        assert held(tree) == 0

    def test_an_insert_after_its_match_was_evicted_is_refused(self):
        tree = cache()
        put(tree, [1, 2])
        found = tree.match(to_key([1, 2]))
        tree.evict(2)
        with pytest.raises(ValueError, match="evicted"):
            tree.insert(found, to_key([3]), tree.pool.alloc(1))

    def test_storage_is_one_prefix_and_the_suffixes(self):
        tree = cache(16, pages=4096)
        shared = [7] * 10_000
        for user in range(50):
            put(tree, shared + [user] * 16)
        assert sum(len(node.key) for node in tree.nodes()) == 4 * (10_000 + 50 * 16)

    def test_names_share_nothing(self):
        tree = cache()
        for name in ("", "a", "b"):
            put(tree, [1, 2, 3], name)
        assert held(tree) == 9
        assert hit(tree, [1, 2, 3], "c") == 0


class TestLocks:
    def test_a_lock_moves_exactly_the_matched_pages(self):
        tree = cache()
        put(tree, [1, 2, 3, 4])
        found = tree.match(to_key([1, 2]))
        tree.lock(found)
        assert (tree.evictable, tree.protected) == (2, 2)
        tree.unlock(found)
        assert (tree.evictable, tree.protected) == (4, 0)

    def test_locks_nest_and_an_unlock_too_many_is_an_error(self):
        tree = cache()
        put(tree, [1, 2])
        found = tree.match(to_key([1, 2]))
        tree.lock(found)
        tree.lock(found)
        tree.unlock(found)
        assert (tree.protected, tree.evict(9)) == (2, 0)
        tree.unlock(found)
        with pytest.raises(ValueError, match="unlock without a lock"):
            tree.unlock(found)

    def test_a_match_of_nothing_can_be_locked_and_must_be_unlocked_as_often(self):
        tree = cache()
        found = tree.match(to_key([1]))
        tree.lock(found)
        assert not tree.reset()
        tree.unlock(found)
        assert tree.reset()
        with pytest.raises(ValueError, match="unlock without a lock"):
            tree.unlock(found)

    def test_a_locked_leaf_protects_its_path_but_not_its_sibling(self):
        tree = cache()
        put(tree, [1, 2, 3])
        put(tree, [1, 2, 4])
        tree.lock(tree.match(to_key([1, 2, 3])))
        assert tree.evict(9) == 1
        assert (hit(tree, [1, 2, 3]), hit(tree, [1, 2, 4])) == (3, 2)

    def test_a_split_of_a_locked_run_keeps_both_halves_locked(self):
        tree = cache()
        put(tree, [1, 2, 3, 4])
        found = tree.match(to_key([1, 2, 3, 4]))
        tree.lock(found)
        hit(tree, [1, 2, 9])
        assert (tree.protected, tree.evict(9)) == (4, 0)
        tree.unlock(found)
        assert (tree.evictable, tree.evict(9)) == (4, 4)

    def test_unlocking_one_of_two_frees_its_own_tail_only(self):
        tree = cache()
        put(tree, [1, 2, 3])
        put(tree, [1, 2, 4])
        one, two = (tree.match(to_key([1, 2, last])) for last in (3, 4))
        tree.lock(one)
        tree.lock(two)
        tree.unlock(one)
        assert (tree.evictable, tree.protected) == (1, 3)
        assert tree.evict(9) == 1


class TestEviction:
    def test_evicting_nothing_frees_nothing(self):
        tree = cache()
        put(tree, [1, 2])
        assert tree.evict(0) == 0

    def test_it_frees_what_is_asked_and_less_than_a_run_more(self):
        tree = cache()
        for at in range(5):
            put(tree, [at * 10 + i for i in range(4)])
        assert tree.evict(5) == 8

    def test_more_than_there_is_frees_all_that_is_unlocked_and_says_so(self):
        tree = cache()
        put(tree, [1, 2])
        put(tree, [3, 4])
        tree.lock(tree.match(to_key([1, 2])))
        assert tree.evict(100) == 2
        assert held(tree) == 2

    @pytest.mark.parametrize("refresh", ["match", "insert", "longer"])
    def test_least_recently_used_goes_first(self, refresh):
        tree = cache()
        put(tree, [1, 2])
        put(tree, [3, 4])
        if refresh == "match":
            hit(tree, [1, 2])
        else:
            put(tree, [1, 2] if refresh == "insert" else [1, 2, 5])
        tree.evict(1)
        assert (hit(tree, [1, 2]), hit(tree, [3, 4])) == (2, 0)

    def test_the_tail_of_a_path_goes_before_its_prefix(self):
        tree = cache()
        put(tree, [1, 2])
        put(tree, [1, 2, 3, 4])
        tree.evict(1)
        assert hit(tree, [1, 2, 3, 4]) == 2

    def test_a_parent_whose_last_child_went_can_go_in_the_same_call(self):
        tree = cache()
        put(tree, [1, 2])
        put(tree, [1, 2, 3, 4])
        assert tree.evict(3) == 4

    def test_a_parent_is_as_young_as_its_youngest_child_was(self):
        """The path of a later match is younger than what was used between."""
        tree = cache()
        put(tree, [1, 2])
        put(tree, [1, 2, 3])
        put(tree, [7, 8])
        hit(tree, [1, 2, 3])
        tree.evict(1)  # [7, 8] is the oldest leaf
        assert (hit(tree, [7, 8]), tree.peek(to_key([1, 2, 3]))) == (0, 3)

    def test_an_unlocked_leaf_keeps_the_time_of_its_last_use(self):
        tree = cache()
        put(tree, [1, 2])
        found = tree.match(to_key([1, 2]))
        tree.lock(found)
        put(tree, [3, 4])
        tree.unlock(found)
        tree.evict(1)
        assert (tree.peek(to_key([1, 2])), tree.peek(to_key([3, 4]))) == (0, 2)

    def test_what_waits_beside_the_order_does_not_pile_up(self):
        """Ten thousand locks and unlocks of one leaf, never an eviction: memory stays bounded."""
        tree = cache()
        put(tree, [1, 2])
        put(tree, [3, 4])
        for _ in range(10_000):
            found = tree.match(to_key([1, 2]))
            tree.lock(found)
            hit(tree, [3, 4])
            tree.unlock(found)
        assert len(tree._exposed) < 2_000
        tree.evict(1)
        assert (tree.peek(to_key([1, 2])), tree.peek(to_key([3, 4]))) == (0, 2)

    def test_cost_of_an_eviction_does_not_grow_with_the_leaves(self):
        """A touch of every leaf and one eviction: a persistent order, no heap rebuilt (generous bound for CI)."""
        took = {}
        for leaves in (1_000, 20_000):
            tree = cache(1, leaves)
            keys = [to_key([i]) for i in range(leaves)]
            for key in keys:
                tree.insert(tree.match(key), key, tree.pool.alloc(1))
            for key in keys:
                tree.match(key)
            samples = []
            for _ in range(50):
                began = time.perf_counter()
                tree.evict(1)
                samples.append(time.perf_counter() - began)
            took[leaves] = sorted(samples)[25]
        assert took[20_000] < 10 * took[1_000]


class TestPool:
    def test_pages_are_distinct_and_a_request_for_too_many_takes_none(self):
        pool = PagePool(8)
        first, second = pool.alloc(5), pool.alloc(3)
        assert sorted(page_ids(first + second)) == list(range(8))
        assert pool.alloc(1) is None
        pool.free(first)
        assert pool.alloc(6) is None
        assert pool.free_pages == 5

    @pytest.mark.parametrize("twice", [[0, 0], [0, 1, 2]], ids=["held-twice", "held-and-free"])
    def test_a_page_counted_twice_is_found(self, twice):
        pool = PagePool(3)
        pool.alloc(2 if twice == [0, 0] else 1)
        with pytest.raises(ValueError, match="accounted"):
            pool.check(twice)

    def test_reset_empties_an_idle_cache_and_refuses_a_busy_one(self):
        tree = cache(pages=4)
        put(tree, [1, 2])
        found = tree.match(to_key([1, 2]))
        tree.lock(found)
        assert not tree.reset()
        tree.unlock(found)
        assert tree.reset()
        assert (held(tree), tree.pool.free_pages, hit(tree, [1, 2])) == (0, 4, 0)


class TestKeys:
    def test_a_token_that_does_not_fit_is_refused(self):
        with pytest.raises(OverflowError):
            to_key([2**31])
        assert len(to_key([2**31], 8)) == 8

    def test_wide_and_narrow_keys_hit_alike(self):
        rng = random.Random(1)
        narrow, wide = RadixCache(4, 500), RadixCache(4, 500, token_bytes=8)
        for _ in range(40):
            tokens = [rng.randrange(2) for _ in range(rng.randrange(30))]
            hits = []
            for tree, width in ((narrow, 4), (wide, 8)):
                key = to_key(tokens, width)
                found = tree.match(key)
                hits.append(tree.tokens_of(found))
                need = -(-(len(tokens) - hits[-1]) // 4)
                tree.insert(found, key[hits[-1] * width :], tree.pool.alloc(need))
            assert hits[0] == hits[1]


PROGRAMS = 10_000


@pytest.mark.parametrize("page", [1, 16, 64])
def test_random_programs_agree_with_brute_force(page):
    """Longest common prefix, pages, accounts, locks and order of eviction, after every step."""
    assert sum(play(seed, page) for seed in range(PROGRAMS // 300)) > 0


@pytest.mark.soak
@pytest.mark.parametrize("page", [1, 16, 64])
def test_ten_thousand_random_programs_agree_with_brute_force(page):
    share = range(PROGRAMS // 3 + 1)
    requests = sum(play(seed, page) for seed in share)
    print(f"page {page}: {len(share)} programs, seeds 0–{share[-1]}, {requests} requests")  # noqa: T201
