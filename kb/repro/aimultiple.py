"""AIMultiple's offline batch benchmark: what would 29 % between two engines cost per step?

Backs     aimultiple/gap · sglang-throughput · vllm-throughput
Question  The printed rates give the gap. A step that reads weights and cache and does its FLOPs bounds the rates.
Shows not Which engine is faster: two other measurements of the pair differ by a few per cent.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, bounded, by_claim, exact, gain, no_figure
from kb.repro.sim.shapes import find_hardware, find_model

CLAIMS = ("aimultiple/gap", "aimultiple/sglang-throughput", "aimultiple/vllm-throughput")
LEVELS = ("derived",)
NEEDS = ()
MODEL, GPU = find_model("llama-3.1-8b"), find_hardware("h100")


def batch_rate(batch: float, context: float, mfu: float) -> float:
    """Tokens per second of one batch if a step reads weights and cache, then does its FLOPs.

    Args:
        batch: Requests per step.
        context: Mean tokens held per request.
        mfu: Share of the peak FLOP rate.
    """
    flops = GPU.flops or 0.0
    fixed = MODEL.weight_bytes("bf16") / GPU.bandwidth
    each = 2 * MODEL.parameters / (mfu * flops) + context * MODEL.kv_token_bytes("bf16") / GPU.bandwidth
    return batch / (fixed + batch * each)


QUANTITIES = (
    Quantity("aimultiple/gap", gain, {"new": 16_215, "old": 12_553}),
    Quantity("aimultiple/sglang-throughput", batch_rate, {"batch": 1000, "context": 400, "mfu": 0.6}),
    Quantity("aimultiple/vllm-throughput", batch_rate, {"batch": 1000, "context": 400, "mfu": 0.6}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "step-bound": bounded(
            0.0, "a step's reads and FLOPs at batch 1,000", "batch 1,000 时单步读取与计算的上界"
        )
    }
)
figure = no_figure
