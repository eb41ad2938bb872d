"""Merge the parts of attention rows that were computed apart (split KV).

Axes: R rows (one query head each) · X parts over all rows · D head dim.
A part is a softmax over some of a row's tokens: its peak (base-2 exponent), its sum of weights, its weighted
values. Row r owns the parts ``first[r]`` up to ``first[r + 1]``, so rows may have different numbers of parts.
Read `reference` first; the kernel below must agree with it.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import triton
import triton.language as tl
from torch import Tensor


def reference(acc: Tensor, peak: Tensor, total: Tensor, first: Tensor) -> Tensor:
    """Join the parts of each row, row by row, in float64.

    Args:
        acc: Weighted values of each part, not normalised, ``[X, D]`` float32.
        peak: Greatest base-2 score of each part, ``[X]`` float32; -inf for a part without tokens.
        total: Sum of ``2 ** (score - peak)`` of each part, ``[X]`` float32; 0 for a part without tokens.
        first: Where each row's parts begin, ``[R + 1]`` int32, rising; the last entry is X.

    Returns:
        Attention output ``[R, D]`` float64; zeros for a row without tokens.
    """
    out = torch.zeros(len(first) - 1, acc.shape[1], dtype=torch.float64, device=acc.device)
    bounds = first.tolist()
    for row, (lo, hi) in enumerate(pairwise(bounds)):
        live = [x for x in range(lo, hi) if float(total[x]) > 0]
        if not live:
            continue
        top = peak[live].double().max()
        shrink = torch.exp2(peak[live].double() - top)  # [live parts]
        values = (acc[live].double() * shrink[:, None]).sum(0)
        out[row] = values / (total[live].double() * shrink).sum()
    return out


@triton.jit
def _kernel(acc_ptr, peak_ptr, total_ptr, first_ptr, out_ptr, D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, D)
    peak = -float("inf")
    total = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    begin = tl.load(first_ptr + row).to(tl.int64)
    end = tl.load(first_ptr + row + 1).to(tl.int64)
    for x in range(begin, end):
        part = tl.load(total_ptr + x)
        # a part without tokens holds whatever the memory held: it is not even looked at
        part_peak = tl.where(part > 0, tl.load(peak_ptr + x), -float("inf"))
        values = tl.load(acc_ptr + x * D + d, mask=d < tl.where(part > 0, D, 0), other=0.0)
        new_peak = tl.maximum(peak, part_peak)
        safe = tl.where(new_peak == -float("inf"), 0.0, new_peak)  # -inf minus -inf is not a number
        shrink = tl.exp2(peak - safe)
        weight = tl.exp2(part_peak - safe)
        total = total * shrink + part * weight
        acc = acc * shrink + values * weight
        peak = new_peak
    out = tl.where(total > 0, acc / tl.where(total > 0, total, 1.0), 0.0)
    tl.store(out_ptr + row * D + d, out.to(out_ptr.dtype.element_ty))


def split_merge(
    acc: Tensor, peak: Tensor, total: Tensor, first: Tensor, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Same contract as `reference`, one Triton program per row; the output is in ``dtype``."""
    rows, dim = len(first) - 1, acc.shape[1]
    out = torch.empty(rows, dim, dtype=dtype, device=acc.device)
    _kernel[(rows,)](acc, peak, total, first, out, D=dim, num_warps=2)
    return out


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Rows of 1, 3, 0 and 2 parts, one of them empty; parts are float32 whatever ``dtype`` is."""
    del dtype
    gen = torch.Generator().manual_seed(seed)
    first = torch.tensor([0, 1, 4, 4, 6], dtype=torch.int32)
    acc = torch.randn(6, 64, generator=gen)
    peak = torch.randn(6, generator=gen) * 4
    total = torch.rand(6, generator=gen) + 0.5
    peak[2], total[2], acc[2] = -float("inf"), 0.0, float("nan")
    return tuple(x.to(device) for x in (acc, peak, total, first))
