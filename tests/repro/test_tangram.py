"""Tangram: what groups of unequal heads hold, whom a fixed cut makes wait, what a budget misses."""

import numpy as np
import pytest

from kb.model import Outcome
from kb.repro import _tangram_checks, tangram
from kb.repro._tangram_host import return_pages, write_tables
from kb.repro.sim import ragged
from kb.repro.sim.give_back import LinkedPool
from tests.repro.test_exact_tier import CLAIMS, bench


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("law", ["few-heads-keep", "two-bumps", "one-bump"])
def test_sorting_never_holds_more_and_never_less_than_is_kept(law):
    shares = ragged.retention(rng(), law, 0.4, (32, 8))
    for group in (1, 2, 4, 8):
        kept, best = float(shares.mean()), ragged.held(shares, group, "sorted")
        assert kept - 1e-12 <= best <= ragged.held(shares, group, "sorted-in-layer") + 1e-12
        assert best <= ragged.held(shares, group)
    assert ragged.held(shares, 1) == pytest.approx(kept)


def test_sorting_inside_a_layer_is_not_enough():
    """Most of what is given back needs the sort to run over all layers."""
    shares = ragged.retention(rng(), "few-heads-keep", 0.15, (32, 8))
    plain, inside, whole = (
        ragged.held(shares, 4, order) for order in ("neighbours", "sorted-in-layer", "sorted")
    )
    assert plain - inside < 0.6 * (plain - whole)


def test_whole_pages_round_each_group_up():
    shares = np.array([[1 / 16, 2 / 16], [0.0, 1.0]])
    assert ragged.pages_held(shares, 1, "neighbours", 16, 16) == 3
    assert ragged.pages_held(shares, 2, "neighbours", 32, 16) == 1 + 2


@pytest.mark.parametrize(("law", "mean", "least", "most"), [
    pytest.param("few-heads-keep", 0.15, 0.12, 0.27, id="heads-split-sharply"),
    pytest.param("two-bumps", 0.7, 0.12, 0.25, id="two-bumps"),
    pytest.param("one-bump", 0.14, 0.0, 0.11, id="all-heads-alike"),
    pytest.param("one-bump", 0.5, 0.06, 0.12, id="all-heads-alike-and-half-is-kept"),
])  # fmt: skip
def test_what_grouping_like_heads_gives_back(law, mean, least, most):
    bumps = next(number for number, name in tangram.LAWS.items() if name == law)
    assert least <= np.mean(tangram.reclaimed(rng(), mean, bumps, 4)) <= most


def test_normal_noise_overflows_as_student_t_says():
    """μ + 2σ estimated from 28 prompts: 3 % of a normal law lie above, and clipping at 0 and 1 moves that little."""
    means = np.full(200, 0.5)
    reserved = ragged.budgets(ragged.observed(rng(1), means, 28, skewed=False))
    share = ragged.overflow(reserved, ragged.observed(rng(2), means, 2000, skewed=False))
    assert share == pytest.approx(0.0299, abs=0.004)


def test_budgets_reserve_more_than_is_kept():
    assert 1.4 <= tangram.over_reservation(rng(), 28, 2) <= 2.6


def test_equal_work_leaves_nobody_waiting_and_a_fixed_cut_does():
    kept = np.array([[8000, 100, 100, 100, 100, 100, 100, 100]], dtype=np.int32)
    fixed, even = (tangram.pieces(kept, 13, balanced=flag) for flag in (False, True))
    assert sum(fixed) == sum(even) == 8700
    assert max(fixed) == -(-8000 // 13)
    assert max(even) <= 128


def test_one_head_per_multiprocessor_makes_the_longest_decide():
    assert tangram.makespan([4, 1, 1], 3) == 4
    assert tangram.makespan([4, 1, 1], 1) == 6


def test_a_pool_takes_back_each_page_once():
    pool = LinkedPool(10)
    assert pool.give_back([3, 1, 4]) == 3
    assert [pool.last.number, pool.last.before.number, pool.last.before.before.number] == [4, 1, 3]


def run_once(candidates):
    made = next(iter(candidates.values())).prepare(rng())
    for one in candidates.values():
        one.verify(made, one.run(made))


def test_tables_and_returned_pages_are_verified():
    run_once(write_tables({"requests": 2, "heads": 256}))
    run_once(return_pages({"pages": 100}))


def test_a_table_that_loses_a_page_is_refused():
    candidate = write_tables({"requests": 2, "heads": 256})["ragged"]
    made = candidate.prepare(rng())
    name, table = candidate.run(made)
    table[0, 0] = -1
    with pytest.raises(Exception, match="page table is wrong"):
        candidate.verify(made, (name, table))


def reclaim_records(claim, page_s):
    quantities = [q for q in tangram.QUANTITIES if q.claim == claim]
    cases = [case for case in tangram.cases(CLAIMS) if case.claim == claim and case.pattern != "host"]
    taken = [one for case in cases for one in tangram.measure(case, bench())]
    assert len(taken) == len(quantities)
    host = next(case for case in tangram.cases(CLAIMS) if case.pattern == "host")
    clocked = bench().record("duration", host, [page_s * host.inputs["pages"]] * 9)
    return [*taken, clocked.model_copy(update={"case": {**clocked.case, "timed": "one-by-one"}})]


@pytest.mark.parametrize(("page_s", "outcome"), [
    pytest.param(1.4e-6, Outcome.HOLDS, id="as-dear-as-the-figure-implies"),
    pytest.param(0.8e-6, Outcome.PARTLY, id="half-of-it"),
    pytest.param(1e-8, Outcome.CONTRADICTED, id="a-hundredth-of-it"),
])  # fmt: skip
def test_what_a_page_costs_decides_the_reclaim_claims(page_s, outcome):
    claim = CLAIMS["tangram/reclaim-llama-3.1-8b"]
    assert _tangram_checks.reclaim(claim, reclaim_records(claim.id, page_s))[0] is outcome


@pytest.mark.parametrize("factor", [10, 0.1])
def test_the_reclaim_verdict_follows_the_stated_share(factor):
    claim = CLAIMS["tangram/reclaim-llama-3.1-8b"]
    moved = claim.model_copy(update={"low": claim.low * factor, "high": claim.high * factor})
    records = reclaim_records(claim.id, 1.4e-6)
    assert _tangram_checks.reclaim(moved, records)[0] is not _tangram_checks.reclaim(claim, records)[0]
