"""Prefill and decoding on different engines."""

import numpy as np
import pytest

from kb.errors import WrongUse
from kb.repro.sim import arrivals, invariants
from kb.repro.sim.disaggregated import Group, Link, serve
from kb.repro.sim.loop import simulate
from kb.repro.sim.sweep import sweep
from kb.repro.sim.work import Engine, Requests, StepCost

UNIT = StepCost(np.ones(2049))
ENGINE = Engine(pages=1000)
LINK = Link(bytes_per_second=100.0, latency=0.5)


def checked(requests, engine, cost):
    return invariants.require(simulate(requests, engine, cost), requests, engine)


def test_one_request_by_hand():
    """A step for the prompt, 20 tokens of 10 B over the link in 2.5 s, four more tokens."""
    one = Requests(np.zeros(1), np.array([20]), np.array([5]))
    out = serve(one, Group(ENGINE, UNIT), Group(ENGINE, UNIT), LINK, 10, checked)
    assert (out.first[0], out.moved[0], out.finish[0]) == (1.0, 3.5, 7.5)
    assert out.prefill[0].computed.tolist() == [20]
    assert out.decode[0].computed.tolist() == [4]
    assert out.link_busy == 2.5


def test_the_link_carries_one_after_another():
    two = Requests(np.zeros(2), np.array([20, 20]), np.array([5, 5]))
    out = serve(two, Group(ENGINE, UNIT), Group(ENGINE, UNIT, 2), LINK, 10, checked)
    assert out.moved.tolist() == [3.5, 6.0]
    assert out.finish.tolist() == [7.5, 10.0]


def test_one_token_needs_no_link():
    one = Requests(np.zeros(1), np.array([20]), np.array([1]))
    out = serve(one, Group(ENGINE, UNIT), Group(ENGINE, UNIT), LINK, 10, checked)
    assert (out.finish[0], out.link_busy, out.decode) == (1.0, 0.0, ())


def test_decodes_are_never_held_up_by_prompts():
    """On one engine prompts stretch the steps of those that decode; apart they do not."""
    rng = np.random.default_rng(0)
    rows = Requests(arrivals.poisson(rng, 0.3, 200), rng.integers(500, 2000, 200), np.full(200, 20))
    cost = StepCost(0.1 + np.arange(2049) / 2000)
    together = checked(rows, ENGINE, cost)
    apart = serve(rows, Group(ENGINE, cost), Group(ENGINE, cost), Link(1e12), 10, checked)
    assert max(run.worst_gap.max() for run in apart.decode) < together.worst_gap.max() / 2


def test_names_of_pages_go_with_the_requests():
    rows = Requests(np.arange(6.0), np.full(6, 64), np.full(6, 3))
    rows = arrivals.with_shared_prefix(rows, np.zeros(6, np.int64), np.full(6, 64), 16)
    engine = Engine(pages=100, prefix_cache="hash")
    out = serve(rows, Group(engine, UNIT, 2), Group(ENGINE, UNIT), LINK, 1, checked)
    assert [run.hits.tolist() for run in out.prefill] == [[0, 48, 48]] * 2


def test_closed_loops_are_refused():
    rows = arrivals.closed_loop(Requests(np.zeros(4), np.full(4, 9), np.full(4, 9)), 2)
    with pytest.raises(WrongUse):
        serve(rows, Group(ENGINE, UNIT), Group(ENGINE, UNIT), LINK, 1, checked)


def ends(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    rows = Requests(arrivals.poisson(rng, 1.0, 50), rng.integers(1, 500, 50), rng.integers(1, 50, 50))
    return simulate(rows, Engine(pages=200, draft_length=2, acceptance_rate=0.6), UNIT).finish.tobytes()


def test_the_same_bits_on_one_core_and_on_two():
    assert sweep(ends, [1, 2, 3], 2) == sweep(ends, [1, 2, 3], 1)
