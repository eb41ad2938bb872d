"""Move the tokens that survived eviction together, so that whole pages become free.

Axes: R rows (a sequence, or one head group of it) · P pages in the pool · T tokens per page · M page slots per
row · C heads per page · D head dim. Two ways:

* ``fill``: tokens past the last page that will be needed move into the holes before it. Fewest moves, in place,
  but the order of tokens inside a row changes (attention does not mind: keys carry their position).
* ``ordered``: all survivors are copied, in their order, into other pages. One pass over everything kept.

Sources and destinations never meet in either way, so the programs need not wait for one another.
Read `reference` first; the kernel below must agree with it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def reference(
    k_pages: Tensor, v_pages: Tensor, table: Tensor, keep: Tensor, fresh: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compact row by row and token by token, on copies of the pools.

    Args:
        k_pages: Key pool, ``[P, T, C, D]``.
        v_pages: Value pool, ``[P, T, C, D]``.
        table: Page of each slot, ``[R, M]`` int32; no page twice.
        keep: Which tokens survive, ``[R, M*T]`` bool; False past a row's length.
        fresh: Pages that take the survivors in order, ``[R, M]`` int32, none of them in ``table``; None fills holes.

    Returns:
        Both pools afterwards and the survivors per row ``[R]`` int32: row r now lives in its first
        ``ceil(kept[r] / T)`` slots of ``table`` (of ``fresh`` if given); the pages of its other slots are free.
    """
    pools, tokens = (k_pages.clone(), v_pages.clone()), k_pages.shape[1]
    for row, alive in enumerate(keep.tolist()):
        survivors = [at for at, kept in enumerate(alive) if kept]
        if fresh is None:
            holes = [at for at in range(len(survivors)) if not alive[at]]
            moves = list(zip([at for at in survivors if at >= len(survivors)], holes, strict=True))
        else:
            moves = [(at, rank) for rank, at in enumerate(survivors)]
        into = table if fresh is None else fresh
        for source, goal in moves:
            old = int(table[row, source // tokens]), source % tokens
            new = int(into[row, goal // tokens]), goal % tokens
            for pool in pools:
                pool[new] = pool[old]
    return *pools, keep.sum(1).int()


@triton.jit
def _kernel(
    k_ptr,
    v_ptr,
    table_ptr,
    into_ptr,
    goal_ptr,
    length,
    slots,
    T: tl.constexpr,
    WIDTH: tl.constexpr,
    LANES: tl.constexpr,
    N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1) * N + tl.arange(0, N)
    lane = tl.arange(0, LANES)
    goal = tl.load(goal_ptr + row * length + token, mask=token < length, other=-1)  # [N], -1: stays
    moves = goal >= 0
    if tl.max(goal, axis=0) >= 0:  # most steps of a hole-filling move nothing
        old = tl.load(table_ptr + row * slots + token // T, mask=moves, other=0).to(tl.int64)
        new = tl.load(into_ptr + row * slots + goal // T, mask=moves, other=0).to(tl.int64)
        source = (old * T + token % T) * WIDTH
        target = (new * T + goal % T) * WIDTH
        for begin in range(0, WIDTH, LANES):
            number = begin + lane
            mask = moves[:, None] & (number < WIDTH)[None, :]
            k = tl.load(k_ptr + source[:, None] + number[None, :], mask=mask)
            v = tl.load(v_ptr + source[:, None] + number[None, :], mask=mask)
            tl.store(k_ptr + target[:, None] + number[None, :], k, mask=mask)
            tl.store(v_ptr + target[:, None] + number[None, :], v, mask=mask)


def goals(keep: Tensor, *, ordered: bool) -> Tensor:
    """Where each token goes within its row, -1 for one that does not move; ``[R, M*T]`` int32.

    Args:
        keep: Which tokens survive, ``[R, M*T]`` bool.
        ordered: All survivors to their rank; else only those past the end, to the hole of the same rank.
    """
    rank = keep.cumsum(1) - 1
    if ordered:
        return torch.where(keep, rank, -1).int()
    count = keep.sum(1, keepdim=True)
    at = torch.arange(keep.shape[1], device=keep.device)
    late, hole = keep & (at >= count), ~keep & (at < count)
    # the i-th hole of a row, found by the rank that a late survivor has among the late ones
    order = torch.argsort(torch.where(hole, at, keep.shape[1] + at), dim=1)  # holes first, in their order
    late_rank = (late.cumsum(1) - 1).clamp(min=0)
    return torch.where(late, order.gather(1, late_rank), -1).int()


def page_compact(
    k_pages: Tensor,
    v_pages: Tensor,
    table: Tensor,
    keep: Tensor,
    fresh: Tensor | None = None,
    *,
    step: int = 32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Same contract as `reference`, but in place: the pools given are the pools returned.

    Args:
        k_pages: Key pool, contiguous, written to.
        v_pages: Value pool, contiguous, written to.
        table: Page tables.
        keep: Survivors.
        fresh: Pages for an ordered copy; None fills holes.
        step: Tokens per program, a power of two.
    """
    tokens, width = k_pages.shape[1], k_pages.shape[2] * k_pages.shape[3]
    goal = goals(keep, ordered=fresh is not None)
    _kernel[(keep.shape[0], triton.cdiv(keep.shape[1], step))](
        k_pages,
        v_pages,
        table,
        table if fresh is None else fresh,
        goal,
        keep.shape[1],
        table.shape[1],
        T=tokens,
        WIDTH=width,
        LANES=min(128, triton.next_power_of_2(width)),
        N=step,
        num_warps=4,
    )
    return k_pages, v_pages, keep.sum(1).int()


def example(dtype: torch.dtype, device: torch.device, seed: int = 0) -> tuple[Tensor, ...]:
    """Three rows of 5 pages of 16 slots that kept 40 % at random, nothing, and all but one token."""
    gen = torch.Generator().manual_seed(seed)
    k, v = (torch.randn(20, 16, 2, 64, generator=gen).to(dtype) for _ in range(2))
    table = torch.randperm(20, generator=gen)[:15].reshape(3, 5).int()
    keep = torch.rand(3, 80, generator=gen) < torch.tensor([[0.4], [0.0], [1.0]])
    keep[2, 3] = False
    return tuple(x.to(device) for x in (k, v, table, keep))
