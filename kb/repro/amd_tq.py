"""AMD's TurboQuant post: does 17.1 follow from its times, and whose prefixes start to fit?

Backs     amd-tq/ttft · throughput · compression · skip-layers
Question  13.9 over 0.89 s is not 17.1. Bytes per slot give the compression. By capacity, the 32 active clients fit in
          FP8 already; it is the pool of 100 conversations that does not.
Shows not Kernel speed, or the hit rate under load: that needs the simulator.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure, ratio

CLAIMS = ("amd-tq/ttft", "amd-tq/throughput", "amd-tq/compression", "amd-tq/skip-layers")
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


QUANTITIES = (
    Quantity("amd-tq/ttft", ratio, {"new": 13.9, "old": 0.89}),
    Quantity("amd-tq/throughput", ratio, {"new": 28_539, "old": 17_536}),
    Quantity("amd-tq/compression", compression, {"dim": 128, "bits": 4, "extra": 6}),
    # 62 layers, the first and the last kept in FP8 beside 4.19 effective bits
    Quantity("amd-tq/skip-layers", lost_share, {"layers": 62, "skipped": 4, "bits": 4.1875, "kept_bits": 8}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()
figure = no_figure
