"""Tangram, arxiv:2606.06302: what do heads that keep unequal shares cost, and what does grouping like heads give back?

Backs     tangram/cluster-reclaim · over-allocation · page-waste · fragmentation · table-cost-plain · table-cost-vector ·
          calibration-50 · budget-formula · decode-skew · aot-latency · kv-over-weights · reclaim and its four models
Question  A page shared by H_p heads is held until the head that keeps most lets go. Heads as they lie in a layer are
          compared with heads sorted by retention over all layers, under three laws of retention. Budgets come from pilot
          prompts; page tables are written and pages returned for real; work is dealt to multiprocessors by the plans of
          our own decode kernel.
Shows not Throughput: it needs the serving simulator. Times of attention need --gpu. The authors' profiles are not ours to
          ship: three laws stand for scorers that split heads sharply and for one that does not.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from kb.errors import CannotRun
from kb.model import Claim, Measurement
from kb.repro import _tangram_figures
from kb.repro._tangram_checks import CHECKS, RECLAIM
from kb.repro._tangram_gpu import candidates as on_gpu
from kb.repro._tangram_host import return_pages, write_tables
from kb.repro.harness.bench import Bench, identify
from kb.repro.harness.contract import Scope
from kb.repro.harness.exact import Point, Quantity
from kb.repro.harness.timed import Timing, exact_and_timed, sharing
from kb.repro.sim.ragged import (
    Law,
    budgets,
    held,
    observed,
    over_allocated,
    overflow,
    pages_held,
    retention,
)
from kb.repro.sim.shapes import find_model

CLAIMS = (
    "tangram/cluster-reclaim",
    "tangram/over-allocation",
    "tangram/page-waste",
    "tangram/fragmentation",
    "tangram/table-cost-plain",
    "tangram/table-cost-vector",
    "tangram/calibration-50",
    "tangram/budget-formula",
    "tangram/decode-skew",
    "tangram/aot-latency",
    "tangram/kv-over-weights",
    "tangram/reclaim",
    "tangram/reclaim-qwen3-4b",
    "tangram/reclaim-llama-3.1-8b",
    "tangram/reclaim-gemma-3-12b",
    "tangram/reclaim-gpt-oss-20b",
)
LEVELS = ("derived", "measured")
NEEDS = ()
GPU_SECONDS = 60
LAYERS, HEADS = 32, 8
"""Shape of Llama-3.1-8B."""
DRAWS = 128
FEW = 0.15
"""Mean retention where few heads keep."""
MULTIPROCESSORS = 108
"""Of an A100."""
CONTEXT, PAGE = 8192, 16
LAWS: dict[float, Law] = {0: "few-heads-keep", 1: "one-bump", 2: "two-bumps"}
"""Inputs are numbers: a law by how many bumps it has, 0 for few heads that keep."""


def _draw(rng: np.random.Generator, bumps: float, mean: float, heads: float = HEADS) -> np.ndarray:
    return retention(rng, LAWS[bumps], mean, (LAYERS, int(heads)))


def reclaimed(rng: np.random.Generator, mean: float, bumps: float, heads_per_page: float) -> list[float]:
    """Share of the full cache that sorting heads over all layers gives back against neighbours, one per draw."""
    group = int(heads_per_page)
    drawn = (_draw(rng, bumps, mean) for _ in range(DRAWS))
    return [held(shares, group) - held(shares, group, "sorted") for shares in drawn]


def over_allocation(
    rng: np.random.Generator, mean: float, bumps: float, heads_per_page: float, layers: float, heads: float
) -> list[float]:
    """Share of what heads sorted over all layers hold that none of them keeps, one per draw."""
    drawn = (retention(rng, LAWS[bumps], mean, (int(layers), int(heads))) for _ in range(DRAWS))
    return [over_allocated(shares, int(heads_per_page), "sorted") for shares in drawn]


def wasted(rng: np.random.Generator, mean: float, bumps: float, heads: float) -> list[float]:
    """Share of held memory that is not live where all heads of a layer share pages, one per draw."""
    drawn = (_draw(rng, bumps, mean, heads) for _ in range(DRAWS))
    return [over_allocated(shares, int(heads), "neighbours") for shares in drawn]


def lost_bytes(rng: np.random.Generator, heads_per_page: float, live_bytes: float) -> list[float]:
    """Bytes that groups of sorted heads hold beyond ``live_bytes``, one per draw."""
    drawn = (_draw(rng, 0, FEW) for _ in range(DRAWS))
    return [live_bytes * (held(one, int(heads_per_page), "sorted") / one.mean() - 1) for one in drawn]


def table_entries(rng: np.random.Generator, heads_per_page: float, layers: float) -> list[float]:
    """Page-table entries of ragged pages over those of one table that all heads share, one per draw."""
    one_table = -(-CONTEXT // PAGE)
    drawn = (retention(rng, LAWS[0], FEW, (int(layers), HEADS)) for _ in range(DRAWS))
    return [pages_held(s, int(heads_per_page), "sorted", CONTEXT, PAGE) / one_table for s in drawn]


PILOTS = (5, 10, 25, 50, 100)
MANY, SEEN = 200, 400
WITHIN = 0.02


def enough_prompts(rng: np.random.Generator, within: float, many: float) -> list[float]:
    """Least pilot set whose held-out overflow lies within ``within`` of that of ``many`` prompts, one per draw."""
    found = []
    for _ in range(8):
        means = _draw(rng, 0, FEW).ravel()
        seen = observed(rng, means, SEEN, skewed=True)
        goal = overflow(budgets(observed(rng, means, int(many), skewed=True)), seen) + within
        sizes = [n for n in PILOTS if overflow(budgets(observed(rng, means, n, skewed=True)), seen) <= goal]
        found.append(float(sizes[0]) if sizes else float(many))
    return found


def held_out_overflow(rng: np.random.Generator, pilot: float, sigmas: float, skewed: float) -> list[float]:
    """Share of (prompt, head) pairs above their budget on prompts that the budget has not seen, one per draw."""
    found = []
    for _ in range(8):
        means = _draw(rng, 0, FEW).ravel()
        reserved = budgets(observed(rng, means, int(pilot), skewed=bool(skewed)), sigmas)
        found.append(overflow(reserved, observed(rng, means, SEEN, skewed=bool(skewed))))
    return found


def over_reservation(rng: np.random.Generator, pilot: float, sigmas: float) -> float:
    """What budgets reserve over what is kept on average."""
    means = _draw(rng, 0, FEW).ravel()
    return float(budgets(observed(rng, means, int(pilot), skewed=True), sigmas).mean() / means.mean())


def makespan(work: Sequence[float], workers: int) -> float:
    """Time until the last worker is done if each piece goes to the worker that is free first, in the order given."""
    loads = [0.0] * workers
    for piece in work:
        heapq.heapreplace(loads, loads[0] + piece)
    return max(loads)


def skew(
    rng: np.random.Generator, batch: float, mean: float, tokens: float, splits: float, balanced: float
) -> list[float]:
    """Work of the busiest multiprocessor with unequal heads over that with equal heads of the same total.

    The pieces are those of the decode kernel's own plans, in tokens, one draw per layer.

    Args:
        rng: Source of draws.
        batch: Requests in the step.
        mean: Mean retention; two bumps.
        tokens: Context before eviction.
        splits: Parts per head, the same for every head.
        balanced: 1 takes the plan that deals equal work instead.
    """
    found = []
    for layer in np.concatenate([_draw(rng, 2, mean) for _ in range(2)]):
        kept = np.maximum(1, np.rint(np.tile(layer, (int(batch), 1)) * tokens)).astype(np.int32)
        even = np.full_like(kept, round(float(kept.mean())))
        unequal, equal = (
            makespan(pieces(one, int(splits), balanced=bool(balanced)), MULTIPROCESSORS)
            for one in (kept, even)
        )
        found.append(unequal / equal)
    return found


def pieces(kept: np.ndarray, splits: int, *, balanced: bool) -> list[int]:
    """Tokens per program of the decode kernel for heads of these lengths, ``[batch, heads]``.

    Raises:
        CannotRun: torch and Triton are not installed.
    """
    try:
        import torch

        from kb.repro.kernels.ragged_decode import balanced_plan, fixed_plan
    except ModuleNotFoundError as error:
        raise CannotRun(
            "the kernel's plans were not made",
            cause=f"the package {error.name} is not installed",
            remedy="pip install 'kb[repro]'",
            next_command="kb repro tangram",
        ) from error
    lengths = torch.from_numpy(kept)
    plan = balanced_plan(lengths, MULTIPROCESSORS) if balanced else fixed_plan(lengths, splits)
    return plan.tokens_per_worker()


def turns_until_heavier(sessions: float, per_turn: float) -> float:
    """Turns until the KV cache of all sessions outweighs the 16-bit weights of Qwen2.5-32B."""
    return float(np.ceil(tokens_to_outweigh(sessions) / per_turn))


def tokens_to_outweigh(sessions: float, model: str = "qwen2.5-32b") -> float:
    """Tokens per session at which the KV cache of all sessions weighs as much as the 16-bit weights."""
    shape = find_model(model)
    return shape.weight_bytes("bf16") / shape.kv_token_bytes("bf16") / sessions


def turns_by_counting(sessions: float, per_turn: float) -> float:
    """The same, turn by turn."""
    shape = find_model("qwen2.5-32b")
    turns, context = 0, 0
    while sessions * shape.kv_bytes(context) < shape.weight_bytes("bf16"):
        turns, context = turns + 1, context + int(per_turn)
    return float(turns)


def reclaim_share(
    layers: float, heads: float, tokens: float, kept: float, prefill_s: float, page_s: float
) -> float:
    """Share of prefill and reclaim together that returning every page of every head takes, one page at a time."""
    pages = layers * heads * (1 - kept) * tokens / PAGE
    return pages * page_s / (pages * page_s + prefill_s)


PREFILL = {
    "qwen3-4b": (36, 8, 0.48),
    "llama-3.1-8b": (32, 8, 0.70),
    "gemma-3-12b": (8, 8, 0.98),
    "gpt-oss-20b": (12, 8, 1.28),
}
"""Layers that keep the whole context, KV heads, and seconds of prefill without eviction as read from the authors' figure."""
BATCHES = (1, 2, 4, 8, 16, 32)


