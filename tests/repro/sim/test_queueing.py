"""Gates of queueing theory; the full counts run in `kb repro sim-gates`."""

import numpy as np
import pytest

from kb.repro.sim import compiled, policies, queueing
from kb.repro.sim.queueing import Gate

needs_numba = pytest.mark.skipif(
    not compiled.has_compiler(), reason="numba is not installed: pip install 'kb[sim]'"
)


@needs_numba
def test_a_short_run_is_near_theory():
    """At half load a quarter of a million requests are enough for the bars."""
    gates = [*queueing.markov(0, 0.5, 250_000), *queueing.general(0, 0.5, 250_000)]
    assert [gate for gate in gates if not gate.holds] == []


@needs_numba
@pytest.mark.soak
def test_every_gate_of_theory_is_passed():
    assert [gate for gate in queueing.gates() if not gate.holds] == []


def test_each_policy_meets_srpt_on_common_paths():
    names = {gate.name.split(" over ")[0] for gate in queueing.shortest_first(0, paths=2)}
    assert names == set(policies.names()) - {"srpt"}


def test_srpt_has_the_least_mean_and_others_have_more():
    gates = list(queueing.shortest_first(7, paths=3))
    assert all(gate.holds for gate in gates)
    assert max(gate.simulated for gate in gates) > 1.01


def test_a_wrong_server_fails_the_gate():
    """A step that takes a tenth longer than the theory is told moves the mean far beyond the bar."""
    rng = np.random.default_rng(0)
    arrived, _, ended = queueing.single_server(1.1 * rng.exponential(1, 20_000), 0.8, rng)
    mean = float((ended - arrived).mean())
    assert not Gate("M/M/1 with a slow server", mean, 1 / (1 - 0.8), queueing.MEAN_BAR).holds


@pytest.mark.parametrize(("simulated", "holds"), [(1.0, True), (1.4, True), (0.999, False)])
def test_a_bound_from_below_is_met_by_more(simulated, holds):
    assert Gate("", simulated, 1.0, 1e-12, at_least=True).holds is holds
