"""Decode attention over a paged KV cache with grouped query heads, the context split over programs.

Axes: B sequences · H query heads · K KV heads · G = H/K query heads per KV head · P pages in the pool ·
T tokens per page · M page slots per sequence · D head dim · S splits per sequence.
Read `reference` first; the kernel below must agree with it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kb.repro.kernels.split_merge import split_merge

LOG2_E = 1.4426950408889634
PROGRAMS_PER_SM = 16
"""Enough waves that the last, part-filled one costs little."""


def reference(q: Tensor, k_pages: Tensor, v_pages: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    """One decode step in plain torch, head by head, in float64.

    Args:
        q: Query of the step, ``[B, H, D]``.
        k_pages: Key pool, ``[P, T, K, D]``.
        v_pages: Value pool, ``[P, T, K, D]``.
        table: Page of each slot, ``[B, M]`` int32; slots past the last live page are ignored.
        lengths: Tokens in each context, ``[B]`` int32, each in 0..M*T.

    Returns:
        Attention output ``[B, H, D]`` float64; zeros for an empty context.
    """
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    tokens, kv_heads, dim = k_pages.shape[1:]
    group = q.shape[1] // kv_heads
    for b, n in enumerate(lengths.tolist()):
        pages = table[b, : -(-n // tokens)].long()
        for h in range(q.shape[1] if n else 0):
            k = k_pages[pages, :, h // group].reshape(-1, dim)[:n].double()  # [n, D]
            v = v_pages[pages, :, h // group].reshape(-1, dim)[:n].double()  # [n, D]
            weights = torch.softmax(k @ q[b, h].double() * dim**-0.5, dim=0)  # [n]
            out[b, h] = weights @ v
    return out


@triton.jit
def _kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    lengths_ptr,
    acc_ptr,
    peak_ptr,
    total_ptr,
    scale,
    slots,
    splits,
    K: tl.constexpr,
    G: tl.constexpr,
    ROWS: tl.constexpr,
    T: tl.constexpr,
    D: tl.constexpr,
    N: tl.constexpr,
    WIDE: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    kv = tl.program_id(1)
    split = tl.program_id(2)
    g = tl.arange(0, ROWS)
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    head = b * K * G + kv * G + g  # row of q, [ROWS]
    q = tl.load(q_ptr + head[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
    if WIDE:
        q = q.to(tl.float32)

    length = tl.load(lengths_ptr + b)
    share = tl.cdiv(tl.cdiv(length, splits), N) * N  # tokens per split, whole steps
    begin = split * share
    end = tl.minimum(begin + share, length)
    peak = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    acc = tl.zeros([ROWS, D], dtype=tl.float32)
    for start in range(begin, end, N):
        token = start + n
        live = token < end  # [N]
        page = tl.load(table_ptr + b * slots + token // T, mask=live, other=0).to(tl.int64)
        at = ((page * T + token % T) * K + kv)[:, None] * D + d[None, :]  # [N, D]
        k = tl.load(k_ptr + at, mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + at, mask=live[:, None], other=0.0)
        if WIDE:
            k = k.to(tl.float32)
            v = v.to(tl.float32)
        score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale  # [ROWS, N]
        score = tl.where(live[None, :], score, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp2(score - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(weight, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        peak = new_peak
    part = head * splits + split
    tl.store(acc_ptr + part[:, None] * D + d[None, :], acc, mask=(g < G)[:, None])
    tl.store(peak_ptr + part, peak, mask=g < G)
    tl.store(total_ptr + part, total, mask=g < G)


def default_splits(q: Tensor, kv_heads: int) -> int:
    """Splits per sequence that fill the device; 2 on a CPU, so that the merge is always exercised."""
    if not q.is_cuda:
        return 2
    processors = int(torch.cuda.get_device_properties(q.device).multi_processor_count)
    return max(1, min(64, processors * PROGRAMS_PER_SM // int(q.shape[0] * kv_heads)))


def paged_decode(
    q: Tensor,
    k_pages: Tensor,
    v_pages: Tensor,
    table: Tensor,
    lengths: Tensor,
    *,
    splits: int | None = None,
    step: int = 64,
) -> Tensor:
    """Same contract as `reference`, in the dtype of ``q``; tensors contiguous, D and ``step`` powers of two.

    Args:
        q: As in `reference`, like the next four.
        k_pages: Key pool.
        v_pages: Value pool.
        table: Page tables.
        lengths: Context lengths.
        splits: Programs per sequence and KV head; None takes `default_splits`.
        step: Tokens per inner step, at least 16.
    """
    batch, heads, dim = q.shape
    tokens, kv_heads = k_pages.shape[1:3]
    splits = splits or default_splits(q, kv_heads)
    parts = batch * heads * splits
    acc = torch.empty(parts, dim, dtype=torch.float32, device=q.device)
    peak, total = (torch.empty(parts, dtype=torch.float32, device=q.device) for _ in range(2))
    group = heads // kv_heads
    _kernel[(batch, kv_heads, splits)](
        q,
        k_pages,
        v_pages,
        table,
        lengths,
        acc,
        peak,
        total,
        dim**-0.5 * LOG2_E,
        table.shape[1],
        splits,
        K=kv_heads,
        G=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        T=tokens,
        D=dim,
        N=step,
        WIDE=not q.is_cuda,
        num_warps=4,
        num_stages=3,
    )
    first = torch.arange(0, parts + 1, splits, dtype=torch.int32, device=q.device)
    return split_merge(acc, peak, total, first, dtype=q.dtype).view(batch, heads, dim)


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Three contexts of 1, 37 and 90 tokens over shuffled pages of 16, two query heads per KV head."""
    gen = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([1, 37, 90], dtype=torch.int32)
    q = torch.randn(3, 4, 64, generator=gen).to(dtype)
    k, v = (torch.randn(24, 16, 2, 64, generator=gen).to(dtype) for _ in range(2))
    table = torch.randperm(24, generator=gen)[:18].reshape(3, 6).int()
    return tuple(x.to(device) for x in (q, k, v, table, lengths))
