"""On a machine without a GPU kernels run under Triton's interpreter; fresh memory is poison, never zeros."""

import importlib.util
import os

import pytest

if importlib.util.find_spec("torch") and importlib.util.find_spec("triton"):
    import torch

    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # before the first import of triton


@pytest.fixture(autouse=True)
def poisoned_memory(monkeypatch):
    """`torch.empty` gives NaN (or an impossible integer), so that a place nobody wrote shows in the result."""
    if not importlib.util.find_spec("torch"):
        yield
        return
    from tests.repro.kernels.agreement import poisoned_empty

    monkeypatch.setattr(torch, "empty", poisoned_empty)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
