"""Tangram, arxiv:2606.06302: what do heads that keep unequal shares cost, and what does grouping like heads give back?

Backs     tangram/cluster-reclaim · decode-skew · page-waste
Question  A page shared by H_p heads is held until the head that keeps most lets go. Heads grouped as they lie in a layer
          are compared with heads sorted by retention over all layers, for retention in two bumps and in one. Work per
          head is dealt to the multiprocessors of a GPU, whole heads or in pieces.
Shows not Throughput: it needs the serving simulator; until then those claims are untested. Times need a GPU. The authors'
          profiles are not ours to ship; the two laws stand for scorers that split heads sharply and scorers that do not.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro.harness.exact import Quantity, by_claim, exact

CLAIMS = ("tangram/cluster-reclaim", "tangram/decode-skew", "tangram/page-waste")
LEVELS = ("derived",)
NEEDS = ()
LAYERS, HEADS = 32, 8
"""Shape of Llama-3.1-8B."""
DRAWS = 8
MULTIPROCESSORS = 108
"""Of an A100."""


CENTRES, SPREAD = (0.2, 0.8), 20.0
"""Where the two bumps lie, and how narrow each bump is (the sum of the Beta law's parameters)."""


def retention(rng: np.random.Generator, mean: float, bumps: float) -> np.ndarray:
    """Share each KV head keeps, ``[layers, heads]`` in 0–1.

    Args:
        rng: Source of draws.
        mean: Mean share.
        bumps: 2: heads near 0.2 or near 0.8, mixed so that the mean comes out. 1: all near the mean, as narrowly.
    """
    shape = (LAYERS, HEADS)
    if bumps == 1:
        return rng.beta(SPREAD * mean, SPREAD * (1 - mean), shape)
    low, high = CENTRES
    centre = np.where(rng.random(shape) < (mean - low) / (high - low), high, low)
    return rng.beta(SPREAD * centre, SPREAD * (1 - centre))


def held(shares: np.ndarray, heads_per_page: int) -> float:
    """Share of the full cache that is held when groups of heads, in the order given, share pages."""
    groups = shares.reshape(-1, heads_per_page)
    return float(groups.max(axis=1).mean())


def reclaimed(rng: np.random.Generator, mean: float, bumps: float, heads_per_page: float) -> list[float]:
    """Points of the full cache that sorting heads over all layers gives back against neighbours, one per draw."""
    found = []
    for _ in range(DRAWS):
        shares = retention(rng, mean, bumps)
        found.append(
            held(shares, int(heads_per_page)) - held(np.sort(shares, axis=None), int(heads_per_page))
        )
    return found


def makespan(work: Sequence[float], workers: int) -> float:
    """Time until the last worker is done if each piece goes to the worker that is free first, longest piece first."""
    loads = [0.0] * workers
    for piece in sorted(work, reverse=True):
        heapq.heapreplace(loads, loads[0] + piece)
    return max(loads)


def skew(rng: np.random.Generator, batch: float, mean: float, pieces: float) -> list[float]:
    """Decode attention of one layer with unequal heads over equal heads with the same tokens, one per draw.

    Args:
        rng: Source of draws.
        batch: Requests in the step.
        mean: Mean retention; two bumps.
        pieces: Longest piece as a share of the context; 1 deals whole heads, less splits the KV axis.
    """
    found = []
    for layer in retention(rng, mean, 2):
        work = np.tile(layer, int(batch))
        split = [part for share in work for part in _split(float(share), pieces)]
        even = [part for _ in work for part in _split(float(layer.mean()), pieces)]
        found.append(makespan(split, MULTIPROCESSORS) / makespan(even, MULTIPROCESSORS))
    return found


def _split(share: float, longest: float) -> list[float]:
    parts = max(1, int(np.ceil(share / longest)))
    return [share / parts] * parts


def wasted(live: float, pages: float) -> float:
    """Share of held memory that is not live."""
    return 1 - live / pages


BATCHES = (1, 2, 4, 8, 16, 32)
QUANTITIES = (
    *(
        Quantity(
            "tangram/cluster-reclaim",
            reclaimed,
            {"mean": mean, "bumps": bumps, "heads_per_page": 4},
            pattern=f"{name}-{round(100 * mean)}",
        )
        for bumps, name in ((2, "two-bumps"), (1, "one-bump"))
        for mean in (0.3, 0.5, 0.7)
    ),
    *(
        Quantity(
            "tangram/decode-skew",
            skew,
            {"batch": batch, "mean": 0.5, "pieces": pieces},
            pattern=f"{name}-batch-{batch}",
        )
        for pieces, name in ((1, "whole-heads"), (0.02, "split"))
        for batch in BATCHES
    ),
    Quantity("tangram/page-waste", wasted, {"live": 16, "pages": 49}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Skew by batch: whole heads, and the KV axis in pieces."""
    lines: dict[str, list[Point]] = {}
    for one in taken:
        if one.case["claim"] == "tangram/decode-skew":
            name = str(one.case["pattern"]).partition("-batch")[0]
            low, high = min(one.samples), max(one.samples)
            middle = float(np.median(one.samples))
            lines.setdefault(name, []).append(
                Point(x=one.case["inputs"]["batch"], y=middle, low=low, high=high)
            )
    if not lines:
        return ()
    labels = {
        "whole-heads": Text(zh="每个 head 一块", en="a whole head per block"),
        "split": Text(zh="按 KV 轴切分", en="KV axis in pieces"),
    }
    return (
        Figure(
            name="decode-skew",
            repro="tangram",
            title=Text(
                zh="head 不等长的代价来自不切分 KV 轴的 kernel",
                en="Unequal heads cost time where a kernel does not split the KV axis",
            ),
            x=Text(zh="batch", en="batch size"),
            y=Text(zh="相对等长 head 的 attention 时间", en="attention time over equal heads"),
            x_scale="log2",
            series=tuple(
                Series(label=labels[name], points=tuple(sorted(points, key=lambda point: point.x)))
                for name, points in lines.items()
            ),
            alt=Text(
                zh="整 head 分配时小 batch 约慢一倍，切分后接近 1。",
                en="With whole heads small batches take about twice as long; in pieces the ratio stays near one.",
            ),
            topics=("inference/kvcache",),
        ),
    )