def splits_for(batch: int) -> int:
    """Parts per head with which about every multiprocessor gets a program, as flash decoding chooses them."""
    return max(1, MULTIPROCESSORS // (batch * HEADS))


def _reclaim(claim: str, model: str, kept: Iterable[float]) -> Iterator[Quantity]:
    layers, heads, prefill = PREFILL[model]
    for share in kept:
        inputs = {"layers": layers, "heads": heads, "tokens": CONTEXT, "kept": share, "prefill_s": prefill}
        yield Quantity(claim, reclaim_share, {**inputs, "page_s": 1e-6}, pattern=f"kept-{round(100 * share)}")


BUMPS = (("few-heads-keep", 0, FEW), *((f"two-bumps-{m}", 2, m / 100) for m in (30, 50, 70)),
         *((f"one-bump-{m}", 1, m / 100) for m in (14, 30, 50, 70)))  # fmt: skip
QUANTITIES = (
    *(
        Quantity(
            "tangram/cluster-reclaim",
            reclaimed,
            {"mean": mean, "bumps": bumps, "heads_per_page": 4},
            pattern=name,
        )
        for name, bumps, mean in BUMPS
    ),
    *(
        Quantity(
            "tangram/over-allocation",
            over_allocation,
            {"mean": mean, "bumps": bumps, "heads_per_page": 4, "layers": 28, "heads": 4},
            pattern=name,
        )
        for name, bumps, mean in BUMPS[:3]
    ),
    *(
        Quantity("tangram/page-waste", wasted, {"mean": mean, "bumps": bumps, "heads": HEADS}, pattern=name)
        for name, bumps, mean in (BUMPS[0], BUMPS[1], BUMPS[5])
    ),
    *(
        Quantity(
            "tangram/fragmentation",
            lost_bytes,
            {"heads_per_page": group, "live_bytes": 16e9},
            pattern=f"heads-{group}",
        )
        for group in (1, 2, 4, 8, 16, 32, 64)
    ),
    *(
        Quantity(
            "tangram/table-cost-plain",
            table_entries,
            {"heads_per_page": group, "layers": LAYERS},
            pattern=f"heads-{group}",
        )
        for group in (1, 2, 4, 8, 16, 32, 64)
    ),
    Quantity("tangram/calibration-50", enough_prompts, {"within": WITHIN, "many": MANY}),
    *(
        Quantity(
            "tangram/budget-formula",
            held_out_overflow,
            {"pilot": 28, "sigmas": 2, "skewed": skewed},
            pattern=name,
        )
        for skewed, name in ((0, "even-noise"), (1, "skewed-noise"))
    ),
    *(
        Quantity(
            "tangram/decode-skew",
            skew,
            {
                "mean": 0.5,
                "batch": batch,
                "tokens": CONTEXT,
                "splits": splits_for(batch),
                "balanced": balanced,
            },
            pattern=f"{name}-batch-{batch}",
        )
        for balanced, name in ((0, "fixed-splits"), (1, "balanced"))
        for batch in BATCHES
    ),
    *(
        Quantity(
            "tangram/kv-over-weights",
            turns_until_heavier,
            {"sessions": 16, "per_turn": tokens},
            pattern=f"{tokens}-per-turn",
            by_hand=turns_by_counting,
        )
        for tokens in (256, 1024, 2048, 4096)
    ),
    *_reclaim("tangram/reclaim", "qwen3-4b", (0.25,)),
    *(one for model in PREFILL for one in _reclaim(f"tangram/reclaim-{model}", model, (0.75, 0.25))),
)
TIMINGS = (
    Timing("tangram/table-cost-vector", write_tables, {"requests": 16, "heads": LAYERS * HEADS}),
    Timing("tangram/reclaim", return_pages, {"pages": 50_000}, pattern="host"),
)

_cases, check, _measure = exact_and_timed(QUANTITIES, TIMINGS)
GPU_BATCHES = (1, 4, 16)


def _on_gpu() -> Iterator[Point]:
    for batch in GPU_BATCHES:
        inputs = {"batch": batch, "heads": HEADS, "tokens": CONTEXT, "splits": splits_for(batch)}
        for claim, mean, name in (
            ("tangram/decode-skew", 0.5, "gpu-fixed-splits"),
            ("tangram/aot-latency", 0.25, "gpu-balance"),
        ):
            yield Point(
                claim=claim,
                metric="duration",
                pattern=f"{name}-batch-{batch}",
                inputs={**inputs, "mean": mean, "workers": MULTIPROCESSORS},
            )


def cases(scope: Mapping[str, Claim]) -> Iterator[Point]:
    """What is counted and timed on the host; on a GPU the decode steps beside it."""
    yield from _cases(scope)
    if isinstance(scope, Scope) and scope.device == "cuda":
        yield from _on_gpu()


def measure(case: Point, bench: Bench) -> Iterator[Measurement]:
    """Counts, host times, and on a GPU the times of decode attention."""
    if not case.pattern.startswith("gpu-"):
        yield from _measure(case, bench)
        return
    for one in bench.alternate(case, on_gpu(case.inputs, balance=case.pattern.startswith("gpu-balance"))):
        yield one
        if one.metric == "speed_up" and case.claim == "tangram/decode-skew":
            renamed = one.model_copy(update={"metric": "latency_ratio"})  # unequal over equal
            yield renamed.model_copy(update={"id": identify(renamed)})


judge = sharing(CHECKS, {claim: RECLAIM for claim in CLAIMS if claim.startswith(f"{RECLAIM}-")})
figure = _tangram_figures.figure
