"""The on-premise guide at iternal.ai: its sizing rule beside counted bytes.

Backs     iternal/7b-fp16 · vram-formula · break-even
Question  Bytes of real 7B shapes; the guide's formula against a count for models with grouped heads, latent attention and
          sliding windows; months until a server pays for itself at list prices.
Shows not The cost factor of 8–18, whose assumptions could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer
from kb.repro.sim.shapes import find_model, models

CLAIMS = ("iternal/7b-fp16", "iternal/vram-formula", "iternal/break-even")
LEVELS = ("derived",)
NEEDS = ()
NAMES = ("llama-2-7b", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gemma-3-12b")
HOURS_PER_MONTH = 730
CLOSE = 0.01
"""Share by which the formula may miss the count."""


def weight_bytes(parameters: float, bits: float) -> float:
    """Parameters at ``bits`` each."""
    return parameters * bits / 8


def formula_over_count(model: float, context: float) -> float:
    """Bytes of the guide's formula, ``N·b + 2·L·H_kv·d·b·tokens``, over the counted ones; 16 bits.

    Args:
        model: Place of the model in `NAMES`.
        context: Tokens.
    """
    shape = models()[NAMES[int(model)]]
    formula = shape.parameters * 2 + 2 * shape.layers * shape.kv_heads * shape.head_dim * 2 * context
    return formula / (shape.weight_bytes("bf16") + shape.kv_bytes(int(context)))


def months(server: float, hourly: float) -> float:
    """Months of cloud price at full use that equal the price of a server; power and staff cost nothing."""
    return server / (hourly * HOURS_PER_MONTH)


def check_formula(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The formula is right where each token costs every layer two full vectors per KV head."""
    del claim
    ratios = {NAMES[int(one.case["inputs"]["model"])]: one.samples[0] for one in taken}
    off = {name: value for name, value in ratios.items() if abs(value - 1) > CLOSE}
    shown = ", ".join(f"{name} {value:.3g}" for name, value in ratios.items())
    return (
        Outcome.PARTLY if off else Outcome.HOLDS,
        f"formula over count at 32K tokens: {shown}; it misses {', '.join(off) or 'none'}",
        f"32K token 时公式与实数之比：{shown}；不适用于 {', '.join(off) or '无'}",
    )


QUANTITIES = (
    Quantity(
        "iternal/7b-fp16",
        weight_bytes,
        {"parameters": find_model("llama-2-7b").parameters, "bits": 16},
        "llama-2-7b",
    ),
    Quantity(
        "iternal/7b-fp16",
        weight_bytes,
        {"parameters": find_model("qwen2.5-7b").parameters, "bits": 16},
        "qwen2.5-7b",
    ),
    *(
        Quantity(
            "iternal/vram-formula",
            formula_over_count,
            {"model": place, "context": 32_768},
            pattern=name,
            insensitive="the claim states a formula, not a number",
        )
        for place, name in enumerate(NAMES)
    ),
    Quantity("iternal/break-even", months, {"server": 265_000, "hourly": 98.3}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"formula": check_formula})
figure = no_figure
