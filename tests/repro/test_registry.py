"""Every claim of the shipped base has a verdict with a reason, or names what would test it."""

from pathlib import Path

import pytest

from kb.model import Outcome
from kb.repro.harness.contract import units
from kb.repro.harness.verdicts import record_rest, refresh
from kb.store import Base

BASE = Base(Path(__file__).parents[2] / "shared/research-kb")
CLAIMS = BASE.claims()


@pytest.fixture(scope="module")
def verdicts():
    systems = {name.partition("/")[0] for name in CLAIMS}
    return {verdict.claim: verdict for verdict in refresh(BASE, systems)}


def test_every_claim_gets_a_verdict_with_a_reason_in_both_languages(verdicts):
    assert set(verdicts) == set(CLAIMS)
    assert [name for name, v in verdicts.items() if not (v.reason and v.reason_zh)] == []


def test_what_is_untested_names_what_would_test_it(verdicts):
    """Or says what its own figures show; a claim that nobody plans to test says why."""
    silent = [
        name
        for name, verdict in verdicts.items()
        if verdict.verdict is Outcome.UNTESTED and verdict.level is None and not CLAIMS[name].planned
    ]
    assert silent == []


def test_a_judgement_names_what_it_rests_on(verdicts):
    for verdict in verdicts.values():
        if verdict.level is not None:
            assert verdict.repro
            assert verdict.measured is not None or verdict.digests["check"]


def test_claims_of_systems_nobody_speaks_to_are_recorded(tmp_path):
    (tmp_path / "claims").mkdir()
    spoken = {system for unit in units().values() for system in unit.systems}
    orphan = min({name.partition("/")[0] for name in CLAIMS} - spoken)
    text = (BASE.root / f"claims/{orphan}.toml").read_text(encoding="utf-8")
    (tmp_path / f"claims/{orphan}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "kb.toml").write_text((BASE.root / "kb.toml").read_text(encoding="utf-8"), encoding="utf-8")
    base = Base(tmp_path)
    with base.writing("test"):
        assert record_rest(base) == [orphan]
        assert record_rest(base) == []
    assert {v.verdict for v in base.verdicts().values()} == {Outcome.UNTESTED}
    assert set(base.verdicts()) == set(base.claims())
