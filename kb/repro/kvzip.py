"""KVzip, arxiv:2505.23416: memory by the shape of the model.

Backs     kvzip/124k · qwen14-120k · score-cost · latency
Question  Bytes of K and V follow from layers, KV heads and head dim. Scoring a context repeats it once: FLOPs counted.
          Half the decode time: of attention alone, or of a whole step?
Shows not That the evicted pairs do not matter.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, by_claim, exact, explained, no_figure
from kb.repro.sim.bounds import step_gain
from kb.repro.sim.shapes import find_model

CLAIMS = ("kvzip/124k", "kvzip/qwen14-120k", "kvzip/score-cost", "kvzip/latency")
LEVELS = ("derived",)
NEEDS = ()
LLAMA, QWEN = find_model("llama-3-8b"), find_model("qwen2.5-14b")


def shrunk_bytes(tokens: float, kept: float, bits: float) -> float:
    """Bytes of a Llama-3.1-8B cache with a share ``kept`` of its tokens at ``bits`` per number."""
    return tokens * kept * LLAMA.kv_token_bytes("bf16") * bits / 16


def shrunk_by_layer(tokens: float, kept: float, bits: float) -> float:
    """The same, layer by layer and head by head."""
    per_head = tokens * kept * LLAMA.head_dim * bits / 8
    return sum(2 * per_head for _ in range(LLAMA.layers) for _ in range(LLAMA.kv_heads))


def cache_bytes(tokens: float) -> float:
    """Bytes of a Qwen2.5-14B cache at 16 bits."""
    return tokens * QWEN.kv_token_bytes("bf16")


def scoring_factor(tokens: float, chunk: float) -> float:
    """FLOPs of prefill plus a scoring pass over chunks, over the FLOPs of prefill.

    Linear layers cost the same twice. In scoring, each chunk attends to the whole context and to itself.
    """
    width = LLAMA.query_heads * LLAMA.head_dim
    linear = 2 * (LLAMA.parameters - LLAMA.embedding_parameters) * tokens
    prefill = linear + 2 * LLAMA.layers * width * tokens**2
    scoring = linear + 4 * LLAMA.layers * width * tokens * (tokens + chunk / 2)
    return scoring / prefill


def attention_gain(tokens: float, kept: float, weights: float) -> float:
    """Bound on the speed-up of decode: ``weights`` 0 counts attention alone, 1 a whole step at batch 1."""
    full = tokens * LLAMA.kv_token_bytes("bf16")
    return step_gain(weights * LLAMA.weight_bytes("bf16"), full, kept * full)


QUANTITIES = (
    Quantity(
        "kvzip/124k", shrunk_bytes, {"tokens": 124_000, "kept": 0.3, "bits": 4}, by_hand=shrunk_by_layer
    ),
    Quantity("kvzip/qwen14-120k", cache_bytes, {"tokens": 120_000}),
    Quantity("kvzip/score-cost", scoring_factor, {"tokens": 124_000, "chunk": 2048}),
    Quantity(
        "kvzip/latency", attention_gain, {"tokens": 124_000, "kept": 0.3, "weights": 0}, pattern="attention"
    ),
    Quantity(
        "kvzip/latency", attention_gain, {"tokens": 124_000, "kept": 0.3, "weights": 1}, pattern="whole-step"
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "read-bound": explained(
            "reading fewer bytes, of attention alone or of a whole step,",
            "减少读取的字节（仅 attention 或整步）",
        )
    }
)
figure = no_figure
