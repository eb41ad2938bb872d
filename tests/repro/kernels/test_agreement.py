"""Every kernel agrees with its plain-torch reference within the one table of tolerances."""

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; the kernels need it")
pytest.importorskip("triton", reason="Triton is not installed; the kernels need it")

import torch

from tests.repro.kernels.agreement import CASES, DEVICE, NAMES, disagreement, disagreements, load

GPU_ONLY = pytest.mark.gpu  # bf16 arithmetic is wrong under the interpreter


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float16, pytest.param(torch.bfloat16, marks=GPU_ONLY)],
    ids=["fp32", "fp16", "bf16"],
)
@pytest.mark.parametrize("name", NAMES)
def test_kernel_agrees_with_its_reference_in_every_shape(name, dtype):
    assert disagreements(load(name), dtype) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_has_cases(name):
    assert CASES[name]


@pytest.mark.parametrize("name", NAMES)
def test_example_of_each_kernel_is_a_call_both_accept(name):
    module = load(name)
    args = module.example(torch.float32, DEVICE)
    assert disagreement(module, name, list(args), {}, 1e-5) == ""


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_as_they_were_unless_the_kernel_is_in_place(name):
    module = load(name)
    args = module.example(torch.float32, DEVICE)
    before = [x.clone() for x in args]
    getattr(module, name)(*args)
    changed = {
        i for i, (a, b) in enumerate(zip(args, before, strict=True)) if not a.equal(b) and not a.isnan().any()
    }
    assert changed <= ({0, 1} if name == "page_compact" else set())
