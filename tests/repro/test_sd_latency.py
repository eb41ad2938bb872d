"""Speculation fades with load as Little's law says, and the stepping engine that shows it counts every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.repro import sd_latency
from kb.repro.harness.contract import Reproduction
from kb.repro.sd_latency import DRAFTED, OUTPUT, PLAIN, break_even, cost_ratios, engine_ratios, speed_up
from kb.repro.sim.stepper import Engine, expected_tokens, fit, mean_latency, needed_steps

UNIT: Reproduction = sd_latency


def step_by_step(engine, arrivals, steps):
    """The slow oracle: every step looks at every request."""
    left, done, now = list(steps), [0.0] * len(steps), 0.0
    joined = set()
    while any(left):
        waiting = [i for i, a in enumerate(arrivals) if left[i] and a <= now]
        if not waiting:
            now = min(a for i, a in enumerate(arrivals) if left[i])
            continue
        new = [i for i in waiting if i not in joined]
        joined.update(new)
        now += engine.fixed + engine.each * len(waiting) + engine.prefill * len(new)
        for i in waiting:
            left[i] -= 1
            if not left[i]:
                done[i] = now
    return done


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 20), st.sampled_from([PLAIN, DRAFTED]))
def test_skipping_over_steps_changes_no_latency(seed, rate, engine):
    """The calendar of leaving steps gives the latencies of a loop that visits every request at every step."""
    requests, output = 20, 12
    fast = mean_latency(np.random.default_rng(seed), engine, rate, output, requests)
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, requests))
    done = step_by_step(engine, arrivals, needed_steps(rng, engine, output, requests).tolist())
    assert fast == pytest.approx(float((np.array(done) - arrivals)[2:].mean()))


@given(st.floats(0, 0.99), st.integers(0, 12))
def test_tokens_per_pass_lie_between_one_and_all(rate, length):
    assert 1 <= expected_tokens(rate, length) <= length + 1


@pytest.mark.parametrize(
    ("rate", "length", "tokens"),
    [
        pytest.param(0.8, 5, 3.689, id="six-tokens-verified"),
        pytest.param(0.0, 5, 1.0, id="nothing-accepted-leaves-the-bonus-token"),
        pytest.param(1.0, 5, 6.0, id="everything-accepted"),
    ],
)
def test_tokens_per_pass(rate, length, tokens):
    assert expected_tokens(rate, length) == pytest.approx(tokens, abs=1e-3)


def test_expected_steps_are_the_mean_of_the_drawn_ones():
    drawn = needed_steps(np.random.default_rng(0), DRAFTED, OUTPUT, 20_000).mean()
    assert DRAFTED.expected_steps(OUTPUT) == pytest.approx(drawn, rel=0.005)


def test_a_request_alone_takes_c1():
    alone = mean_latency(np.random.default_rng(0), PLAIN, 0.001, OUTPUT, 50)
    assert alone == pytest.approx(PLAIN.coefficients(OUTPUT)[0], rel=0.005)


@given(st.floats(0.1, 0.9), st.floats(1.05, 3))
def test_at_the_break_even_load_nothing_is_gained(c1_ratio, c2_ratio):
    """r* solves speed-up = 1; without load the speed-up is 1/C1R."""
    assert speed_up(break_even(c1_ratio, c2_ratio), c1_ratio, c2_ratio) == pytest.approx(1)
    assert speed_up(0, c1_ratio, c2_ratio) == pytest.approx(1 / c1_ratio)


def test_the_stated_example_of_a_break_even():
    assert break_even(0.4, 1.3) == pytest.approx(0.667, abs=1e-3)


def test_the_fit_recovers_a_hyperbola():
    rates = np.linspace(0.5, 9, 9)
    c1, c2, r2 = fit(rates, 2.1 / (1 - rates * 0.08))
    assert (c1, c2, r2) == pytest.approx((2.1, 0.08, 1.0))


def test_simulated_speed_up_follows_the_law_and_crosses_at_r_star():
    """At half the break-even load it pays, above it it costs."""
    ratios, star = engine_ratios(), break_even(*engine_ratios())
    seen = []
    for load in (0.5 * star, 1.1 * star):
        rate = load / PLAIN.coefficients(OUTPUT)[1]
        runs = [mean_latency(np.random.default_rng(7), e, rate, OUTPUT, 4000) for e in (PLAIN, DRAFTED)]
        seen.append(runs[0] / runs[1])
        assert seen[-1] == pytest.approx(speed_up(load, *ratios), rel=0.08)
    assert seen[0] > 1 > seen[1]


def test_longer_drafts_cost_more_under_load():
    """By roofline, C1R falls and C2R rises from a short to a long draft at an acceptance rate of 0.5."""
    (c1_short, c2_short), (c1_long, c2_long) = cost_ratios(0.5, 1), cost_ratios(0.5, 8)
    assert c2_long > c2_short
    assert c1_long != c1_short


def test_an_engine_that_adds_nothing_per_request_never_saturates():
    engine = Engine(fixed=0.01, each=0.0, prefill=0.0)
    latency = mean_latency(np.random.default_rng(1), engine, 50, 20, 500)
    assert latency == pytest.approx(engine.coefficients(20)[0], rel=0.03)
