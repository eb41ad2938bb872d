"""The whole causal attention matrix, written to memory: what scoring by accumulated attention has to pay.

Axes: B sequences · N tokens · H query heads · K KV heads · G = H/K · D head dim.
A fused attention kernel never holds these N x N weights; methods that rank tokens by all of them do. Beside
`window_scores` this shows the price: H * N * N * 4 bytes written, against W queries read.
Read `reference` first; the kernel below must agree with it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = 1.4426950408889634


def reference(q: Tensor, k: Tensor) -> Tensor:
    """Softmax weights of every query on every token before or at its own position, in float64.

    Args:
        q: Queries, ``[B, N, H, D]``.
        k: Keys, ``[B, N, K, D]``.

    Returns:
        Weights ``[B, H, N, N]`` float64, query by token; rows add up to 1, zeros above the diagonal.
    """
    group = q.shape[2] // k.shape[2]
    keys = k.double().repeat_interleave(group, dim=2)  # [B, N, H, D]
    scores = torch.einsum("bnhd,bmhd->bhnm", q.double(), keys) * q.shape[3] ** -0.5
    future = torch.ones(scores.shape[2:], dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)


@triton.jit
def _kernel(
    q_ptr,
    k_ptr,
    out_ptr,
    scale,
    length,
    H: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    N: tl.constexpr,
    WIDE: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    row = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    n = tl.arange(0, N)
    d = tl.arange(0, D)
    used = row < length
    at = ((b * length + row) * H + h)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=used[:, None], other=0.0)
    if WIDE:
        q = q.to(tl.float32)
    peak = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    for sweep in tl.static_range(2):  # first the sum of each row, then its weights
        for start in range(0, length, N):
            token = start + n
            k_at = ((b * length + token) * (H // G) + h // G)[:, None] * D + d[None, :]
            k = tl.load(k_ptr + k_at, mask=(token < length)[:, None], other=0.0).to(q.dtype)
            score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale  # [ROWS, N]
            score = tl.where(token[None, :] <= row[:, None], score, -float("inf"))
            if sweep == 0:
                new_peak = tl.maximum(peak, tl.max(score, axis=1))
                weight = tl.exp2(score - new_peak[:, None])
                total = total * tl.exp2(peak - new_peak) + tl.sum(weight, axis=1)
                peak = new_peak
            else:
                weight = tl.exp2(score - peak[:, None]) / total[:, None]
                out_at = ((b * H + h) * length + row)[:, None] * length + token[None, :]
                tl.store(out_ptr + out_at, weight, mask=used[:, None] & (token < length)[None, :])


def full_scores(q: Tensor, k: Tensor, *, step: int = 64) -> Tensor:
    """Same contract as `reference`, in float32; tensors contiguous, D and ``step`` powers of two.

    Args:
        q: Queries.
        k: Keys.
        step: Tokens and queries per inner step, at least 16.
    """
    batch, length, heads, dim = q.shape
    out = torch.empty(batch, heads, length, length, dtype=torch.float32, device=q.device)
    _kernel[(batch, heads, triton.cdiv(length, step))](
        q,
        k,
        out,
        dim**-0.5 * LOG2_E,
        length,
        H=heads,
        G=heads // k.shape[2],
        D=dim,
        ROWS=step,
        N=step,
        WIDE=not q.is_cuda,
    )
    return out


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """70 tokens, two query heads per KV head."""
    gen = torch.Generator().manual_seed(seed)
    q = torch.randn(1, 70, 4, 64, generator=gen).to(dtype)
    k = torch.randn(1, 70, 2, 64, generator=gen).to(dtype)
    return q.to(device), k.to(device)
