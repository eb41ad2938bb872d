"""TensorFoundry's comparison: what does serving one request at a time cost?

Backs     tensorfoundry/ollama-throughput
Question  A decode step costs ``a + b·B``. With one slot the total rate is flat in the number of clients; with continuous
          batching it grows until the slope dominates. The claim has no number, so only its direction is checked.
Shows not Any engine: schedulers, kernels and defaults differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Claim, Figure, Measurement, Point, Series, Text
from kb.repro.harness.exact import Quantity, by_claim, exact
from kb.repro.harness.judge import Answer
from kb.repro.sim.shapes import find_hardware, find_model

CLAIMS = ("tensorfoundry/ollama-throughput",)
LEVELS = ("derived",)
NEEDS = ()
MODEL, GPU = find_model("llama-3.1-8b"), find_hardware("h100")
CLIENTS = (1, 2, 4, 8, 16, 32, 64)


def batching_gain(clients: float, context: float, mfu: float) -> float:
    """Total rate of continuous batching over the rate of one slot, for requests of the same shape."""
    fixed = MODEL.weight_bytes("bf16") / GPU.bandwidth
    each = (
        2 * MODEL.parameters / (mfu * (GPU.flops or 1))
        + context * MODEL.kv_token_bytes("bf16") / GPU.bandwidth
    )
    return clients * (fixed + each) / (fixed + clients * each)


def check_direction(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """One slot is slowest if batching gains at every number of clients above one."""
    del claim
    gains = {int(one.case["inputs"]["clients"]): one.samples[0] for one in taken}
    slower = all(gain > 1 for clients, gain in gains.items() if clients > 1)
    top = max(gains)
    return (
        slower,
        f"with one slot, {top} clients get 1/{gains[top]:.0f} of what continuous batching gives; direction only",
        f"单槽位时 {top} 个客户端只得到连续 batching 的 1/{gains[top]:.0f}；仅核对方向",
    )


QUANTITIES = tuple(
    Quantity(
        "tensorfoundry/ollama-throughput",
        batching_gain,
        {"clients": clients, "context": 1024, "mfu": 0.5},
        pattern=f"{clients}-clients",
        insensitive="the claim states no number",
    )
    for clients in CLIENTS
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"one-slot-is-slowest": check_direction})


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Gain of continuous batching by clients."""
    gains = tuple(Point(x=one.case["inputs"]["clients"], y=one.samples[0]) for one in taken)
    if not gains:
        return ()
    return (
        Figure(
            name="batching-gain",
            repro="engine-landscape",
            title=Text(
                zh="连续 batching 的总吞吐随客户端数增长，单槽位不变",
                en="Continuous batching grows with clients, one slot stays flat",
            ),
            x=Text(zh="并发客户端", en="clients"),
            y=Text(zh="总吞吐 / 单槽位吞吐", en="total rate / rate of one slot"),
            x_scale="log2",
            series=(
                Series(
                    label=Text(zh="连续 batching（步时模型）", en="continuous batching (step model)"),
                    points=gains,
                    predicted=True,
                ),
                Series(
                    label=Text(zh="单槽位", en="one slot"),
                    points=(Point(x=CLIENTS[0], y=1), Point(x=CLIENTS[-1], y=1)),
                    predicted=True,
                ),
            ),
            alt=Text(
                zh="连续 batching 的曲线近乎线性上升，单槽位为水平线。",
                en="The curve of batching rises almost linearly; one slot is a level line.",
            ),
            topics=("inference",),
        ),
    )
