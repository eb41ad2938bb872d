"""One judging rule for the whole base: total, monotone, and never decided by what was seen."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.model import Claim, ClaimRule, Interval, Level, Measurement, Outcome, Text
from kb.repro.harness.judge import combine, judge, place
from kb.repro.harness.rules import Bands, bands, effective_rule, is_fit

numbers = st.floats(-100, 100, allow_nan=False)
ends = st.tuples(numbers, numbers).map(lambda pair: tuple(sorted(pair)))
DECIDED = {Outcome.HOLDS, Outcome.PARTLY, Outcome.CONTRADICTED}


@st.composite
def bands_of(draw):
    """A holds band inside a partly band."""
    a, b, c, d = sorted(draw(st.tuples(*[st.one_of(numbers, st.sampled_from([-math.inf, math.inf]))] * 4)))
    return Bands((b, c), (a, d))


def interval(low, high, n=10):
    return Interval(low=low, value=(low + high) / 2, high=high, n=n, unit="ratio")


def claim(**values):
    filled = {
        "id": "x/y", "item": "url:x", "statement": Text(zh="z", en="e"), "metric": "speed_up", "unit": "ratio",
        "low": 2.0, "high": 2.0, "bound": "about", "provenance": "primary",
    }  # fmt: skip
    return Claim.model_validate(filled | values)


def taken(
    samples,
    *,
    metric="speed_up",
    unit="ratio",
    level="measured",
    at="2026-01-01T00:00:00Z",
    facts=None,
    **case,
):
    return Measurement(
        id=str(hash((tuple(samples), at, *case.items()))), repro="r", case=case, metric=metric, unit=unit, samples=samples,
        seed=0, rule="", code="", inputs="", level=level, env="", at=at, run_facts=facts or {},
    )  # fmt: skip


@given(ends, bands_of())
def test_it_is_total(found, within):
    assert place(interval(*found), within) in {*DECIDED, Outcome.INCONCLUSIVE}


@given(ends, ends, bands_of())
def test_narrowing_an_interval_never_overturns_an_answer(wide, part, within):
    narrow = (max(wide[0], part[0]), min(wide[1], part[1]))
    if narrow[0] > narrow[1]:
        return
    before, after = place(interval(*wide), within), place(interval(*narrow), within)
    assert before is Outcome.INCONCLUSIVE or before is after


ORDER = (Outcome.CONTRADICTED, Outcome.PARTLY, Outcome.HOLDS)


@given(numbers, st.floats(0, 50), bands_of())
def test_a_point_nearer_to_the_band_is_never_judged_worse(value, step, within):
    """Moving a point straight towards the holds band can only improve its outcome."""
    low, high = within.holds
    nearer = min(value + step, max(value, low)) if value < low else max(value - step, min(value, high))
    outcomes = [place(interval(v, v), within) for v in (value, nearer)]
    assert ORDER.index(outcomes[0]) <= ORDER.index(outcomes[1])


@given(
    st.lists(st.sampled_from([*DECIDED, Outcome.INCONCLUSIVE]), min_size=1, max_size=6),
    st.sampled_from(["all", "any"]),
)
def test_settling_an_open_case_never_overturns_the_whole(outcomes, needs):
    before = combine(outcomes, needs)
    for index, outcome in enumerate(outcomes):
        if outcome is Outcome.INCONCLUSIVE:
            for settled in DECIDED:
                after = combine([*outcomes[:index], settled, *outcomes[index + 1 :]], needs)
                assert before in {Outcome.INCONCLUSIVE, after}


@given(
    st.one_of(st.none(), ends), st.one_of(st.none(), ends), ends,
    st.sampled_from(["ratio", "fraction", "s", "score", "tokens"]),
    st.sampled_from(["exact", "about", "up-to", "at-least", "range"]),
    st.sampled_from(["all", "any", "median"]),
    st.lists(st.tuples(st.sampled_from("abc"), st.lists(numbers, min_size=1, max_size=5)), max_size=4),
    st.booleans(),
)  # fmt: skip
def test_every_claim_over_every_record_gets_one_of_seven_outcomes(
    holds, partly, stated, unit, bound, needs, runs, named
):
    rule = ClaimRule(
        metric="speed_up", holds=holds, partly=partly, needs=needs, over=("a", "b") if named else ()
    )
    one = claim(low=stated[0], high=stated[1], unit=unit, bound=bound, rule=rule)
    found = [taken(samples, name=name) for name, samples in runs]
    verdict = judge(one, found)
    assert verdict.verdict in set(Outcome)
    assert verdict.reason
    assert verdict.reason_zh
    assert judge(one, found[::-1]).verdict is verdict.verdict


@pytest.mark.parametrize(
    ("values", "holds", "partly"),
    [
        pytest.param({}, (1.8, 2.2), (math.sqrt(2), math.inf), id="a-factor-is-half-reached-at-its-root"),
        pytest.param({"low": 0.5, "high": 0.5}, (0.45, 0.55), (0.0, math.sqrt(0.5)), id="so-is-a-loss"),
        pytest.param({"bound": "up-to"}, (1.8, math.inf), (math.sqrt(2), math.inf), id="up-to-has-no-far-end"),
        pytest.param({"bound": "at-least"}, (1.8, math.inf), (math.sqrt(2), math.inf), id="nor-has-at-least"),
        pytest.param({"unit": "s", "metric": "ttft"}, (1.8, 2.2), (1.0, 4.0), id="a-time-within-a-factor-of-two"),
        pytest.param(
            {"unit": "fraction", "metric": "share", "low": 0.4, "high": 0.5}, (0.36, 0.55), (0.2, math.inf),
            id="a-share-of-at-least-half",
        ),
        pytest.param(
            {"unit": "score", "metric": "accuracy", "low": -4.0, "high": -4.0}, (-4.4, -3.6), (-math.inf, -2.0),
            id="a-loss-of-points",
        ),
    ],
)  # fmt: skip
def test_defaults_where_a_claim_declares_no_band(values, holds, partly):
    found = bands(claim(**values))
    assert found.holds == pytest.approx(holds)
    assert found.partly == pytest.approx((min(holds[0], partly[0]), max(holds[1], partly[1])))


@pytest.mark.parametrize(
    ("samples", "outcome"),
    [
        pytest.param([2.0] * 3, "holds", id="the-stated-figure"),
        pytest.param([1.81] * 3, "holds", id="short-by-less-than-the-slack"),
        pytest.param([1.5] * 3, "partly", id="more-than-half-the-effect"),
        pytest.param([1.2] * 3, "contradicted", id="less-than-half-the-effect"),
        pytest.param([0.5] * 3, "contradicted", id="the-opposite"),
        pytest.param([1.6, 2.0] * 5, "inconclusive", id="across-the-border"),
    ],
)
def test_where_the_interval_lies_decides(samples, outcome):
    verdict = judge(claim(), [taken(samples)])
    assert verdict.verdict == outcome
    assert verdict.measured.n == len(samples)


def test_an_open_verdict_says_how_many_more_samples_would_settle_it():
    verdict = judge(claim(), [taken([1.6, 1.95] * 6)])
    assert verdict.verdict == "inconclusive"
    count = int(verdict.reason.split("about ")[1].split()[0])
    assert 1 <= count < 10_000
    assert f"约需再取 {count} 个样本" in verdict.reason_zh


def test_a_value_on_the_border_is_not_settled_by_more_runs():
    open_ended = judge(claim(rule=ClaimRule(holds=(2.0, 3.0))), [taken([1.9, 2.1])])
    assert open_ended.verdict == "inconclusive"
    assert "more runs would not settle it" in open_ended.reason


def test_up_to_is_judged_by_the_best_of_the_grid_and_the_median_is_told():
    grid = [taken([v], batch=b) for b, v in ((1, 1.0), (8, 1.5), (64, 2.1))]
    verdict = judge(claim(bound="up-to"), grid)
    assert verdict.verdict == "holds"
    assert verdict.measured.value == 2.1
    assert "median of the grid 1.5" in verdict.reason


def test_a_condition_that_is_a_number_selects_the_case():
    one = claim(conditions={"batch": "8", "model": "any"})
    grid = [taken([v], batch=b) for b, v in ((1, 1.0), (8, 2.0), (64, 9.0))]
    assert judge(one, grid).measured.value == 2.0


def test_cases_under_one_name_span_their_range_and_are_no_samples_of_each_other():
    """Two variants of an assumption, 1.9 and 2.1, are two cases: the range between them, no Student's t of two."""
    found = [taken([1.9], name="a", overhead=0.5), taken([2.1], name="a", overhead=1.0)]
    for rule in (ClaimRule(over=("a",)), ClaimRule()):
        verdict = judge(claim(rule=rule), found)
        assert (verdict.verdict, verdict.measured.low, verdict.measured.high) == ("holds", 1.9, 2.1)


