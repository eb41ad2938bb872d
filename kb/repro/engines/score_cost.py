"""What scores cost on a CPU: attention by a fused kernel, with every score written out, and a last window of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.errors import WrongResult
from kb.repro.harness.timing import Candidate

if TYPE_CHECKING:
    from torch import Tensor

HEADS, KV_HEADS, HEAD_DIM = 9, 3, 64
"""Of SmolLM2-135M."""
Many = tuple["Tensor", ...]


def attention_candidates(tokens: int, window: int) -> dict[str, Candidate]:
    """The fused kernel first, as the baseline; then all scores, as H2O sums them; then those of the last ``window``.

    Args:
        tokens: Prompt tokens.
        window: Last queries whose scores are recomputed beside the fused kernel.
    """

    def prepare(rng: np.random.Generator) -> list[Tensor]:
        import torch

        shapes = [(1, heads, tokens, HEAD_DIM) for heads in (HEADS, KV_HEADS, KV_HEADS)]
        return [torch.from_numpy(rng.standard_normal(shape, np.float32)) for shape in shapes]

    def exact(inputs: list[Tensor]) -> Many:
        return with_all_scores([x.double() for x in inputs])

    def last(inputs: list[Tensor]) -> Many:
        return (weights(inputs[0][:, :, -window:], inputs[1]).sum(2),)

    def last_exact(inputs: list[Tensor]) -> Many:
        return last([x.double() for x in inputs])

    return {
        "fused": Candidate(prepare, fused, _like(lambda inputs: exact(inputs)[:1]), 0.0),
        "all-scores": Candidate(prepare, with_all_scores, _like(exact), 0.0),
        "last-window": Candidate(prepare, last, _like(last_exact), 0.0),
    }


def weights(q: Tensor, k: Tensor) -> Tensor:
    """Causal softmax weights of the last queries over all keys, written out: ``[1, H, rows, N]``."""
    import torch

    rows, tokens = q.shape[2], k.shape[2]
    logits = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(2, 3) * HEAD_DIM**-0.5
    hidden = ~torch.ones(rows, tokens, dtype=torch.bool).tril(tokens - rows)
    return logits.masked_fill(hidden, -torch.inf).softmax(-1)


def fused(inputs: list[Tensor]) -> Many:
    """Attention whose scores nobody sees."""
    import torch

    return (torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True),)


def with_all_scores(inputs: list[Tensor]) -> Many:
    """The same output, and the attention every key received."""
    q, k, v = inputs
    scores = weights(q, k)
    return scores @ v.repeat_interleave(q.shape[1] // v.shape[1], 1), scores.sum(2)


def _like(slow: Callable[[list[Tensor]], Many]) -> Callable[[Any, Any], None]:
    def verify(inputs: list[Tensor], output: Many) -> None:
        for got, wanted in zip(output, slow(inputs), strict=True):
            if not (got - wanted).abs().max() <= 1e-3 * max(1.0, float(wanted.abs().max())):
                raise WrongResult(
                    "two ways to attend disagree",
                    cause="one of them is wrong",
                    remedy="read kb/repro/engines/score_cost.py; nothing was stored",
                )

    return verify
