"""Counts what arithmetic an array program does, by running it on arrays that tally their own operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[np.ndarray], Any]


class Tally(np.ndarray):
    """An array whose element-wise operations, reductions and products are counted.

    One operation per number written; a reduction counts the numbers it reads; a product of inner length n counts 2·n per
    number written.
    """

    count = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Do the operation on plain arrays and add what it took."""
        plain = [x.view(np.ndarray) if isinstance(x, Tally) else x for x in inputs]
        if "out" in keywords:
            keywords["out"] = tuple(
                x.view(np.ndarray) if isinstance(x, Tally) else x for x in keywords["out"]
            )
        result = getattr(ufunc, method)(*plain, **keywords)
        size = plain[0].size if method == "reduce" else np.size(result)
        Tally.count += size * (2 * plain[0].shape[-1] if ufunc is np.matmul else 1)
        return result.view(Tally) if isinstance(result, np.ndarray) else result


def operations(program: Program, x: np.ndarray) -> int:
    """Operations a program does on an array."""
    before = Tally.count
    program(x.view(Tally))
    return Tally.count - before


def fast_rotation(x: np.ndarray) -> np.ndarray:
    """The Walsh–Hadamard transform of the last axis by butterflies, ``log2 d`` additions per number; unscaled."""
    dim, width = x.shape[-1], 1
    while width < dim:
        pairs = x.reshape(*x.shape[:-1], dim // (2 * width), 2, width)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        plus, minus = first + second, first - second
        x = np.stack([plus, minus], axis=-2).reshape(x.shape).view(type(x))
        width *= 2
    return x
