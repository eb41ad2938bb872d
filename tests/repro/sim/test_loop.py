"""The engine step by step: what each rule does, and what no setting may break."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from kb.errors import BadInput, NothingMatches, WrongResult, WrongUse
from kb.repro.sim import arrivals, invariants, policies
from kb.repro.sim.loop import simulate
from kb.repro.sim.metrics import Latency, Objective, alone, goodput, is_stable, itl, meets, slowdown
from kb.repro.sim.work import Engine, Requests, StepCost, StepWork
from tests.repro.sim.workloads import COST, cases

UNIT = StepCost(np.ones(2049))
"""Every step takes a second."""


def of(*rows: tuple[float, int, int], **more) -> Requests:
    """Requests from (arrival, prompt, output)."""
    arrival, prompt, output = zip(*rows, strict=True)
    return Requests(np.array(arrival, float), np.array(prompt), np.array(output), **more)


def watched(requests: Requests, engine: Engine) -> list[StepWork]:
    """The work of each step of a run in which every step takes a second."""
    steps: list[StepWork] = []

    def cost(work: StepWork) -> float:
        steps.append(work)
        return 1.0

    simulate(requests, engine, cost)
    return steps


@settings(max_examples=60, deadline=None)
@given(cases())
def test_every_token_page_and_request_is_accounted_for_and_littles_law_holds(case):
    requests, engine = case
    run = invariants.require(simulate(requests, engine, COST), requests, engine)
    assert run.steps > 0
    assert (run.hits <= requests.prompt - 1).all()


@settings(max_examples=25, deadline=None)
@given(cases(prefix_cache="radix"))
def test_with_a_radix_tree_too(case):
    requests, engine = case
    invariants.require(simulate(requests, engine, COST), requests, engine)


@settings(max_examples=25, deadline=None)
@given(cases(lag=1, draft_length=0))
def test_planning_a_step_ahead_too(case):
    requests, engine = case
    invariants.require(simulate(requests, engine, COST), requests, engine)


def test_the_first_token_comes_with_the_last_prefill_chunk():
    run = simulate(of((0, 250, 3)), Engine(pages=100, token_budget=100), UNIT)
    assert (run.first[0], run.finish[0], run.steps) == (3.0, 5.0, 5)


def test_decodes_go_on_beside_a_prompt_in_chunks():
    steps = watched(of((0, 10, 6), (0.5, 250, 1)), Engine(pages=100, token_budget=100))
    assert [(step.prefill_tokens, step.decodes) for step in steps] == [
        (10, 0),
        (99, 1),
        (99, 1),
        (52, 1),
        (0, 1),
        (0, 1),
    ]


def test_pairs_count_the_query_key_products_of_causal_attention():
    steps = watched(of((0, 30, 1)), Engine(pages=100, token_budget=20))
    assert sum(step.pairs for step in steps) == 30 * 31 // 2


def test_prefill_first_keeps_decodes_waiting():
    engine = Engine(pages=100, token_budget=100, policy="prefill-first")
    steps = watched(of((0, 10, 3), (0.5, 250, 1)), engine)
    assert [(step.prefill_tokens, step.decodes) for step in steps] == [
        (10, 0),
        (100, 0),
        (100, 0),
        (50, 0),
        (0, 1),
        (0, 1),
    ]


def test_who_lacks_a_page_takes_it_from_the_last_and_that_one_starts_again():
    engine = Engine(pages=4, page_tokens=4, token_budget=100)
    run = simulate(of((0, 7, 5), (0, 7, 5)), engine, UNIT)
    assert run.preemptions.tolist() == [0, 1]
    assert run.lost[1] == 8  # at the ninth token each needs a third page: 4 are too few
    assert run.finish[0] == 5.0
    assert run.reused[1] == 0


def test_nobody_starts_in_a_step_that_preempted():
    engine = Engine(pages=4, page_tokens=4, token_budget=100)
    steps = watched(of((0, 7, 5), (0, 7, 5), (0.5, 1, 1)), engine)
    assert steps[2].prefill_sequences == 0


def test_swapping_moves_tokens_twice_and_computes_none_again():
    engine = Engine(pages=4, page_tokens=4, token_budget=100, preemption="swap")
    run = simulate(of((0, 7, 5), (0, 7, 5)), engine, UNIT)
    assert run.preemptions[1] == 1
    assert run.swapped_tokens == 16
    assert run.computed.tolist() == [11, 11]


def test_admission_on_the_whole_footprint_never_preempts():
    engine = Engine(pages=4, page_tokens=4, token_budget=100, admission="whole")
    run = simulate(of((0, 7, 5), (0, 7, 5)), engine, UNIT)
    assert run.preemptions.sum() == 0
    assert run.first[1] == 6.0


def test_a_prompt_seen_before_is_computed_in_its_last_page_only():
    twice = arrivals.with_shared_prefix(of((0, 64, 1), (5, 64, 1)), np.array([0, 0]), np.array([64, 64]), 16)
    run = simulate(twice, Engine(pages=20, prefix_cache="hash"), UNIT)
    assert run.hits.tolist() == [0, 48]  # one token at least is computed, and pages are whole


def test_a_resumed_request_finds_its_own_pages_unless_they_were_taken():
    names = arrivals.with_shared_prefix(of((0, 7, 5), (0, 7, 9)), np.array([0, 1]), np.array([0, 0]), 4)
    run = simulate(names, Engine(pages=5, page_tokens=4, token_budget=100, prefix_cache="hash"), UNIT)
    assert run.preemptions[1] == 1
    assert run.reused[1] > 0


def test_accepted_drafts_shorten_the_way_and_refused_ones_are_lost():
    all_accepted = Engine(pages=10, draft_length=3, acceptance_rate=1.0)
    run = simulate(of((0, 5, 9)), all_accepted, UNIT)
    assert (run.finish[0], run.drafted, run.accepted) == (3.0, 6, 6)
    none = simulate(of((0, 5, 9)), Engine(pages=10, draft_length=3), UNIT)
    assert (none.finish[0], none.accepted, none.lost[0]) == (9.0, 0, 24)


def test_tokens_per_step_follow_the_acceptance_rate():
    rate, drafts = 0.7, 4
    requests = of(*[(0, 1, 400)] * 50)
    run = simulate(
        requests, Engine(pages=10**5, draft_length=drafts, acceptance_rate=rate), StepCost(np.ones(2049))
    )
    per_pass = 1 + run.accepted * drafts / run.drafted
    assert per_pass == pytest.approx((1 - rate ** (drafts + 1)) / (1 - rate), rel=0.02)


def test_a_turn_waits_for_the_answer_and_the_pause_and_finds_what_was_said():
    talk = arrivals.conversations(
        np.array([0.0]), np.array([2]), np.array([20, 20]), np.array([13, 5]), np.array([9.0, 2.0]), 16
    )
    run = simulate(talk, Engine(pages=20, prefix_cache="hash"), UNIT)
    assert run.arrival[1] == run.finish[0] + 2.0
    assert talk.prompt.tolist() == [20, 53]
    assert run.hits[1] == 32  # 32 of the 33 tokens before, the last page is not full


def test_sessions_share_no_pages():
    talk = arrivals.conversations(
        np.array([0.0, 1.0]), np.array([2, 3]), np.full(5, 33), np.full(5, 7), np.zeros(5), 16
    )
    own = [set(talk.page_ids[talk.page_from[i] : talk.page_from[i + 1]].tolist()) for i in range(5)]
    assert own[0] < own[1]
    assert own[2] < own[3] < own[4]
    assert not own[1] & own[4]


def test_planning_ahead_lets_a_newcomer_wait_for_the_step_already_planned():
    rows = of((0, 10, 5), (0.5, 10, 1))
    assert simulate(rows, Engine(pages=10), UNIT).first[1] == 2.0
    assert simulate(rows, Engine(pages=10, lag=1), UNIT).first[1] == 3.0


def test_the_shortest_job_goes_first_and_with_srpt_even_interrupts():
    rows = of((0, 50, 1), (0.1, 40, 1), (0.2, 20, 1))
    engine = {"pages": 100, "token_budget": 10, "max_sequences": 1}
    order = lambda policy: np.argsort(simulate(rows, Engine(**engine, policy=policy), UNIT).finish).tolist()  # noqa: E731
    assert order("fcfs") == [0, 1, 2]
    assert order("sjf") == [0, 2, 1]
    assert order("srpt") == [2, 0, 1] or order("srpt") == [2, 1, 0]


def test_least_attained_service_shares_the_engine():
    rows = of((0, 40, 1), (0, 10, 1))
    run = simulate(rows, Engine(pages=100, token_budget=10, max_sequences=1, policy="las"), UNIT)
    assert run.finish.tolist() == [5.0, 2.0]


def test_longest_prefix_match_takes_whom_the_cache_serves():
    rows = of((0, 64, 1), (0.1, 64, 1), (0.2, 64, 1))
    rows = arrivals.with_shared_prefix(rows, np.array([0, 1, 0]), np.array([64, 64, 64]), 16)
    engine = Engine(pages=100, max_sequences=1, prefix_cache="hash", policy="lpm")
    assert np.argsort(simulate(rows, engine, UNIT).finish).tolist() == [0, 2, 1]


def test_a_request_larger_than_memory_is_refused_before_the_run():
    with pytest.raises(BadInput, match="request 1"):
        simulate(of((0, 5, 5), (1, 500, 5)), Engine(pages=4), UNIT)


def test_speculation_and_planning_ahead_exclude_each_other():
    with pytest.raises(WrongUse):
        simulate(of((0, 5, 5)), Engine(pages=4, lag=1, draft_length=2), UNIT)


def test_an_unknown_policy_names_those_there_are():
    with pytest.raises(NothingMatches) as error:
        policies.find("shortest")
    assert "srpt" in error.value.cause


@pytest.mark.parametrize("field", ["computed", "lost", "finish", "gaps"])
def test_a_run_that_lost_count_judges_nothing(field):
    rows, engine = of((0, 20, 5), (1, 20, 5)), Engine(pages=10)
    run = simulate(rows, engine, UNIT)
    getattr(run, field)[0] += 1
    with pytest.raises(WrongResult):
        invariants.require(run, rows, engine)


def test_latencies_by_hand():
    rows = of((0, 10, 3), (0.5, 10, 1))
    run = simulate(rows, Engine(pages=10), UNIT)
    seen = Latency.of(run, warm_up=0)
    assert (seen.ttft.tolist(), seen.e2e.tolist(), seen.tpot.tolist()) == ([1.0, 1.5], [3.0, 1.5], [1.0])
    assert itl(run, 0.5) == pytest.approx(1.0, rel=0.016)
    assert meets(run, Objective(ttft=1.2)).tolist() == [True, False]
    assert goodput(run, Objective(ttft=1.2), warm_up=0) == pytest.approx(1 / 3)


def test_slowdown_is_one_for_a_request_alone():
    rows, engine = of((0, 250, 30)), Engine(pages=100, token_budget=100)
    cost = StepCost(np.linspace(0.01, 0.2, 101), per_pair=1e-6, per_kv_token=1e-5, per_prefill_sequence=1e-3)
    run = simulate(rows, engine, cost)
    assert slowdown(run, alone(rows, engine, cost)) == pytest.approx(1.0)


@pytest.mark.parametrize(("rate", "stable"), [(0.05, True), (5.0, False)])
def test_an_overloaded_point_is_called_unstable(rate, stable):
    rng = np.random.default_rng(0)
    rows = Requests(arrivals.poisson(rng, rate, 300), np.full(300, 100), np.full(300, 10))
    run = simulate(rows, Engine(pages=100, max_sequences=1), UNIT)
    assert is_stable(run) is stable


@pytest.mark.parametrize(
    ("make", "variation"),
    [
        (lambda rng: arrivals.poisson(rng, 4.0, 40_000), 1.0),
        (lambda rng: arrivals.gamma(rng, 4.0, 2.5, 40_000), 2.5),
        (lambda rng: arrivals.constant(4.0, 40_000), 0.0),
    ],
)
def test_arrivals_have_the_rate_and_variation_they_state(make, variation):
    pauses = np.diff(make(np.random.default_rng(1)))
    assert pauses.mean() == pytest.approx(0.25, rel=0.03)
    assert pauses.std() / pauses.mean() == pytest.approx(variation, rel=0.05, abs=1e-9)


def test_a_closed_loop_never_has_more_in_flight_than_clients():
    rows = arrivals.closed_loop(of(*[(0, 10, 4)] * 20), 3)
    run = simulate(rows, Engine(pages=100), UNIT)
    events = sorted([(t, 1) for t in run.arrival] + [(t, -1) for t in run.finish], key=lambda e: (e[0], e[1]))
    assert max(np.cumsum([change for _, change in events])) == 3
    assert math.isfinite(run.end)
