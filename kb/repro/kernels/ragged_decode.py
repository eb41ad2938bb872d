"""Decode attention where every group of KV heads kept its own tokens and has its own page table.

Axes: B sequences · N head groups per sequence · C KV heads per group (heads per page) · G query heads per KV
head · H = N*C*G query heads · P pages in the pool · T tokens per page · M page slots per group · D head dim ·
W workers (programs) · X parts. Work is cut into *parts*: (sequence and group, first token, last token).
`fixed_plan` cuts each group into the same number of parts, whatever its length, so the longest group decides;
`balanced_plan` lays all groups end to end and gives every worker the same number of tokens, ahead of time.
Read `reference` first; the kernel below must agree with it.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from kb.repro.kernels.split_merge import split_merge

LOG2_E = 1.4426950408889634


class Plan(NamedTuple):
    """Who computes which tokens; made once for a set of lengths, used at every layer and step."""

    part: Tensor
    """Row (sequence * N + group), first token, end token of each part, ``[X, 3]`` int32, row by row."""
    worker: Tensor
    """Where each worker's parts begin, ``[W + 1]`` int32."""
    row: Tensor
    """Where each row's parts begin, ``[B * N + 1]`` int32."""

    def tokens_per_worker(self) -> list[int]:
        """Tokens each worker reads: what decides the step time when the work is unequal."""
        sizes = [int(end) - int(begin) for _, begin, end in self.part.tolist()]
        return [sum(sizes[a:b]) for a, b in pairwise(self.worker.tolist())]


def _plan(parts: list[tuple[int, int, int]], worker: list[int], rows: int, device: torch.device) -> Plan:
    """Pack a list of parts, sorted by row, into tensors."""
    counts = [0] * rows
    for owner, _, _ in parts:
        counts[owner] += 1
    row = [0, *accumulate(counts)]
    part = torch.tensor(parts, dtype=torch.int32).reshape(-1, 3)
    starts = (torch.tensor(x, dtype=torch.int32, device=device) for x in (worker, row))
    return Plan(part.to(device), *starts)


