"""Verification of drafted tokens by exact rejection sampling: what comes out is distributed as the target alone.

Axes: B sequences · R = draft length + 1 positions · V vocabulary.
Source of the rule: Leviathan, Kalman, Matias, arXiv:2211.17192, algorithm 1. The random numbers come in as an
argument, so that kernel and reference decide on the same ones.
Read `reference` first; the kernel below must agree with it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def reference(draft: Tensor, target: Tensor, drafter: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Accept token i with probability min(1, target/drafter); at the first refusal draw from what is missing.

    Args:
        draft: Drafted tokens, drawn from ``drafter``, ``[B, R - 1]`` int32.
        target: The target's probabilities, ``[B, R, V]``.
        drafter: The drafter's probabilities, ``[B, R - 1, V]``.
        uniform: Numbers in [0, 1): one per drafted token, then one for the drawn token, ``[B, R]`` float32.

    Returns:
        Accepted drafted tokens ``[B]`` int32 and the tokens that follow, ``[B, R]`` int32: the accepted ones,
        one drawn from max(target - drafter, 0) made a distribution (from the target alone if all were
        accepted, or if rounding left nothing missing), then -1. The draw takes the first token at which the running sum passes uniform * sum.
    """
    accepted = torch.zeros(len(draft), dtype=torch.int32, device=draft.device)
    tokens = torch.full(target.shape[:2], -1, dtype=torch.int32, device=draft.device)
    for b, row in enumerate(draft.tolist()):
        agreed = 0
        while agreed < len(row):
            p, q = (float(x[b, agreed, row[agreed]]) for x in (target, drafter))
            if not float(uniform[b, agreed]) * q < p:
                break
            agreed += 1
        weights = target[b, agreed].double()
        missing = weights - drafter[b, agreed].double() if agreed < len(row) else weights
        if bool((missing > 0).any()):
            weights = missing.clamp(min=0)
        sums = weights.cumsum(0)
        drawn = int((sums <= float(uniform[b, -1]) * float(sums[-1])).sum())
        accepted[b] = agreed
        tokens[b, : agreed + 1] = torch.tensor([*row[:agreed], drawn], dtype=torch.int32)
    return accepted, tokens


@triton.jit
def _missing(target_ptr, drafter_ptr, row, drafted, start, vocabulary, N: tl.constexpr):
    """Weights of the draw for N tokens from ``start``: target minus drafter, never below 0."""
    token = start + tl.arange(0, N)
    p = tl.load(target_ptr + row * vocabulary + token, mask=token < vocabulary, other=0.0)
    end = tl.where(drafted >= 0, vocabulary, 0)
    q = tl.load(drafter_ptr + drafted * vocabulary + token, mask=token < end, other=0.0)
    return tl.maximum(p.to(tl.float32) - q.to(tl.float32), 0.0)


@triton.jit
def _kernel(
    draft_ptr,
    target_ptr,
    drafter_ptr,
    uniform_ptr,
    accepted_ptr,
    tokens_ptr,
    vocabulary,
    R: tl.constexpr,
    ROWS: tl.constexpr,
    N: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    r = tl.arange(0, ROWS)
    drafted = r < R - 1
    token = tl.load(draft_ptr + b * (R - 1) + r, mask=drafted, other=0)
    p = tl.load(target_ptr + (b * R + r) * vocabulary + token, mask=drafted, other=0.0).to(tl.float32)
    q = tl.load(drafter_ptr + (b * (R - 1) + r) * vocabulary + token, mask=drafted, other=1.0)
    u = tl.load(uniform_ptr + b * R + r, mask=drafted, other=0.0)
    agreed = tl.min(tl.where(drafted & (u * q.to(tl.float32) < p), ROWS, r), axis=0)  # first refusal
    tl.store(accepted_ptr + b, agreed)

    row = b * R + agreed
    # past the draft there is no drafter to take off: -1 masks its loads
    gone = tl.where(agreed < R - 1, b * (R - 1) + agreed, -1)
    total = 0.0
    whole = 0.0
    for start in range(0, vocabulary, N):
        total += tl.sum(_missing(target_ptr, drafter_ptr, row, gone, start, vocabulary, N), axis=0)
        whole += tl.sum(_missing(target_ptr, drafter_ptr, row, -1, start, vocabulary, N), axis=0)
    gone = tl.where(total > 0, gone, -1)
    total = tl.where(total > 0, total, whole)
    goal = tl.load(uniform_ptr + b * R + R - 1) * total
    before = 0.0
    drawn = 0
    last = 0  # greatest token that may come out at all
    for start in range(0, vocabulary, N):
        weight = _missing(target_ptr, drafter_ptr, row, gone, start, vocabulary, N)
        sums = before + tl.cumsum(weight, axis=0)
        candidate = start + tl.arange(0, N)
        drawn += tl.sum(((candidate < vocabulary) & (sums <= goal)).to(tl.int32), axis=0)
        last = tl.maximum(last, tl.max(tl.where(weight > 0, candidate, 0), axis=0))
        before += tl.sum(weight, axis=0)
    drawn = tl.minimum(drawn, last)  # rounding may leave the last sum at the goal
    out = tl.where(r < agreed, token, tl.where(r == agreed, drawn, -1))
    tl.store(tokens_ptr + b * R + r, out, mask=r < R)


def spec_sample(
    draft: Tensor, target: Tensor, drafter: Tensor, uniform: Tensor, *, step: int = 1024
) -> tuple[Tensor, Tensor]:
    """Same contract as `reference`; tensors contiguous, ``step`` (vocabulary per inner step) a power of two.

    Sums are taken in float32 and in steps: a uniform number within rounding (1e-6) of a running sum may draw the
    neighbouring token.
    """
    batch, positions, vocabulary = target.shape
    accepted = torch.empty(batch, dtype=torch.int32, device=target.device)
    tokens = torch.empty(batch, positions, dtype=torch.int32, device=target.device)
    _kernel[(batch,)](
        draft,
        target,
        drafter,
        uniform,
        accepted,
        tokens,
        vocabulary,
        R=positions,
        ROWS=triton.next_power_of_2(positions),
        N=step,
    )
    return accepted, tokens


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Eight sequences, 3 tokens drafted from a drafter that is near the target."""
    gen = torch.Generator().manual_seed(seed)
    logits = torch.randn(8, 4, 37, generator=gen)
    target = torch.softmax(logits, -1).to(dtype)
    drafter = torch.softmax(logits[:, :3] + torch.randn(8, 3, 37, generator=gen) * 0.5, -1).to(dtype)
    draft = torch.multinomial(drafter.float().reshape(-1, 37), 1, generator=gen).reshape(8, 3).int()
    uniform = torch.rand(8, 4, generator=gen)
    return tuple(x.to(device) for x in (draft, target, drafter, uniform))
