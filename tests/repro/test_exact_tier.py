"""The exact tier: every verdict rests on a computation, and follows both the stated number and the inputs."""

import importlib
from pathlib import Path

import pytest

from kb.model import Level, Outcome
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import units
from kb.repro.harness.exact import Point, exact, own_figures, printed_tolerance, samples
from kb.repro.harness.rules import metric_of
from kb.repro.harness.timed import CLOCKED
from kb.repro.harness.verdicts import draw
from kb.store import Base

BASE = Base(Path(__file__).parents[2] / "shared/research-kb")
CLAIMS = BASE.claims()
MODULES = {
    name: module
    for name, unit in units().items()
    if hasattr(module := importlib.import_module(unit.module), "QUANTITIES")
}
DECIDED = {Outcome.HOLDS, Outcome.PARTLY, Outcome.CONTRADICTED}
FACTORS = (3, 1 / 3, 10, 0.1, 30, 1 / 30, 1.1, 0.9)
MOST_BITS = 8
ON_A_GPU = {"tangram/aot-latency"}
"""Claims that only a GPU's clock speaks to."""
SIZES_OF_A_DRAW = {
    "requests",
    "runs",
    "trials",
    "keys",
    "queries",
    "heads",
    "clusters",
    "copies",
    "evictions",
}


def bench(seed=0, repro="exact"):
    return Bench(Declared(repro, seed, Level.DERIVED, "r", "c", "i", "e", "2026-07-02T03:05:00Z"))


def taken_from(module, seed=0):
    cases, _, measure = exact(module.QUANTITIES)
    return [one for case in cases(CLAIMS) for one in measure(case, bench(seed, module.__name__))]


@pytest.fixture(scope="module")
def taken():
    """Measurements per module, taken once."""
    return {name: taken_from(module) for name, module in MODULES.items()}


def outcome_of(module, claim, measurements):
    return module.judge([claim], measurements)[0].verdict


@pytest.mark.parametrize("name", MODULES)
def test_the_quantities_speak_to_exactly_the_claims(name):
    module = MODULES[name]
    spoken = {one.claim for one in (*module.QUANTITIES, *getattr(module, "TIMINGS", ()))}
    assert spoken | ON_A_GPU == set(module.CLAIMS) | ON_A_GPU
    assert set(module.CLAIMS) <= set(CLAIMS)


@pytest.mark.parametrize("name", MODULES)
def test_the_check_passes_and_every_claim_gets_a_reason(name, taken):
    module = MODULES[name]
    for case in module.cases(CLAIMS):
        if case.metric != CLOCKED:
            module.check(case, bench())
    verdicts = module.judge([CLAIMS[claim] for claim in module.CLAIMS], taken[name])
    assert [verdict.claim for verdict in verdicts] == list(module.CLAIMS)
    assert all(verdict.reason and verdict.reason_zh for verdict in verdicts)


def scaled(claim, factor):
    return claim.model_copy(update={"low": claim.low * factor, "high": claim.high * factor})


DECIDED_CLAIMS = [(name, claim) for name, module in MODULES.items() for claim in module.CLAIMS]


@pytest.mark.parametrize(("name", "claim"), DECIDED_CLAIMS)
def test_the_verdict_follows_the_stated_number(name, claim, taken):
    """Scaling what the source states changes the outcome somewhere, or the quantity says why it cannot."""
    module, record = MODULES[name], CLAIMS[claim]
    before = outcome_of(module, record, taken[name])
    marked = [quantity.insensitive for quantity in module.QUANTITIES if quantity.claim == claim]
    if before not in DECIDED or all(marked):
        return
    ours = [s for one in taken[name] if one.case["claim"] == claim for s in one.samples]
    to_ours = [value / record.high for value in ours if record.high]
    assert any(outcome_of(module, scaled(record, f), taken[name]) != before for f in (*FACTORS, *to_ours))