def fixed_plan(kept: Tensor, splits: int = 1) -> Plan:
    """Cut every row into ``splits`` equal parts, one worker each.

    Args:
        kept: Tokens per sequence and group, ``[B, N]`` int32.
        splits: Parts per row, the same for all rows; parts may be empty.
    """
    parts = []
    for row, n in enumerate(kept.flatten().tolist()):
        share = -(-n // splits)
        parts += [(row, min(s * share, n), min((s + 1) * share, n)) for s in range(splits)]
    return _plan(parts, list(range(len(parts) + 1)), kept.numel(), kept.device)


def balanced_plan(kept: Tensor, workers: int, step: int = 64) -> Plan:
    """Lay all rows end to end, in whole steps, and cut the line into ``workers`` equal pieces.

    No worker has more than one step more work than another.

    Args:
        kept: Tokens per sequence and group, ``[B, N]`` int32.
        workers: Programs per KV head of a group.
        step: Tokens per inner step of the kernel; cuts fall on steps.
    """
    lengths = kept.flatten().tolist()
    total = sum(-(-n // step) for n in lengths)  # steps in all rows
    edges = [w * total // workers for w in range(workers + 1)]
    parts: list[tuple[int, int, int]] = []
    starts, row, done = [0], 0, 0  # `done`: steps of `row` that have an owner
    for begin, end in pairwise(edges):
        left = end - begin
        while left:
            steps = -(-lengths[row] // step)
            take = min(left, steps - done)
            if take:
                parts.append((row, done * step, min((done + take) * step, lengths[row])))
            left, done = left - take, done + take
            if done == steps:
                row, done = row + 1, 0
        starts.append(len(parts))
    return _plan(parts, starts, kept.numel(), kept.device)


def reference(q: Tensor, k_pages: Tensor, v_pages: Tensor, table: Tensor, kept: Tensor) -> Tensor:
    """One decode step in plain torch, head by head, in float64.

    Args:
        q: Query of the step, ``[B, H, D]``; query heads of one KV head, then of one group, lie together.
        k_pages: Key pool, ``[P, T, C, D]``: a page holds T tokens of the C heads of *one* group.
        v_pages: Value pool, ``[P, T, C, D]``.
        table: Page of each slot, ``[B, N, M]`` int32; slots past the last live page are ignored.
        kept: Tokens each group retained, ``[B, N]`` int32, each in 0..M*T.

    Returns:
        Attention output ``[B, H, D]`` float64; zeros where a group kept nothing.
    """
    out = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    tokens, shared, dim = k_pages.shape[1:]
    group = q.shape[1] // (kept.shape[1] * shared)
    for b, h in torch.cartesian_prod(torch.arange(q.shape[0]), torch.arange(q.shape[1])).tolist():
        owner, head = divmod(h // group, shared)
        n = int(kept[b, owner])
        pages = table[b, owner, : -(-n // tokens)].long()
        k = k_pages[pages, :, head].reshape(-1, dim)[:n].double()  # [n, D]
        v = v_pages[pages, :, head].reshape(-1, dim)[:n].double()  # [n, D]
        out[b, h] = torch.softmax(k @ q[b, h].double() * dim**-0.5, dim=0) @ v
    return out


@triton.jit
def _kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    part_ptr,
    worker_ptr,
    acc_ptr,
    peak_ptr,
    total_ptr,
    scale,
    slots,
    parts,
    C: tl.constexpr,
    G: tl.constexpr,
    ROWS: tl.constexpr,
    T: tl.constexpr,
    D: tl.constexpr,
    N: tl.constexpr,
    WIDE: tl.constexpr,
):
    worker = tl.program_id(0)
    shared = tl.program_id(1)  # which KV head of the group
    g = tl.arange(0, ROWS)
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    for part in range(tl.load(worker_ptr + worker), tl.load(worker_ptr + worker + 1)):
        row = tl.load(part_ptr + part * 3).to(tl.int64)
        begin = tl.load(part_ptr + part * 3 + 1)
        end = tl.load(part_ptr + part * 3 + 2)
        head = (row * C + shared) * G + g  # row of q, [ROWS]
        q = tl.load(q_ptr + head[:, None] * D + d[None, :], mask=(g < G)[:, None], other=0.0)
        if WIDE:
            q = q.to(tl.float32)
        peak = tl.full([ROWS], -float("inf"), tl.float32)
        total = tl.zeros([ROWS], dtype=tl.float32)
        acc = tl.zeros([ROWS, D], dtype=tl.float32)
        for start in range(begin, end, N):
            token = start + n
            live = token < end  # [N]
            page = tl.load(table_ptr + row * slots + token // T, mask=live, other=0).to(tl.int64)
            at = ((page * T + token % T) * C + shared)[:, None] * D + d[None, :]  # [N, D]
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
        at_part = (shared * G + g).to(tl.int64) * parts + part  # parts of one head lie together
        tl.store(acc_ptr + at_part[:, None] * D + d[None, :], acc, mask=(g < G)[:, None])
        tl.store(peak_ptr + at_part, peak, mask=g < G)
        tl.store(total_ptr + at_part, total, mask=g < G)


def ragged_decode(
    q: Tensor,
    k_pages: Tensor,
    v_pages: Tensor,
    table: Tensor,
    kept: Tensor,
    *,
    plan: Plan | None = None,
    step: int = 64,
) -> Tensor:
    """Same contract as `reference`, in the dtype of ``q``; tensors contiguous, D and ``step`` powers of two.

    Args:
        q: As in `reference`, like the next four.
        k_pages: Key pool.
        v_pages: Value pool.
        table: Page tables.
        kept: Retained tokens.
        plan: From `fixed_plan` or `balanced_plan` for exactly these ``kept``; None takes ``fixed_plan(kept, 2)``.
        step: Tokens per inner step, at least 16.
    """
    plan = plan or fixed_plan(kept, 2)
    batch, heads, dim = q.shape
    tokens, shared = k_pages.shape[1:3]
    group, parts = heads // (kept.shape[1] * shared), len(plan.part)
    lanes = shared * group  # query heads per row of the plan
    acc = torch.empty(lanes * parts, dim, dtype=torch.float32, device=q.device)
    peak, total = (torch.empty(lanes * parts, dtype=torch.float32, device=q.device) for _ in range(2))
    _kernel[(len(plan.worker) - 1, shared)](
        q,
        k_pages,
        v_pages,
        table,
        plan.part,
        plan.worker,
        acc,
        peak,
        total,
        dim**-0.5 * LOG2_E,
        table.shape[2],
        parts,
        C=shared,
        G=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        T=tokens,
        D=dim,
        N=step,
        WIDE=not q.is_cuda,
        num_warps=4,
        num_stages=3,
    )
    lane = torch.arange(lanes, dtype=torch.int32, device=q.device)[:, None] * parts
    first = torch.cat([(lane + plan.row[None, :-1]).flatten(), lane.new_tensor([lanes * parts])])
    out = split_merge(acc, peak, total, first, dtype=q.dtype)  # [lanes * rows, D]
    return out.view(lanes, -1, dim).transpose(0, 1).reshape(batch, heads, dim)


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Two sequences of two groups of two heads that kept 1, 90, 33 and 0 tokens in pages of 16."""
    gen = torch.Generator().manual_seed(seed)
    kept = torch.tensor([[1, 90], [33, 0]], dtype=torch.int32)
    q = torch.randn(2, 8, 64, generator=gen).to(dtype)
    k, v = (torch.randn(30, 16, 2, 64, generator=gen).to(dtype) for _ in range(2))
    table = torch.randperm(30, generator=gen)[:24].reshape(2, 2, 6).int()
    return tuple(x.to(device) for x in (q, k, v, table, kept))