def test_a_case_the_rule_asks_for_and_nobody_measured_is_no_zero():
    rule = ClaimRule(over=("a", "b"))
    verdict = judge(claim(rule=rule), [taken([2.0], name="a")])
    assert (verdict.verdict, verdict.measured) == ("untested", None)
    assert "b" in verdict.reason


def test_a_proxy_does_not_contradict_unless_the_claim_allows_its_scale():
    found = [taken([1.0] * 3, level="proxy")]
    assert judge(claim(), found).verdict == "not-comparable"
    assert judge(claim(rule=ClaimRule(any_scale=True)), found).verdict == "contradicted"
    assert judge(claim(), [taken([2.0] * 3, level="proxy")]).verdict == "holds"


def test_a_clock_needs_two_sessions_to_contradict():
    once = [taken([1.0 + i * 1e-3 for i in range(40)], facts={"clock": "wall"})]
    again = taken([1.0 + i * 1e-3 for i in range(40)], facts={"clock": "wall"}, at="2026-01-02T00:00:00Z")
    assert judge(claim(), once).verdict == "inconclusive"
    assert judge(claim(), [*once, again]).verdict == "contradicted"


def test_a_machine_whose_speed_moved_is_not_judged_but_pairs_are():
    slow = taken([2.0] * 40, metric="duration", unit="s", facts={"clock": "wall", "drift": 1.4})
    time = claim(metric="duration", unit="s")
    assert judge(time, [slow]).verdict == "inconclusive"
    assert "1.4" in judge(time, [slow]).reason
    pairs = taken([2.0] * 40, facts={"clock": "wall", "drift": 1.4})
    assert judge(claim(), [pairs]).verdict == "holds"


def test_throttling_is_told_beside_the_number():
    held_back = taken([2.0] * 40, facts={"clock": "cuda", "throttled": ["power cap"]})
    verdict = judge(claim(), [held_back])
    assert verdict.verdict == "holds"
    assert "throttled meanwhile (power cap)" in verdict.reason
    assert "power cap" in verdict.reason_zh


def test_a_level_is_the_weakest_of_what_counted():
    found = [taken([2.0], name="a"), taken([2.0], name="b", level="simulated")]
    assert judge(claim(), found).level is Level.SIMULATED


def test_a_band_that_misses_the_stated_figure_is_no_rule_for_it():
    assert not is_fit(claim(rule=ClaimRule(holds=(3.0, 4.0))))
    assert is_fit(claim(rule=ClaimRule(metric="share", holds=(3.0, 4.0))))


def test_the_effective_rule_spells_out_every_default():
    assert effective_rule(claim(bound="up-to"))["holds"] == [1.8, "inf"]
