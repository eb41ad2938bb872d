"""CATS, arxiv:2605.11186: bytes per token, tokens per pass, and a ratio above one.

Backs     cats/bpt-ar · bpt-kangaroo-3 · bpt-kangaroo-15 · bpt-cats-3-15 · steps-3 … steps-10 · lossless
Question  A cycle of y draft steps through L_DM layers and one pass of the rest moves a countable number of layer weights;
          over tokens per pass that is bytes per token. Speed-up by bytes alone is compared with the stated one. Greedy
          verification is run against autoregressive decoding on a tiny random model.
Shows not Speed on the authors' device; a speed-up above tokens per pass needs layers that stay resident.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.model import Claim, Measurement
from kb.repro.harness.exact import Quantity, by_claim, exact, explained, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = (
    "cats/bpt-ar",
    "cats/bpt-kangaroo-3",
    "cats/bpt-kangaroo-15",
    "cats/bpt-cats-3-15",
    "cats/steps-3",
    "cats/steps-5",
    "cats/steps-7",
    "cats/steps-10",
    "cats/lossless",
)
LEVELS = ("derived",)
NEEDS = ()
LAYER_BYTES = 4 * 4096 * 4096 * 2 + 3 * 4096 * 11_008 * 2
"""One Llama-7B layer at 16 bits: four attention and three MLP matrices."""
STEPS = {3: 2.71, 5: 3.05, 7: 3.23, 10: 3.33}
"""Draft length → tokens per pass, as printed."""


def bytes_per_token(layers: float, draft_layers: float, draft_length: float, tokens: float) -> float:
    """Weight bytes moved per token.

    Args:
        layers: Of the target model.
        draft_layers: Layers each draft step runs through.
        draft_length: Draft steps per cycle.
        tokens: Tokens per pass, bonus included.
    """
    return (draft_length * draft_layers + layers - draft_layers) * LAYER_BYTES / tokens


def bytes_by_layer(layers: float, draft_layers: float, draft_length: float, tokens: float) -> float:
    """The same, layer by layer."""
    moved = 0
    for _ in range(int(draft_length)):
        moved += sum(LAYER_BYTES for _ in range(int(draft_layers)))
    moved += sum(LAYER_BYTES for _ in range(int(draft_layers), int(layers)))
    return moved / tokens


def greedy_mismatches(
    rng: np.random.Generator, vocabulary: float, length: float, draft_length: float
) -> float:
    """Tokens that differ between greedy decoding and draft-and-verify with a drafter that is often wrong.

    The model is a random second-order Markov table whose arg-max is the next token.
    """
    size = int(vocabulary)
    target = rng.standard_normal((size, size, size))
    drafter = target + rng.standard_normal(target.shape)

    def run_greedy(table: np.ndarray, context: list[int], steps: int) -> list[int]:
        out = list(context)
        for _ in range(steps):
            out.append(int(np.argmax(table[out[-2], out[-1]])))
        return out[len(context) :]

    plain = run_greedy(target, [0, 1], int(length))
    out = [0, 1]
    while len(out) - 2 < length:
        for token in run_greedy(drafter, out, int(draft_length)):
            right = int(np.argmax(target[out[-2], out[-1]]))
            out.append(right)
            if token != right:
                break
        else:
            out.append(int(np.argmax(target[out[-2], out[-1]])))
    return float(sum(a != b for a, b in zip(plain, out[2:], strict=False)))


def check_lossless(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Greedy verification must change no token; typical acceptance, the released default, may."""
    del claim
    wrong = sum(sample for one in taken for sample in one.samples)
    return (
        None if wrong == 0 else False,
        f"greedy verification changes {wrong:.0f} tokens; the released default accepts typical tokens, which loses",
        f"贪心验证改变了 {wrong:.0f} 个 token；发布的默认是典型接受，有损",
    )


def inputs(draft_layers: float, draft_length: float, tokens: float) -> dict[str, float]:
    """A cycle on a model of 32 layers."""
    return {"layers": 32, "draft_layers": draft_layers, "draft_length": draft_length, "tokens": tokens}


def byte_speed_up(layers: float, draft_layers: float, draft_length: float, tokens: float) -> float:
    """Speed-up if time were bytes moved."""
    return layers * LAYER_BYTES / bytes_per_token(layers, draft_layers, draft_length, tokens)


QUANTITIES = (
    Quantity("cats/bpt-ar", bytes_per_token, inputs(0, 0, 1), by_hand=bytes_by_layer),
    Quantity("cats/bpt-kangaroo-3", bytes_per_token, inputs(3, 5, 2.13), by_hand=bytes_by_layer),
    Quantity("cats/bpt-kangaroo-15", bytes_per_token, inputs(15, 5, 3.35), by_hand=bytes_by_layer),
    Quantity("cats/bpt-cats-3-15", bytes_per_token, inputs(3, 5, 3.05), by_hand=bytes_by_layer),
    *(Quantity(f"cats/steps-{y}", byte_speed_up, inputs(3, y, tokens)) for y, tokens in STEPS.items()),
    Quantity(
        "cats/lossless",
        greedy_mismatches,
        {"vocabulary": 24, "length": 400, "draft_length": 5},
        insensitive="the claim states no number",
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "greedy": check_lossless,
        "bytes": explained("time proportional to bytes moved", "时间与搬运字节成正比"),
    }
)
figure = no_figure
