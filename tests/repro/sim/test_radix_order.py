"""Order of admission: who goes first decides what is still cached when the next one comes."""

import random

import pytest

from kb.repro.sim.radix import RadixCache, to_key
from kb.repro.sim.radix_order import LONG_QUEUE, ORDERS, hold_back_siblings, order

A, B = [1] * 40, [2] * 40
WAITING = [to_key(tokens) for tokens in ([*A, 5], [*B, 6], [*A, 7], [9] * 3, [*B, 8])]


def warm(tokens):
    cache = RadixCache(1, 500)
    key = to_key(tokens)
    cache.insert(cache.match(key), key, cache.pool.alloc(len(tokens)))
    return cache


def rng():
    return random.Random(0)


@pytest.mark.parametrize("policy", ORDERS)
def test_every_order_admits_everyone_once_and_leaves_the_cache_alone(policy):
    cache = warm(B)
    nodes = len(list(cache.nodes()))
    assert sorted(order(WAITING, cache.peek, policy, rng())) == [0, 1, 2, 3, 4]
    assert len(list(cache.nodes())) == nodes
    assert order([], cache.peek, policy, rng()) == []


def test_first_come_first_served_is_arrival():
    assert order(WAITING, warm(B).peek, "fcfs", rng()) == [0, 1, 2, 3, 4]


def test_longest_prefix_first_takes_who_hits_most_and_keeps_arrival_among_equals():
    assert order(WAITING, warm(B).peek, "lpm", rng()) == [1, 4, 0, 2, 3]


def test_longest_prefix_gives_up_on_a_long_queue():
    many = [to_key([2, i]) for i in range(LONG_QUEUE)] + [WAITING[1]]
    assert order(many, warm(B).peek, "lpm", rng(), queue_limit=LONG_QUEUE) == list(range(LONG_QUEUE + 1))
    assert order(many, warm(B).peek, "lpm", rng())[0] == LONG_QUEUE


def test_depth_first_keeps_siblings_together_and_starts_where_it_is_warm():
    walk = order(WAITING, warm(B).peek, "dfs", rng())
    assert set(walk[:2]) == {1, 4}
    assert abs(walk.index(0) - walk.index(2)) == 1


def test_an_unknown_order_is_refused_by_name():
    with pytest.raises(ValueError, match="no order called 'lifo'"):
        order(WAITING, warm(B).peek, "lifo", rng())


def test_one_of_several_cold_siblings_goes_ahead_of_the_others():
    cache = RadixCache(1, 100)
    assert hold_back_siblings(range(5), WAITING, cache.peek) == [0, 1, 3, 2, 4]


def test_siblings_of_a_cached_prefix_need_not_wait():
    cache = warm(B)
    assert hold_back_siblings(range(5), WAITING, cache.peek) == [0, 1, 3, 4, 2]
