"""Triton kernels, each under its plain-torch reference, one file each.

A file NAME.py holds `reference` (float64, the specification), the `@triton.jit` kernels, the wrapper NAME with
the contract of `reference`, and `example(dtype, device, seed)`, a small irregular call that both accept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
"""Greatest relative error ``‖out - ref‖ / ‖ref‖`` by dtype of the inputs; bfloat16 counts on a GPU only."""


def relative_error(out: Tensor, ref: Tensor) -> float:
    """Frobenius norm of the difference over that of the reference; NaN if either holds one.

    Args:
        out: What a kernel gave, any dtype.
        ref: What its reference gave, same shape.

    Raises:
        ValueError: The shapes differ.
    """
    if out.shape != ref.shape:
        raise ValueError(f"shapes differ: {tuple(out.shape)} and {tuple(ref.shape)}")
    distance = float((out.double() - ref.double()).norm())
    size = float(ref.double().norm())
    return distance / size if size else distance
