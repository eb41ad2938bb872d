"""Tangram's GPU parts: decode attention over heads of unequal length, by a fixed cut and by a cut made ahead of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.errors import WrongResult
from kb.repro.harness.timing import Candidate
from kb.repro.sim.ragged import retention

if TYPE_CHECKING:
    import torch

DIM, GROUP, PAGE = 128, 4, 16
"""Head dim, query heads per KV head, tokens per page: Llama-3.1-8B."""
CLOSE = 2e-2
"""Largest difference of two attention outputs in bfloat16."""


def lengths(rng: np.random.Generator, inputs: Mapping[str, float], *, even: bool) -> np.ndarray:
    """Tokens per sequence and KV head, ``[batch, heads]``; even: the same total, all alike."""
    batch, heads = int(inputs["batch"]), int(inputs["heads"])
    shares = retention(rng, "two-bumps", inputs["mean"], (1, heads)).repeat(batch, axis=0)
    chosen = np.full_like(shares, shares.mean()) if even else shares
    return np.maximum(1, np.rint(chosen * inputs["tokens"])).astype(np.int32)


def _arena(rng: np.random.Generator, inputs: Mapping[str, float], device: str) -> dict[str, Any]:
    """Queries, pools, page tables and lengths of one decode step of one layer."""
    import torch

    batch, heads = int(inputs["batch"]), int(inputs["heads"])
    gen = torch.Generator(device=device).manual_seed(int(rng.integers(2**62)))
    slots = -(-int(inputs["tokens"]) // PAGE)
    pages = batch * heads * slots
    shape = (pages, PAGE, 1, DIM)

    def draw(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=gen, device=device, dtype=torch.float32).to(torch.bfloat16)

    table = torch.randperm(pages, generator=gen, device=device).reshape(batch, heads, slots).int()
    return {"q": draw(batch, heads * GROUP, DIM), "k": draw(*shape), "v": draw(*shape), "table": table}


def _bytes(kept: np.ndarray) -> float:
    return float(kept.sum()) * DIM * 2 * 2


def _verify(inputs: Any, output: Any) -> None:
    from kb.repro.kernels.ragged_decode import ragged_decode

    arena, kept, plan = inputs[output[1]]
    again = ragged_decode(
        arena["q"], arena["k"], arena["v"], arena["table"], kept, plan=plan["whole"]
    )  # one part per row: no merge
    worst = float((output[0].float() - again.float()).abs().max())
    if not worst <= CLOSE:
        raise WrongResult(
            f"tangram: attention in parts is off by {worst:.3g}",
            cause="the plan loses or repeats tokens, or the merge is wrong",
            remedy="run the kernels' own tests; nothing was stored",
        )


def candidates(
    inputs: Mapping[str, float], *, balance: bool, device: str = "cuda", bandwidth: float = 4.8e12
) -> dict[str, Candidate]:
    """Two ways through one decode step.

    Args:
        inputs: ``batch``, ``heads``, ``tokens``, ``mean`` (retention) and ``splits`` (parts per head).
        balance: True compares a fixed cut with one made ahead of time, on unequal heads; False compares unequal with
            equal heads of the same total, both cut the fixed way.
        device: Where.
        bandwidth: Bytes per second nothing exceeds, for the floor.
    """
    import torch

    from kb.repro.kernels.ragged_decode import balanced_plan, fixed_plan, ragged_decode

    def prepare(rng: np.random.Generator) -> dict[str, Any]:
        arena = _arena(rng, inputs, device)
        mark = int(rng.integers(2**62))
        made = {}
        for name, even in (("unequal", False), ("equal", True)):
            kept = torch.from_numpy(lengths(np.random.default_rng(mark), inputs, even=even)).to(device)
            plans = {"fixed": fixed_plan(kept, int(inputs["splits"])), "whole": fixed_plan(kept, 1)}
            if balance:
                plans["ahead"] = balanced_plan(kept, int(inputs["workers"]))
            made[name] = (arena, kept, plans)
        return made

    def run(name: str, plan: str) -> Any:
        def step(made: dict[str, Any]) -> Any:
            arena, kept, plans = made[name]
            out = ragged_decode(arena["q"], arena["k"], arena["v"], arena["table"], kept, plan=plans[plan])
            return out, name

        return step

    floor = _bytes(lengths(np.random.default_rng(0), inputs, even=False)) * 0.5 / bandwidth
    ways = (
        {"fixed": ("unequal", "fixed"), "ahead": ("unequal", "ahead")}
        if balance
        else {"unequal": ("unequal", "fixed"), "equal": ("equal", "fixed")}
    )
    return {name: Candidate(prepare, run(*way), _verify, floor) for name, way in ways.items()}
