"""SnapKV, arxiv:2404.14469: can a decode step become 3.6 times faster, and what is 8.2?

Backs     snapkv/speed · memory
Question  Reading weights and cache bounds the step: once for a cache in place, once for a baseline that copies its cache
          at every step. 8.2 is the ratio of the longest prompts that fit.
Shows not Retrieval quality.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.sim.shapes import find_model

CLAIMS = ("snapkv/speed", "snapkv/memory")
LEVELS = ("derived",)
NEEDS = ()

MODEL = find_model("llama-2-7b")  # one KV head per query head, as in the paper's 7B models
WEIGHTS, KV = MODEL.weight_bytes("bf16"), MODEL.kv_token_bytes("bf16")


def step_speed_up(context: float, kept: float, batch: float, passes: float) -> float:
    """Bound on the speed-up of one decode step.

    Args:
        context: Tokens of the full cache.
        kept: Tokens of the small one.
        batch: Requests in the step.
        passes: How often the cache crosses the memory bus: 1 in place, 3 where it is copied (read, write, read).
    """
    full = WEIGHTS + passes * batch * context * KV
    return full / (WEIGHTS + passes * batch * kept * KV)


def ratio(longest: float, before: float) -> float:
    """Longest prompt that fits over the longest before."""
    return longest / before


QUANTITIES = (
    Quantity(
        "snapkv/speed",
        step_speed_up,
        {"context": 16_384, "kept": 2048, "batch": 2, "passes": 1},
        pattern="in-place",
    ),
    Quantity(
        "snapkv/speed",
        step_speed_up,
        {"context": 16_384, "kept": 2048, "batch": 2, "passes": 3},
        pattern="copied",
    ),
    Quantity("snapkv/memory", ratio, {"longest": 131_072, "before": 16_384}, pattern="longest-prompt"),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()
figure = no_figure
