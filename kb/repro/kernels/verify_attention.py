"""Attention of the k + 1 queries that verify k drafted tokens, over a paged KV cache.

Axes: B sequences · R queries per sequence (draft length + 1) · H query heads · K KV heads · G = H/K ·
P pages in the pool · T tokens per page · M page slots per sequence · D head dim · S splits per sequence.
The cache already holds the R tokens themselves; query r may look at all tokens up to its own position.
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


def reference(q: Tensor, k_pages: Tensor, v_pages: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    """Query by query and head by head in plain torch, in float64.

    Args:
        q: Queries of the R newest tokens, oldest first, ``[B, R, H, D]``.
        k_pages: Key pool, ``[P, T, K, D]``.
        v_pages: Value pool, ``[P, T, K, D]``.
        table: Page of each slot, ``[B, M]`` int32; slots past the last live page are ignored.
        lengths: Tokens in each context, the R newest included, ``[B]`` int32, each in R..M*T.

    Returns:
        Attention output ``[B, R, H, D]`` float64.
    """
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    tokens, kv_heads, dim = k_pages.shape[1:]
    queries, heads = q.shape[1:3]
    group = heads // kv_heads
    for b, n in enumerate(lengths.tolist()):
        pages = table[b, : -(-n // tokens)].long()
        for h in range(heads):
            k = k_pages[pages, :, h // group].reshape(-1, dim).double()
            v = v_pages[pages, :, h // group].reshape(-1, dim).double()
            for r in range(queries):
                seen = n - queries + r + 1
                weights = torch.softmax(k[:seen] @ q[b, r, h].double() * dim**-0.5, dim=0)  # [seen]
                out[b, r, h] = weights @ v[:seen]
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
    R: tl.constexpr,
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
    row = tl.arange(0, ROWS)  # query and head of the group in one axis: row = r * G + g
    used = row < R * G
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    head = (b * R + row // G) * (K * G) + kv * G + row % G  # row of q, [ROWS]
    q = tl.load(q_ptr + head[:, None] * D + d[None, :], mask=used[:, None], other=0.0)
    if WIDE:
        q = q.to(tl.float32)

    length = tl.load(lengths_ptr + b)
    last = length - R + row // G  # newest position the query sees, its own
    share = tl.cdiv(tl.cdiv(length, splits), N) * N
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
        seen = live[None, :] & (token[None, :] <= last[:, None])
        score = tl.where(seen, score, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(score, axis=1))
        safe = tl.where(new_peak == -float("inf"), 0.0, new_peak)  # a step may lie past a query's position
        weight = tl.exp2(score - safe[:, None])
        shrink = tl.exp2(peak - safe)
        total = total * shrink + tl.sum(weight, axis=1)
        acc = acc * shrink[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        peak = new_peak
    part = head * splits + split
    tl.store(acc_ptr + part[:, None] * D + d[None, :], acc, mask=used[:, None])
    tl.store(peak_ptr + part, peak, mask=used)
    tl.store(total_ptr + part, total, mask=used)


def default_splits(q: Tensor, kv_heads: int) -> int:
    """Splits per sequence that fill the device; 2 on a CPU, so that the merge is always exercised."""
    if not q.is_cuda:
        return 2
    processors = int(torch.cuda.get_device_properties(q.device).multi_processor_count)
    return max(1, min(64, processors * PROGRAMS_PER_SM // int(q.shape[0] * kv_heads)))


def verify_attention(
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
    batch, queries, heads, dim = q.shape
    tokens, kv_heads = k_pages.shape[1:3]
    splits = splits or default_splits(q, kv_heads)
    parts = batch * queries * heads * splits
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
        R=queries,
        K=kv_heads,
        G=group,
        ROWS=max(16, triton.next_power_of_2(queries * group)),
        T=tokens,
        D=dim,
        N=step,
        WIDE=not q.is_cuda,
        num_warps=4,
        num_stages=3,
    )
    first = torch.arange(0, parts + 1, splits, dtype=torch.int32, device=q.device)
    return split_merge(acc, peak, total, first, dtype=q.dtype).view(q.shape)


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Three drafted tokens per sequence, contexts of 4, 65 and 90 tokens over shuffled pages of 16."""
    gen = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([4, 65, 90], dtype=torch.int32)
    q = torch.randn(3, 4, 4, 64, generator=gen).to(dtype)
    k, v = (torch.randn(24, 16, 2, 64, generator=gen).to(dtype) for _ in range(2))
    table = torch.randperm(24, generator=gen)[:18].reshape(3, 6).int()
    return tuple(x.to(device) for x in (q, k, v, table, lengths))
