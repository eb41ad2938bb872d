"""AMD's TurboQuant post: does 17.1 follow from its times, and whose prefixes start to fit?

Backs     amd-tq/ttft · throughput · compression · skip-layers · design
Question  13.9 over 0.89 s is not 17.1. Bytes per slot give the compression. By capacity, the 32 active clients fit in
          FP8 already; it is the pool of 100 conversations that does not. Each choice of the design is tried on planted
          keys: rotate K, leave V, no sign sketch.
Shows not Kernel speed, or the hit rate under load: that needs the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure, ratio
from kb.repro.harness.judge import Answer
from kb.repro.sim.quantisers import attention, min_max, planted_keys, rotated, sketched

CLAIMS = ("amd-tq/ttft", "amd-tq/throughput", "amd-tq/compression", "amd-tq/skip-layers", "amd-tq/design")
LEVELS = ("derived",)
NEEDS = ()


def compression(dim: float, bits: float, extra: float) -> float:
    """Bytes of K and V at 16 bits over their bytes at ``bits`` plus ``extra`` bytes of norms and scales."""
    return 2 * dim * 2 / (2 * dim * bits / 8 + extra)


def lost_share(layers: float, skipped: float, bits: float, kept_bits: float) -> float:
    """Share of the compression factor that is lost when some layers keep ``kept_bits`` per number."""
    whole = kept_bits / bits
    mixed = layers * kept_bits / (skipped * kept_bits + (layers - skipped) * bits)
    return 1 - mixed / whole


Arrays = tuple[np.ndarray, np.ndarray]
DRAWS, TOKENS, DIM, QUERIES = 40, 256, 128, 32
WITHOUT_FIGURE = "the claim states no number: each choice is tried by itself"
HELPS = 1.5
"""Factor by which an error must fall for a choice to have paid."""


def choice(rng: np.random.Generator, bits: float, outlier: float, part: float) -> list[float]:
    """Error of attention output by the way not taken over that by the way taken, one per draw.

    Args:
        rng: Source of draws.
        bits: Per number.
        outlier: Mean of the outlier channels of K; values have none.
        part: 0 keys: even steps over rotation and codebook. 1 values: the same. 2 keys: the sign sketch over none.
    """
    return [_one_choice(rng, int(bits), outlier, part) for _ in range(DRAWS)]


def _one_choice(rng: np.random.Generator, bits: int, outlier: float, part: float) -> float:
    k = planted_keys(rng, TOKENS, DIM, outlier)
    v, q = rng.standard_normal((TOKENS, DIM)), rng.standard_normal((QUERIES, DIM))
    signs, sketch = rng.choice([-1.0, 1.0], DIM), rng.standard_normal((DIM, DIM))
    ways: dict[float, Callable[[], tuple[Arrays, Arrays]]] = {
        0: lambda: ((min_max(k, bits, 1), v), (rotated(k, bits, signs), v)),
        1: lambda: ((k, min_max(v, bits, 1)), (k, rotated(v, bits, signs))),
        2: lambda: ((sketched(k, bits, signs, sketch), v), (rotated(k, bits, signs), v)),
    }
    right = attention(q, k, v)
    other, taken = (float(np.linalg.norm(attention(q, *way) - right)) for way in ways[part]())
    return other / taken


PARTS = {0: "rotate-keys", 1: "rotate-values", 2: "no-sketch"}


def design(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Each choice pays on planted keys: rotation helps K much and V little, and a sign sketch does not help."""
    del claim
    found = {str(one.case["pattern"]): one.samples for one in taken}
    keys, values, sketch = (float(np.median(found[name])) for name in PARTS.values())
    good = [keys > HELPS, values < HELPS, sketch > 1]
    shown = ", ".join(f"{name} {min(ratios):.2f}–{max(ratios):.2f}" for name, ratios in found.items())
    outcome = Outcome.HOLDS if all(good) else Outcome.PARTLY if any(good) else Outcome.CONTRADICTED
    return (
        outcome,
        f"{sum(good)} of 3 choices pay on planted keys; error of the other way over the error of the way taken: {shown}",
        f"3 项设计取舍中 {sum(good)} 项在合成 key 上得到支持；另一做法与所选做法的误差之比：{shown}",
    )


QUANTITIES = (
    *(
        Quantity(
            "amd-tq/design",
            choice,
            {"outlier": 10, "bits": 4, "part": part},
            pattern=name,
            insensitive=WITHOUT_FIGURE,
        )
        for part, name in PARTS.items()
    ),
    Quantity("amd-tq/ttft", ratio, {"new": 13.9, "old": 0.89}),
    Quantity("amd-tq/throughput", ratio, {"new": 28_539, "old": 17_536}),
    Quantity("amd-tq/compression", compression, {"dim": 128, "bits": 4, "extra": 6}),
    # 62 layers, the first and the last kept in FP8 beside 4.19 effective bits
    Quantity("amd-tq/skip-layers", lost_share, {"layers": 62, "skipped": 4, "bits": 4.1875, "kept_bits": 8}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"design": design})
figure = no_figure
