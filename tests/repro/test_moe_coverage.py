"""Experts used by a batch of tokens: the draws lie on the formula, and a wrong formula is contradicted."""

import numpy as np
import pytest

from kb.model import Claim
from kb.repro import moe_coverage
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import Reproduction, Scope
from kb.repro.moe_coverage import Case, expected_share, used_share

UNIT: Reproduction = moe_coverage
BENCH = Bench(Declared("moe-coverage", 0, "derived", "", "", "", "", "2026-01-01T00:00:00Z"))
CLAIM = Claim.model_validate(
    {"id": "sd-latency/moe-coverage", "kind": "formula", "item": "arxiv:2605.15051", "statement": {},
     "provenance": "review", "metric": "statement", "rule": {"metric": "share", "check": "agrees"}}
)  # fmt: skip


@pytest.fixture(scope="module")
def taken():
    return [m for case in moe_coverage.cases(Scope()) for m in moe_coverage.measure(case, BENCH)]


@pytest.mark.parametrize(
    ("case", "share"),
    [
        pytest.param(Case(tokens=1), 8 / 128, id="one-token-uses-its-own"),
        pytest.param(Case(tokens=1, chosen=2, experts=8), 0.25, id="two-of-eight"),
        pytest.param(Case(tokens=10_000), 1.0, id="many-tokens-use-all"),
    ],
)
def test_the_ends_are_exact(case, share):
    assert expected_share(case) == pytest.approx(share)
    assert used_share(case, np.random.default_rng(0)) == pytest.approx(share)


def test_the_draws_lie_on_the_formula(taken):
    [verdict] = moe_coverage.judge([CLAIM], taken)
    assert (verdict.verdict, verdict.level) == ("holds", "derived")


def test_another_formula_is_contradicted(taken):
    """As if each token could choose the same expert twice: one part in a hundred off at two of eight."""
    wrong = [m.model_copy(update={"expected": 1 - (1 - 1 / m.case["experts"]) ** (m.case["tokens"] * m.case["chosen"])})
             for m in taken]  # fmt: skip
    [verdict] = moe_coverage.judge([CLAIM], wrong)
    assert verdict.verdict == "contradicted"


def test_every_case_passes_its_check():
    for case in moe_coverage.cases(Scope()):
        moe_coverage.check(case, BENCH)
