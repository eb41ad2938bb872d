"""The simulator beside three real runs: it passes, and neither a constant step nor a wrong token budget does."""

from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import BadInput
from kb.repro.sim import replay

TRACES = Path(__file__).parents[3].parent / "shared/traces"
needs_traces = pytest.mark.skipif(
    not all(path.is_file() for path in replay.files(TRACES)),
    reason="the real runs are not here: kb data fetch llmservingsim",
)
PRO, QWEN = replay.RUNS[1:]


def suite(run, cost, **engine):
    """Gates of one run with another step time or other settings."""
    loaded = replay.load(run, TRACES)
    changed = replace(loaded, engine=replace(loaded.engine, **engine))
    return list(replay.compare(loaded, replay.replayed(changed, cost(loaded)), "layer profiles"))


@needs_traces
def test_a_real_run_is_met_by_layer_profiles():
    assert [gate for gate in suite(PRO, replay.by_profile) if not gate.holds] == []


@needs_traces
def test_a_constant_step_time_fails_the_suite_even_if_it_is_the_measured_mean():
    def constant(loaded):
        seconds = float(loaded.real.tpot.mean())
        return lambda work: seconds

    assert any(not gate.holds for gate in suite(QWEN, constant))


@needs_traces
@pytest.mark.parametrize("budget", [512, 8192])
def test_a_wrong_token_budget_fails_the_suite(budget):
    assert any(not gate.holds for gate in suite(QWEN, replay.by_profile, token_budget=budget))


@needs_traces
@pytest.mark.soak
def test_all_three_runs_are_met_by_both_cost_models():
    assert [gate for gate in replay.gates(TRACES) if not gate.holds] == []


@pytest.mark.parametrize("text", ["", "[]", '{"engine_kwargs": {}}', "[" * 100_000])
def test_settings_that_cannot_be_used_are_refused(tmp_path, text):
    home = tmp_path / "llmservingsim" / PRO.folder
    home.mkdir(parents=True)
    (home / "meta.json").write_text(text)
    with pytest.raises(BadInput):
        replay.load(PRO, tmp_path)
