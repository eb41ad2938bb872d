"""H2O, arxiv:2306.14048: do its ratios follow from its rates, and what does a fifth of the cache save per step?

Backs     h2o/throughput-3x · latency-1.9x
Question  The printed rates give both factors. Reading weights and cache bounds the equal-batch factor.
Shows not Task quality, or the 29 times over engines that move the cache to the CPU.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, bounded, by_claim, exact, no_figure, ratio
from kb.repro.sim.bounds import step_gain

CLAIMS = ("h2o/throughput-3x", "h2o/latency-1.9x")
LEVELS = ("derived",)
NEEDS = ()


def equal_batch_gain(weights: float, kv_token: float, context: float, kept: float, batch: float) -> float:
    """Bound on the gain at the same batch when a share ``kept`` of ``context`` tokens stays."""
    return step_gain(weights, context * kv_token, kept * context * kv_token, batch)


QUANTITIES = (
    Quantity("h2o/throughput-3x", ratio, {"new": 52.1, "old": 16.9}),
    # OPT-6.7B: 32 layers of width 4096 at 16 bits; 2,048 prompt and 2,048 output tokens, mean context 3,072
    Quantity(
        "h2o/latency-1.9x",
        equal_batch_gain,
        {"weights": 13.3e9, "kv_token": 2 * 32 * 4096 * 2, "context": 3072, "kept": 0.2, "batch": 24},
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {"step-bound": bounded(0.0, "what reading weights and cache allows", "读取权重与缓存所允许的上界")}
)
figure = no_figure
