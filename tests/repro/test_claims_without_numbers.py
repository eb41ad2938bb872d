"""Reproductions of visions and surveys: nothing to measure, and each claim says what would test it."""

import importlib
from pathlib import Path

import pytest

from kb.model import Outcome
from kb.store import Base

CLAIMS = Base(Path(__file__).parents[2] / "shared/research-kb").claims()


@pytest.mark.parametrize("name", ["llms_graphs", "raids", "surrealdb"])
def test_nothing_is_measured_and_every_claim_stays_untested_with_a_reason(name):
    module = importlib.import_module(f"kb.repro.{name}")
    assert list(module.cases(CLAIMS)) == []
    verdicts = module.judge([CLAIMS[claim] for claim in module.CLAIMS], [])
    assert [verdict.claim for verdict in verdicts] == list(module.CLAIMS)
    for verdict in verdicts:
        assert verdict.verdict is Outcome.UNTESTED
        assert verdict.measured is None
        assert verdict.level is None
        assert "planned" in verdict.reason
        assert verdict.reason_zh
