"""AsymCache, arxiv:2606.02964: is its attention over segments lossless, and what does an ordered eviction save?

Backs     asymcache/msa-is-kernel · evict-cost
Question  Attention over m segments, merged by online softmax, against attention over all keys at once. Victims of a scan
          over all pages against victims of two heaps: the same ones, at how many comparisons?
Shows not TTFT and TPOT: they need the simulator. Milliseconds need its machine; here comparisons are counted.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Measurement
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = ("asymcache/msa-is-kernel", "asymcache/evict-cost")
LEVELS = ("derived",)
NEEDS = ()
EXACT = 1e-12
"""Relative difference that float64 rounding explains."""


def merged_difference(rng: np.random.Generator, keys: float, dim: float, segments: float) -> list[float]:
    """Largest relative difference between merged and whole attention, one per draw; ``[keys, dim]`` float64."""
    found = []
    for _ in range(4):
        q = rng.standard_normal(int(dim))
        k, v = rng.standard_normal((2, int(keys), int(dim)))
        logits = k @ q / math.sqrt(dim)
        weights = np.exp(logits - logits.max())
        whole = weights @ v / weights.sum()
        peak, total, out = -math.inf, 0.0, np.zeros(int(dim))
        for part in np.array_split(np.arange(int(keys)), int(segments)):
            new = max(peak, logits[part].max())
            e = np.exp(logits[part] - new)
            shrink = math.exp(peak - new)
            total, out, peak = total * shrink + e.sum(), out * shrink + e @ v[part], new
        found.append(float(np.abs(out / total - whole).max() / np.abs(whole).max()))
    return found


def eviction_seconds(rng: np.random.Generator, pages: float, evictions: float, scan_s: float) -> list[float]:
    """Seconds per request with ordered eviction if a scan takes ``scan_s``, by counted comparisons; victims checked.

    A page's order is ``ln(cost) + t/α`` within each branch of the lifespan law, which time does not change, so that
    two heaps hold it. Both ways must evict the same pages in the same order.

    Raises:
        WrongResult: The victims differ.
    """
    cost, last = rng.random(int(pages)) + 0.5, rng.random(int(pages))
    key = np.log(cost) + last
    alive = np.ones(int(pages), dtype=bool)
    by_scan, scanned = [], 0
    for _ in range(int(evictions)):
        masked = np.where(alive, key, math.inf)
        victim = int(np.argmin(masked))
        scanned += int(alive.sum())
        alive[victim] = False
        by_scan.append(victim)
    heap = [(float(value), page) for page, value in enumerate(key)]
    heapq.heapify(heap)
    by_heap, compared = [], 0
    for _ in range(int(evictions)):
        compared += 2 * math.ceil(math.log2(len(heap)))
        by_heap.append(heapq.heappop(heap)[1])
    if by_scan != by_heap:
        raise WrongResult(
            "asymcache: the heap evicts other pages than the scan",
            cause="the two orders differ",
            remedy="read eviction_seconds; nothing was stored",
        )
    return [scan_s * compared / scanned]


def check_kernel(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Lossless means: no more than rounding between merged and whole attention."""
    del claim
    worst = max(sample for one in taken for sample in one.samples)
    return (
        worst <= EXACT,
        f"merged and whole attention differ by at most {worst:.1e} in float64: a lossless kernel, which evicts nothing",
        f"合并与整体 attention 在 float64 下最多相差 {worst:.1e}：是无损 kernel，不驱逐任何内容",
    )


def check_order(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The stated time is possible if the same victims come out with few enough comparisons."""
    needed = max(sample for one in taken for sample in one.samples)
    stated = claim.high or 0.0
    return (
        needed <= stated,
        f"the same victims in n·log n comparisons: {1000 * needed:.2g} ms where a scan takes 200 ms, {1000 * stated:.2g} ms stated",
        f"以 n·log n 次比较得到相同的被驱逐页：扫描需 200 ms 时为 {1000 * needed:.2g} ms，来源称 {1000 * stated:.2g} ms",
    )


QUANTITIES = (
    *(
        Quantity(
            "asymcache/msa-is-kernel",
            merged_difference,
            {"keys": 1000, "dim": 64, "segments": segments},
            pattern=f"{segments}-segments",
            insensitive="the claim states no number",
        )
        for segments in (1, 2, 8, 32)
    ),
    Quantity("asymcache/evict-cost", eviction_seconds, {"pages": 8192, "evictions": 256, "scan_s": 0.2}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"lossless": check_kernel, "ordered": check_order})
figure = no_figure
