"""Prefill and decode on emerging accelerators, arxiv:2606.17104: where does batching bring a GPU back?

Backs     pd-accel/gpu-batched-throughput · gpu-prefill-lead · groq-tpot · threefold-batch1
Question  If one token at batch 1 takes a GPU three times as long, weights read once per step make its rate grow with the
          batch: from which batch on is it ahead of a machine that does not batch?
Shows not The accelerator itself: no such hardware here. Its claims stay untested with that reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Claim, Figure, Measurement, Outcome, Point, Series, Text
from kb.repro.harness.exact import Quantity, by_claim, exact
from kb.repro.harness.judge import Answer
from kb.repro.sim.shapes import find_hardware, find_model

CLAIMS = ("pd-accel/gpu-batched-throughput",)
LEVELS = ("derived",)
NEEDS = ()
MODEL, GPU = find_model("llama-2-7b"), find_hardware("a100")
BATCHES = (1, 2, 4, 8, 16, 32)
FACTOR = 3.0
"""How much faster the other machine decodes one token at batch 1, by the only figure there is."""


def rate_ratio(batch: float, context: float, factor: float) -> float:
    """Decode rate of a batching GPU over a machine ``factor`` times faster at batch 1 that does not batch.

    Args:
        batch: Requests per step.
        context: Tokens held per request.
        factor: Advantage at batch 1.
    """
    kv = context * MODEL.kv_token_bytes("bf16")
    one = (MODEL.weight_bytes("bf16") + kv) / GPU.bandwidth
    step = (MODEL.weight_bytes("bf16") + batch * kv) / GPU.bandwidth
    return (batch / step) / (factor / one)


def check_crossing(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The lead comes back if the ratio is below one at batch 1 and above it at the largest batch."""
    del claim
    ratios = {int(one.case["inputs"]["batch"]): one.samples[0] for one in taken}
    ahead = [batch for batch, ratio in sorted(ratios.items()) if ratio > 1]
    if ratios[min(ratios)] >= 1 or not ahead:
        return Outcome.CONTRADICTED, "the rate ratio does not cross one", "速率之比没有越过 1"
    return (
        Outcome.HOLDS,
        f"reading weights once per step, the GPU is ahead from batch {ahead[0]} on; direction only",
        f"每步只读一遍权重时，GPU 从 batch {ahead[0]} 起领先；仅核对方向",
    )


QUANTITIES = tuple(
    Quantity(
        "pd-accel/gpu-batched-throughput",
        rate_ratio,
        {"batch": batch, "context": 1024, "factor": FACTOR},
        pattern=f"batch-{batch}",
        insensitive="the claim states an order, not a number",
    )
    for batch in BATCHES
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"crosses-one": check_crossing})


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Rate ratio by batch."""
    ours = sorted((one.case["inputs"]["batch"], one.samples[0]) for one in taken)
    if not ours:
        return ()
    return (
        Figure(
            name="rate-by-batch",
            repro="pd-accel",
            title=Text(
                zh="batch 增大后 GPU 的 decode 速率反超",
                en="With larger batches the GPU's decode rate comes out ahead",
            ),
            x=Text(zh="batch", en="batch size"),
            y=Text(
                zh="GPU 速率 / 不 batching 机器的速率",
                en="GPU rate / rate of the machine that does not batch",
            ),
            x_scale="log2",
            series=(
                Series(
                    label=Text(zh="权重每步读一遍", en="weights read once per step"),
                    points=tuple(Point(x=x, y=y) for x, y in ours),
                    predicted=True,
                ),
            ),
            alt=Text(
                zh="曲线从 1/3 上升，在 batch 4 附近越过 1。",
                en="The curve rises from a third and crosses one near batch 4.",
            ),
            topics=("cloud-native/inference",),
        ),
    )
