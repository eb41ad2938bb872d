"""The compiled loop gives the bits of the plain one."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from kb.errors import WrongUse
from kb.repro.sim import compiled, loop
from kb.repro.sim.work import Engine, Run
from tests.repro.sim.workloads import COST, cases

needs_numba = pytest.mark.skipif(
    not compiled.has_compiler(), reason="numba is not installed: pip install 'kb[sim]'"
)
ROOT = Path(__file__).parents[3]


def differences(one: Run, other: Run) -> list[str]:
    """Names of the fields that are not equal bit by bit."""
    pairs = [(field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(Run)]
    return [name for name, a, b in pairs if not np.array_equal(a, b)]


@needs_numba
@settings(max_examples=60, deadline=None)
@given(cases())
def test_both_loops_give_the_same_bits(case):
    requests, engine = case
    assert differences(loop.simulate(requests, engine, COST), compiled.simulate(requests, engine, COST)) == []


@needs_numba
@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@given(cases())
def test_both_loops_give_the_same_bits_many_times(case):
    requests, engine = case
    assert differences(loop.simulate(requests, engine, COST), compiled.simulate(requests, engine, COST)) == []


@needs_numba
@pytest.mark.soak
def test_no_index_leaves_its_array(tmp_path):
    """The same comparison with numba's bounds checks, in a process and a cache of its own."""
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    select = f"{__file__}::test_both_loops_give_the_same_bits"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", select], cwd=ROOT, env=env, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


@needs_numba
@pytest.mark.parametrize("more", [{"prefix_cache": "radix"}, {"lag": 1}])
def test_what_it_lacks_is_refused_and_the_plain_loop_named(more):
    requests = loop_requests()
    with pytest.raises(WrongUse) as error:
        compiled.simulate(requests, Engine(pages=100, token_budget=100, **more), COST)
    assert "loop.simulate" in error.value.remedy


def loop_requests():
    from kb.repro.sim.work import Requests

    return Requests(np.zeros(2), np.array([5, 6]), np.array([3, 4]))


def test_without_numba_the_error_says_what_to_install():
    """In a process where numba cannot be found; the plain loop runs there."""
    program = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "numba" else real(name, *more)
sys.modules["numba"] = None
import numpy as np
from kb.errors import CannotRun
from kb.repro.sim import compiled, loop
from kb.repro.sim.work import Engine, Requests, StepCost
case = Requests(np.zeros(1), np.array([5]), np.array([3])), Engine(pages=9), StepCost(np.ones(2049))
assert loop.simulate(*case).finish[0] == 3
try:
    compiled.simulate(*case)
except CannotRun as error:
    assert error.exit_code == 5 and "pip install 'kb[sim]'" in error.remedy
else:
    raise SystemExit("no error")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
