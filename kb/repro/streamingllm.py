"""StreamingLLM, arxiv:2309.17453: 22 times against what, and do its pages come back?

Backs     streamingllm/speed · no-scores
Question  The baseline computes a prefill of the whole window for each token: the factor is prefill over decode.
          Survivors are contiguous, so a page allocator frees all but the edges.
Shows not That language modelling stays stable: that needs a model.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.sim.bounds import prefill_seconds
from kb.repro.sim.shapes import find_model

CLAIMS = ("streamingllm/speed", "streamingllm/no-scores")
LEVELS = ("derived",)
NEEDS = ()

MODEL = find_model("llama-2-7b")


def recompute_factor(window: float, flops: float, decode_s: float) -> float:
    """Seconds to prefill ``window`` tokens at an effective rate over the seconds of one decode step."""
    width = MODEL.query_heads * MODEL.head_dim
    return prefill_seconds(MODEL.parameters, window, flops, MODEL.layers, width) / decode_s


def freed_of_ideal(tokens: float, sink: float, recent: float, page: float) -> float:
    """Pages freed over the pages that evicting that many tokens could free at best.

    Args:
        tokens: Tokens held before eviction.
        sink: First tokens kept.
        recent: Last tokens kept.
        page: Tokens per page.
    """
    kept = set(range(int(sink))) | set(range(int(tokens - recent), int(tokens)))
    pages = -(-int(tokens) // int(page))
    held = {token // int(page) for token in kept}
    ideal = (tokens - len(kept)) // page
    return (pages - len(held)) / ideal


def freed_in_closed_form(tokens: float, sink: float, recent: float, page: float) -> float:
    """The same from the two edges alone."""
    pages = -(-tokens // page)
    head = -(-sink // page)
    tail = pages - (tokens - recent) // page
    return (pages - head - tail) / ((tokens - sink - recent) // page)


QUANTITIES = (
    # decode of a 7B model in eager PyTorch on an A100: 18-25 ms; prefill at 100 effective TFLOP/s
    Quantity(
        "streamingllm/speed",
        recompute_factor,
        {"window": 4096, "flops": 100e12, "decode_s": 0.025},
        "slow-decode",
    ),
    Quantity(
        "streamingllm/speed",
        recompute_factor,
        {"window": 4096, "flops": 100e12, "decode_s": 0.018},
        "fast-decode",
    ),
    Quantity(
        "streamingllm/no-scores",
        freed_of_ideal,
        {"tokens": 16_000, "sink": 4, "recent": 1596, "page": 16},
        by_hand=freed_in_closed_form,
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()
figure = no_figure
