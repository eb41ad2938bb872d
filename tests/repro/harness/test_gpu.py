"""The GPU path: silent where there is no GPU, watched and cold where there is one."""

from pathlib import Path

import numpy as np
import pytest

from kb.repro.harness.nvml import Watch
from kb.repro.harness.timing import Budget, Candidate, alternate


def test_without_nvml_or_a_driver_the_watch_says_nothing():
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with Watch() as watch:
        pass
    assert watch.seen() == {}


@pytest.mark.gpu
def test_a_copy_is_timed_cold_and_the_clocks_are_seen():
    torch = pytest.importorskip("torch")
    from kb.repro.harness.timing import CudaClock

    size = 256 << 20

    def prepare(rng):
        source = torch.randn(
            size // 4, device="cuda", generator=torch.Generator("cuda").manual_seed(int(rng.integers(2**31)))
        )
        return source, torch.empty_like(source)

    def copy(inputs):
        return inputs[1].copy_(inputs[0])

    def verify(inputs, output):
        assert torch.equal(inputs[0], output)

    candidate = Candidate(prepare, copy, verify, floor_s=2 * size / 20e12, poison=lambda i: [i[1]])
    budget = Budget(warm_up=2, repeats=30, least=10)
    with Watch() as watch:
        timed = alternate(
            {"copy": candidate}, CudaClock(), lambda n: np.random.default_rng(n % 2**32), budget, watch
        )
    bandwidth = 2 * size / np.median(timed.samples["copy"])
    assert 1e11 < bandwidth < 20e12
    assert timed.facts["clock"] == "cuda"
    assert timed.facts["sm_mhz"][0] > 0


@pytest.mark.gpu
def test_the_environment_names_the_device():
    from kb.repro.harness.environment import observe

    found = observe(("torch", "triton"), gpu=True)
    assert found.machine != "cpu"
    assert found.torch
    assert found.details["cuda"]
