"""Every kernel compiles for a GPU, on a machine that has none: the interpreter forgives what a compiler does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; the kernels need it")
pytest.importorskip("triton", reason="Triton is not installed; the kernels need it")

from tests.repro.kernels.agreement import NAMES

PROGRAM = Path(__file__).with_name("compile_for_gpu.py")


@pytest.mark.parametrize(
    "dtype",
    [
        "bfloat16",
        pytest.param("float16", marks=pytest.mark.soak),
        pytest.param("float32", marks=pytest.mark.soak),
    ],
)
def test_every_kernel_becomes_machine_code(tmp_path, dtype):
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    root = str(PROGRAM.parents[3])
    env |= {"PYTHONPATH": root, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_DEFAULT_FP_FUSION": "1"}
    out = subprocess.run(
        [sys.executable, PROGRAM, dtype, *NAMES],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert out.returncode == 0, out.stderr[-2000:]
    assert [line.split()[0] for line in out.stdout.splitlines()] == NAMES
    sizes = [int(word.partition("=")[2]) for line in out.stdout.splitlines() for word in line.split()[1:]]
    assert min(sizes) > 1000
