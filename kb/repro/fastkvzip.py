"""Fast KVzip, arxiv:2601.17668: how many parameters does its gate add?

Backs     tangram/params-overhead · fastkvzip/decode-overhead
Question  Per layer the gate holds D·H_kv·16·(G + 1) weights (queries of every head of a group and keys of rank 16).
          Counted for seven models and held against "less than 1 %"; decode reads those bytes once per token.
Shows not What the gate's choice costs in accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer
from kb.repro.sim.shapes import models

CLAIMS = ("tangram/params-overhead", "fastkvzip/decode-overhead")
LEVELS = ("derived",)
NEEDS = ()
NAMES = ("qwen3-4b", "qwen3-8b", "llama-3-8b", "qwen2.5-7b", "qwen2.5-14b", "qwen2.5-32b")


def gate_share(
    layers: float, hidden: float, kv_heads: float, group: float, rank: float, parameters: float
) -> float:
    """Gate parameters over the model's."""
    return layers * hidden * kv_heads * rank * (group + 1) / parameters


def gate_by_matrix(
    layers: float, hidden: float, kv_heads: float, group: float, rank: float, parameters: float
) -> float:
    """The same, one projection after another."""
    total = 0.0
    for _ in range(int(layers)):
        total += hidden * (kv_heads * group * rank)  # queries
        total += hidden * (kv_heads * rank)  # keys
    return total / parameters


def inputs(name: str) -> dict[str, float]:
    """Shape of a model as the gate sees it."""
    model = models()[name]
    return {
        "layers": model.layers,
        "hidden": model.hidden,
        "kv_heads": model.kv_heads,
        "group": model.query_heads // model.kv_heads,
        "rank": 16,
        "parameters": model.parameters,
    }


def below(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the share stays below the stated one in every model counted."""
    limit = claim.high or 0.0
    shares = {str(one.case["pattern"]): one.samples[0] for one in taken}
    over = {name: share for name, share in shares.items() if share >= limit}
    shown = ", ".join(
        f"{name} {share:.2%}" for name, share in sorted(shares.items(), key=lambda pair: -pair[1])
    )
    return (
        Outcome.HOLDS if not over else Outcome.CONTRADICTED if len(over) == len(shares) else Outcome.PARTLY,
        f"{len(over)} of {len(shares)} models reach {limit:.0%} or more: {shown}",
        f"{len(shares)} 个模型中有 {len(over)} 个不低于 {limit:.0%}：{shown}",
    )


QUANTITIES = (
    *(
        Quantity("tangram/params-overhead", gate_share, inputs(name), pattern=name, by_hand=gate_by_matrix)
        for name in NAMES
    ),
    Quantity("fastkvzip/decode-overhead", gate_share, inputs("qwen3-8b"), by_hand=gate_by_matrix),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"below-in-every-model": below})
figure = no_figure
