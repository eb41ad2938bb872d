"""Greedy verification of drafted tokens: accept the longest prefix that the target would have written itself.

Axes: B sequences · R = draft length + 1 positions · V vocabulary.
Read `reference` first; the kernels below must agree with it exactly.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def reference(draft: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Compare token by token; the first token that differs is replaced by the target's, the rest is dropped.

    Args:
        draft: Drafted tokens, ``[B, R - 1]`` int32.
        logits: The target's logits at each drafted position and one past them, ``[B, R, V]``.

    Returns:
        Accepted drafted tokens ``[B]`` int32, in 0..R-1, and the tokens that follow: the accepted ones, then one
        of the target's own, then -1, ``[B, R]`` int32. Of equal logits the lowest token wins.
    """
    accepted = torch.zeros(len(draft), dtype=torch.int32, device=draft.device)
    tokens = torch.full(logits.shape[:2], -1, dtype=torch.int32, device=draft.device)
    for b, (row, own) in enumerate(zip(draft.tolist(), logits.double().tolist(), strict=True)):
        best = [max(range(len(scores)), key=scores.__getitem__) for scores in own]
        agreed = 0
        while agreed < len(row) and row[agreed] == best[agreed]:
            agreed += 1
        accepted[b] = agreed
        tokens[b, : agreed + 1] = torch.tensor([*row[:agreed], best[agreed]], dtype=torch.int32)
    return accepted, tokens


@triton.jit
def _best(logits_ptr, best_ptr, vocabulary, N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, N)
    score = tl.full([N], -float("inf"), tl.float32)  # best so far of each lane
    where = tl.zeros([N], dtype=tl.int32) + lane
    for start in range(0, vocabulary, N):
        token = start + lane
        logit = tl.load(logits_ptr + row * vocabulary + token, mask=token < vocabulary, other=-float("inf"))
        logit = logit.to(tl.float32)
        better = logit > score
        where = tl.where(better, token, where)
        score = tl.where(better, logit, score)
    top = tl.max(score, axis=0)
    tl.store(best_ptr + row, tl.min(tl.where(score == top, where, vocabulary), axis=0))


@triton.jit
def _accept(draft_ptr, best_ptr, accepted_ptr, tokens_ptr, R: tl.constexpr, ROWS: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    r = tl.arange(0, ROWS)
    best = tl.load(best_ptr + b * R + r, mask=r < R, other=-1)
    draft = tl.load(draft_ptr + b * (R - 1) + r, mask=r < R - 1, other=-2)  # never equal past the draft
    agreed = tl.min(tl.where(draft == best, ROWS, r), axis=0)  # first position that differs
    tl.store(accepted_ptr + b, agreed)
    token = tl.where(r < agreed, draft, tl.where(r == agreed, best, -1))
    tl.store(tokens_ptr + b * R + r, token, mask=r < R)


def spec_verify(draft: Tensor, logits: Tensor, *, step: int = 1024) -> tuple[Tensor, Tensor]:
    """Same contract as `reference`; tensors contiguous, ``step`` (vocabulary per inner step) a power of two."""
    batch, positions, vocabulary = logits.shape
    best = torch.empty(batch, positions, dtype=torch.int32, device=logits.device)
    accepted = torch.empty(batch, dtype=torch.int32, device=logits.device)
    tokens = torch.empty(batch, positions, dtype=torch.int32, device=logits.device)
    _best[(batch * positions,)](logits, best, vocabulary, N=step)
    rows = triton.next_power_of_2(positions)
    _accept[(batch,)](draft, best, accepted, tokens, R=positions, ROWS=rows, num_warps=1)
    return accepted, tokens


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Four sequences, 3 drafted tokens each, of which the target would have written 0, 1, 2 and 3."""
    gen = torch.Generator().manual_seed(seed)
    logits = torch.randn(4, 4, 37, generator=gen).to(dtype)
    draft = logits[:, :3].float().argmax(-1).int()
    for b in range(3):
        draft[b, b] = (draft[b, b] + 1) % 37
    return draft.to(device), logits.to(device)
