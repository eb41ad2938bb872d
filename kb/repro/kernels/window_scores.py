"""How much attention the last W queries pay to each cached token: the score of window-based eviction.

Axes: B sequences · W queries of the window, the newest tokens · H query heads · K KV heads · G = H/K ·
P pages in the pool · T tokens per page · M page slots per sequence · D head dim.
Costs W/n of a full score matrix and never holds one: row sums first, then column sums of recomputed weights.
Read `reference` first; the kernels below must agree with it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = 1.4426950408889634


def reference(q: Tensor, k_pages: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
    """Sum of softmax weights per cached token, sequence by sequence in float64.

    Args:
        q: Queries of the W newest tokens, oldest first, ``[B, W, H, D]``.
        k_pages: Key pool, ``[P, T, K, D]``.
        table: Page of each slot, ``[B, M]`` int32; slots past the last live page are ignored.
        lengths: Tokens in each context, the window included, ``[B]`` int32, each in W..M*T.

    Returns:
        Weight each token receives, summed over the window and the G heads of its KV head (W*G in all per KV
        head), ``[B, K, M*T]`` float64; 0 past the length.
    """
    batch, window, heads, dim = q.shape
    tokens, kv_heads = k_pages.shape[1:3]
    group, capacity = heads // kv_heads, table.shape[1] * tokens
    out = torch.zeros(batch, kv_heads, capacity, dtype=torch.float64, device=q.device)
    for b, n in enumerate(lengths.tolist()):
        pages = table[b, : -(-n // tokens)].long()
        for h in range(heads):
            k = k_pages[pages, :, h // group].reshape(-1, dim)[:n].double()  # [n, D]
            for w in range(window):
                seen = n - window + w + 1
                weights = torch.softmax(k[:seen] @ q[b, w, h].double() * dim**-0.5, dim=0)
                out[b, h // group, :seen] += weights
    return out


@triton.jit
def _tile(
    q, k_ptr, table_ptr, start, length, last, scale, slots, b, kv, K, T, D: tl.constexpr, N: tl.constexpr
):
    """Base-2 scores of some queries against N tokens from ``start`` on; -inf where a query must not look."""
    d = tl.arange(0, D)
    token = start + tl.arange(0, N)
    live = token < length
    page = tl.load(table_ptr + b * slots + token // T, mask=live, other=0).to(tl.int64)
    at = ((page * T + token % T) * K + kv)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + at, mask=live[:, None], other=0.0).to(q.dtype)
    score = tl.dot(q, tl.trans(k), input_precision="ieee") * scale  # [ROWS, N]
    seen = live[None, :] & (token[None, :] <= last[:, None])
    return tl.where(seen, score, -float("inf"))


@triton.jit
def _row_sums(
    q_ptr,
    k_ptr,
    table_ptr,
    lengths_ptr,
    lse_ptr,
    scale,
    slots,
    W: tl.constexpr,
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
    row = tl.program_id(2) * ROWS + tl.arange(0, ROWS)  # query and head of the group: row = w * G + g
    d = tl.arange(0, D)
    used = row < W * G
    head = (b * W + row // G) * (K * G) + kv * G + row % G
    q = tl.load(q_ptr + head[:, None] * D + d[None, :], mask=used[:, None], other=0.0)
    if WIDE:
        q = q.to(tl.float32)
    length = tl.load(lengths_ptr + b)
    last = length - W + row // G
    peak = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], dtype=tl.float32)
    for start in range(0, length, N):
        score = _tile(q, k_ptr, table_ptr, start, length, last, scale, slots, b, kv, K, T, D, N)
        new_peak = tl.maximum(peak, tl.max(score, axis=1))
        total = total * tl.exp2(peak - new_peak) + tl.sum(tl.exp2(score - new_peak[:, None]), axis=1)
        peak = new_peak
    tl.store(lse_ptr + head, peak + tl.log2(total), mask=used)


@triton.jit
def _column_sums(
    q_ptr,
    k_ptr,
    table_ptr,
    lengths_ptr,
    lse_ptr,
    out_ptr,
    scale,
    slots,
    W: tl.constexpr,
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
    start = tl.program_id(2) * N
    d = tl.arange(0, D)
    length = tl.load(lengths_ptr + b)
    mass = tl.zeros([N], dtype=tl.float32)
    for first in range(0, W * G, ROWS):
        row = first + tl.arange(0, ROWS)
        used = row < W * G
        head = (b * W + row // G) * (K * G) + kv * G + row % G
        q = tl.load(q_ptr + head[:, None] * D + d[None, :], mask=used[:, None], other=0.0)
        if WIDE:
            q = q.to(tl.float32)
        lse = tl.load(lse_ptr + head, mask=used, other=float("inf"))  # inf: a row that is not there weighs 0
        last = length - W + row // G
        score = _tile(q, k_ptr, table_ptr, start, length, last, scale, slots, b, kv, K, T, D, N)
        mass += tl.sum(tl.exp2(score - lse[:, None]), axis=0)
    token = start + tl.arange(0, N)
    tl.store(out_ptr + (b * K + kv) * slots * T + token, mass, mask=token < slots * T)


def window_scores(q: Tensor, k_pages: Tensor, table: Tensor, lengths: Tensor, *, step: int = 64) -> Tensor:
    """Same contract as `reference`, in float32; tensors contiguous, D and ``step`` powers of two.

    Args:
        q: As in `reference`, like the next three.
        k_pages: Key pool.
        table: Page tables.
        lengths: Context lengths.
        step: Tokens per inner step, at least 16.
    """
    batch, window, heads, dim = q.shape
    tokens, kv_heads = k_pages.shape[1:3]
    capacity, group = table.shape[1] * tokens, heads // kv_heads
    rows = min(64, max(16, triton.next_power_of_2(window * group)))
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    out = torch.empty(batch, kv_heads, capacity, dtype=torch.float32, device=q.device)
    sizes = {"W": window, "K": kv_heads, "G": group, "ROWS": rows, "T": tokens, "D": dim, "N": step}
    sizes |= {"WIDE": not q.is_cuda}
    scale, slots = dim**-0.5 * LOG2_E, table.shape[1]
    grid = (batch, kv_heads, triton.cdiv(window * group, rows))
    _row_sums[grid](q, k_pages, table, lengths, lse, scale, slots, **sizes)
    grid = (batch, kv_heads, triton.cdiv(capacity, step))
    _column_sums[grid](q, k_pages, table, lengths, lse, out, scale, slots, **sizes)
    return out


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Windows of 5 queries over contexts of 5 and 77 tokens in shuffled pages of 16."""
    gen = torch.Generator().manual_seed(seed)
    q = torch.randn(2, 5, 4, 64, generator=gen).to(dtype)
    k = torch.randn(12, 16, 2, 64, generator=gen).to(dtype)
    table = torch.randperm(12, generator=gen)[:10].reshape(2, 5).int()
    return tuple(x.to(device) for x in (q, k, table, torch.tensor([5, 77], dtype=torch.int32)))
