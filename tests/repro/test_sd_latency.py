"""Speculation fades with load as Little's law says, and the stepping engine that shows it counts every step."""

import dataclasses
import datetime as dt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.model import Level
from kb.repro import sd_latency
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import Reproduction
from kb.repro.sd_latency import DRAFTED, OUTPUT, PLAIN, cost_ratios
from kb.repro.sim import sd_roofline
from kb.repro.sim.sd_law import break_even, engine_ratios, speed_up
from kb.repro.sim.stepper import Engine, expected_tokens, fit, mean_latency, needed_steps
from kb.store import Base

UNIT: Reproduction = sd_latency
BASE = Base(Path(__file__).parents[2] / "shared/research-kb")
NOW = dt.datetime(2026, 7, 1, tzinfo=dt.UTC).isoformat()


def bench():
    words = dict.fromkeys(("rule", "code", "inputs", "env"), "-")
    return Bench(Declared(repro="sd-latency", seed=0, level=Level.DERIVED, at=NOW, **words))


def judged(name, taken):
    [verdict] = sd_latency.judge([BASE.claims(["sd-latency"])[f"sd-latency/{name}"]], taken)
    return verdict


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


def test_pooled_coefficients_come_back_where_the_cost_has_their_form():
    """Latencies made by the fitted form itself: the six come back, and the seventh term cannot be told from them."""
    true = (0.1, 0.009, 0.0004, 0.07, 0.0002, 0.00001)
    curves = []
    for rate in (0.5, 0.8, 0.95):
        for length in (1, 3, 5, 10):
            batch = np.linspace(1, 200, 40)
            passes = sd_roofline.LENGTH / expected_tokens(rate, length)
            per_pass = np.array([1, passes, passes * length])
            latency = per_pass @ true[:3] + batch * (per_pass @ true[3:])
            curves.append(sd_roofline.Curve(rate, length, batch, batch / latency, latency))
    found = sd_roofline.fit_pooled(curves)
    assert (*found.c1, *found.c2) == pytest.approx(true, rel=1e-6)
    assert found.r2 == pytest.approx(1.0)
    assert found.rank == 6


def test_fitted_to_a_roofline_the_drafter_is_charged_for_verification():
    taken = list(sd_latency.measure(sd_latency.Pooled(), bench()))
    verdict = judged("effective-coeffs", taken)
    assert verdict.verdict == "partly"
    assert "6 of 7 coefficients" in verdict.reason


@pytest.mark.parametrize(
    ("r2", "factor", "outcome"),
    [
        pytest.param(0.99, 1.2, "holds", id="predicts-and-tells-apart"),
        pytest.param(0.99, 8.0, "partly", id="predicts-but-misattributes"),
        pytest.param(0.5, 1.0, "contradicted", id="does-not-predict"),
    ],
)
def test_the_verdict_on_the_coefficients_follows_the_fit(r2, factor, outcome):
    case = sd_latency.Pooled()
    values = {"fit_r2": r2, "factor": factor, "count": 6}
    taken = [bench().record(metric, case, [value]) for metric, value in values.items()]
    assert judged("effective-coeffs", taken).verdict == outcome


@given(st.integers(1, 200), st.sampled_from([(4, 32), (8, 128), (2, 8)]))
def test_coverage_grows_from_one_tokens_experts_towards_all(tokens, sizes):
    chosen, experts = sizes
    share = float(sd_roofline.coverage(np.array([tokens]), chosen, experts)[0])
    assert chosen / experts - 1e-12 <= share < 1 or share == pytest.approx(1)


def test_counted_coverage_is_the_formula_for_even_routing_and_less_for_uneven():
    tokens = np.array([1.0, 4.0, 16.0, 32.0])
    rng = np.random.default_rng(0)
    even, uneven = (np.mean([sd_roofline.counted_coverage(rng, tokens, 4, 32, skew) for _ in range(8)], axis=0)
                    for skew in (0.0, 1.0))  # fmt: skip
    assert even == pytest.approx(sd_roofline.coverage(tokens, 4, 32), abs=0.02)
    assert (uneven[1:] < even[1:] - 0.02).all()


@pytest.mark.parametrize(
    ("dense", "wide", "outcome"),
    [
        pytest.param(0.85, 0.99, "holds", id="lifted"),
        pytest.param(0.98, 0.99, "partly", id="nothing-to-lift"),
        pytest.param(0.85, 0.90, "contradicted", id="no-fit-either-way"),
    ],
)
def test_the_verdict_on_coverage_follows_the_fits(dense, wide, outcome):
    taken = []
    for routing in sd_latency.ROUTINGS:
        case = sd_latency.Mixture(model="gpt-oss-20b", pattern=routing)
        taken.append(bench().record("fit_r2", case, [dense]))
        taken.append(bench().record("fit_r2", case.model_copy(update={"form": "coverage"}), [wide]))
    assert judged("moe-r2-gpt-oss-20b", taken).verdict == outcome
    assert judged("moe-r2-qwen3-30b-a3b", taken).verdict == "untested"  # another model's curve says nothing


@pytest.mark.parametrize(
    ("factor", "outcome"), [(1.2, "inconclusive"), (0.2, "contradicted")], ids=["in-reach", "out-of-reach"]
)
def test_a_stated_speed_up_is_contradicted_only_out_of_reach(factor, outcome):
    taken = [
        bench().record("speed_up", sd_latency.LowLoad(acceptance_rate=a, draft_length=5), [factor * 3.5 * a])
        for a in (0.5, 0.9)
    ]
    verdict = judged("low-load-speedup-8b", taken)
    assert verdict.verdict == outcome
    assert "acceptance" in verdict.reason or "at most" in verdict.reason


def test_figures_are_drawn_from_the_records_in_both_languages():
    taken = [
        one
        for case in sd_latency.cases({})
        if isinstance(case, sd_latency.Ratios)
        for one in sd_latency.measure(case, bench())
    ]
    for name, factor in (("plain", 1.0), ("drafted", 0.5)):
        for load in (0.1, 0.3, 0.5):
            latency = factor / (1 - load * (2 if name == "drafted" else 1) * 0.9)
            taken.append(bench().record("e2e_latency", sd_latency.Load(name=name, load=load), [latency]))
    by_load, by_length = sd_latency.figure(taken)
    assert "from 1.80 at load 0.10 to 0.36 at 0.50" in by_load.title.en
    assert "gone at load 0.36" in by_load.title.en
    assert "points; least at draft lengths" in by_length.title.en
    assert by_load.alt.zh
    assert by_length.alt.zh
    assert sd_latency.figure([]) == ()


@pytest.mark.soak
def test_ten_seeds_give_every_claim_the_same_verdict():
    known = BASE.claims(["sd-latency"])
    claims = [known[name] for name in sd_latency.CLAIMS]
    seen = set()
    for seed in range(10):
        one = bench()
        one.declared = dataclasses.replace(one.declared, seed=seed)
        taken = [m for case in sd_latency.cases({}) for m in sd_latency.measure(case, one)]
        seen.add(tuple((v.claim, str(v.verdict)) for v in sd_latency.judge(claims, taken)))
    assert len(seen) == 1