@pytest.mark.parametrize(("name", "claim"), DECIDED_CLAIMS)
def test_the_verdict_follows_the_inputs(name, claim, taken):
    """Scaling one input changes the outcome somewhere; a number nobody computes could not follow."""
    module, record = MODULES[name], CLAIMS[claim]
    before = outcome_of(module, record, taken[name])
    mine = [quantity for quantity in module.QUANTITIES if quantity.claim == claim]
    if before not in DECIDED or all(quantity.insensitive for quantity in mine):
        return
    keys = dict.fromkeys(key for quantity in mine for key in quantity.inputs if key not in SIZES_OF_A_DRAW)
    for key in keys:
        for factor in FACTORS:
            changed = with_input(module, mine, key, factor)
            if changed is not None and outcome_of(module, record, changed) != before:
                return
    pytest.fail(f"no input of {claim} changes its verdict {before}")


def with_input(module, quantities, key, factor):
    """A claim's measurements with one input scaled in all of them; None where a formula has no value there."""
    fresh = []
    for quantity in quantities:
        inputs = {
            **quantity.inputs,
            **({key: quantity.inputs[key] * factor} if key in quantity.inputs else {}),
        }
        if inputs.get("bits", 0) > MOST_BITS:  # a codebook has 2^bits levels
            return None
        metric = metric_of(CLAIMS[quantity.claim])
        point = Point(claim=quantity.claim, metric=metric, pattern=quantity.pattern, inputs=inputs)
        try:
            values = samples(quantity, point, bench(0, module.__name__))
            fresh.append(bench().record(metric, point, values))
        except (ValueError, ZeroDivisionError, IndexError, OverflowError, RuntimeWarning):
            return None
    return fresh


@pytest.mark.soak
@pytest.mark.parametrize("name", MODULES)
def test_ten_seeds_give_the_same_verdicts(name, taken):
    module = MODULES[name]
    claims = [CLAIMS[claim] for claim in module.CLAIMS]
    expected = [verdict.verdict for verdict in module.judge(claims, taken[name])]
    for seed in range(1, 10):
        assert [v.verdict for v in module.judge(claims, taken_from(module, seed))] == expected


@pytest.mark.parametrize(
    ("stated", "tolerance"),
    [
        pytest.param(3.0, 0.5, id="one-digit-is-rounded-to-half-a-unit"),
        pytest.param(2.48, 0.0496, id="two-per-cent-where-the-digits-say-less"),
        pytest.param(0.372, 0.00744, id="a-share-too"),
    ],
)
def test_how_far_a_recomputed_figure_may_lie(stated, tolerance):
    assert printed_tolerance(stated) == pytest.approx(tolerance)


def test_agreement_with_its_own_figures_leaves_a_claim_untested(taken):
    """1.63 follows from its two rates: that checks arithmetic, so it must not read as a reproduction."""
    measurements = [one for one in taken["amd-tq"] if one.case["claim"] == "amd-tq/throughput"]
    outcome, reason, _ = own_figures(CLAIMS["amd-tq/throughput"], measurements)
    assert outcome is Outcome.UNTESTED
    assert "not the effect" in reason


def test_disagreement_with_its_own_figures_contradicts(taken):
    """13.9 s over 0.89 s is 15.6, not 17.1."""
    assert outcome_of(MODULES["amd-tq"], CLAIMS["amd-tq/ttft"], taken["amd-tq"]) is Outcome.CONTRADICTED


@pytest.mark.parametrize(
    ("name", "claim", "old", "new"),
    [
        pytest.param("kvquant", "kvquant/1m", "1,000,000", "3,000,000", id="tokens-that-fit"),
        pytest.param("spheron", "spheron/hit-rate-overlap-20", "4 of 5", "3 of 5", id="hit-rates"),
        pytest.param("redhat-pd", "redhat-pd/ratio", "1:3", "1:9", id="workers"),
    ],
)
def test_a_figure_shows_what_the_claims_state(name, claim, old, new, taken):
    """A title or a stated series that were fixed text would stay as it is when the claim changes."""
    record = CLAIMS[claim]
    factor = 1 / 3 if name == "spheron" else 3
    moved = {**CLAIMS, claim: scaled(record, factor)}
    before, after = (draw(MODULES[name], taken[name], claims)[0] for claims in (CLAIMS, moved))
    assert old in before.title.en
    assert new in after.title.en
    assert before.series != after.series
