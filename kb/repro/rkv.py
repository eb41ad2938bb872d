"""R-KV, arxiv:2505.24133: is 6.6 times the throughput speed, or room for a larger batch?

Backs     rkv/memory-90 · max-batch-8k · max-batch-16k · throughput-6.6 · throughput-batch1 · redundancy
Question  "90 %" is one minus budget over length. Batch limits follow from memory. The throughput factor is compared with
          what reading weights and cache allows at each side's own batch, and at batch 1.
Shows not Accuracy, nor measured speed: the released figures reach 38-64 % of the bandwidth model on both sides.
"""

from __future__ import annotations

import numpy as np

from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.sim.shapes import find_model

CLAIMS = (
    "rkv/memory-90",
    "rkv/max-batch-8k",
    "rkv/max-batch-16k",
    "rkv/throughput-6.6",
    "rkv/throughput-batch1",
    "rkv/redundancy",
)
LEVELS = ("derived",)
NEEDS = ()

MODEL = find_model("llama-3-8b")  # the shape of R1-Distill-Llama-8B
WEIGHTS, KV = MODEL.weight_bytes("bf16"), MODEL.kv_token_bytes("bf16")


def saved(budget: float, length: float) -> float:
    """Share of the cache that is gone once ``length`` tokens shrink to ``budget``."""
    return 1 - budget / length


def saved_by_counting(budget: float, length: float) -> float:
    """The same, token by token."""
    return sum(1 for token in range(int(length)) if token >= budget) / int(length)


def largest_batch(memory: float, usable: float, resident: float) -> float:
    """Requests that fit beside the weights.

    Args:
        memory: Bytes of the GPU.
        usable: Share of what the weights leave that the cache may take.
        resident: Tokens each request holds at most, buffer included.
    """
    return float(int((memory - WEIGHTS) * usable // (resident * KV)))


def throughput_gain(full_batch: float, full_tokens: float, small_batch: float, small_tokens: float) -> float:
    """Ratio of tokens per second if each step only reads weights and cache; tokens are means over the run."""
    full = full_batch / (WEIGHTS + full_batch * full_tokens * KV)
    small = small_batch / (WEIGHTS + small_batch * small_tokens * KV)
    return small / full


def covered_clusters(
    rng: np.random.Generator, clusters: float, copies: float, dim: float, budget: float, weight: float
) -> list[float]:
    """Share of planted clusters of near-equal keys that keep at least one key; one number per draw.

    The score is ``weight * attention - (1 - weight) * redundancy``: softmax attention over keys whose popularity is
    Zipf, and the mean cosine similarity to other keys with values below 0.5 set to zero, of which the latest similar
    key is spared, as the paper describes.

    Args:
        rng: Source of draws.
        clusters: Groups of near-duplicates.
        copies: Keys per group.
        dim: Head dim.
        budget: Keys kept.
        weight: The paper's lambda.
    """
    found = []
    for _ in range(8):
        centres = rng.standard_normal((int(clusters), int(dim)))
        group = rng.permutation(np.repeat(np.arange(int(clusters)), int(copies)))
        keys = centres[group] + 0.2 * rng.standard_normal((len(group), int(dim)))
        unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
        similar = unit @ unit.T
        np.fill_diagonal(similar, 0)
        similar[similar < 0.5] = 0  # noqa: PLR2004  the paper's threshold
        for row in similar:
            alike = np.flatnonzero(row)
            if alike.size:
                row[alike.max()] = 0
        redundancy = similar.mean(axis=0)
        attention = 1.0 / (1 + group)
        score = weight * attention / attention.sum() - (1 - weight) * redundancy / max(
            redundancy.sum(), 1e-12
        )
        kept = np.argsort(score)[-int(budget) :]
        found.append(len(set(group[kept])) / int(clusters))
    return found


QUANTITIES = (
    Quantity("rkv/memory-90", saved, {"budget": 1638, "length": 16_384}, by_hand=saved_by_counting),
    Quantity("rkv/max-batch-8k", largest_batch, {"memory": 85.9e9, "usable": 0.95, "resident": 1024 + 128}),
    Quantity("rkv/max-batch-16k", largest_batch, {"memory": 85.9e9, "usable": 0.95, "resident": 1638 + 128}),
    Quantity(
        "rkv/throughput-6.6",
        throughput_gain,
        {"full_batch": 30, "full_tokens": 8192, "small_batch": 271, "small_tokens": 1638 + 64},
    ),
    Quantity(
        "rkv/throughput-batch1",
        throughput_gain,
        {"full_batch": 1, "full_tokens": 4096, "small_batch": 1, "small_tokens": 1024 + 64},
        pattern="8k",
    ),
    Quantity(
        "rkv/throughput-batch1",
        throughput_gain,
        {"full_batch": 1, "full_tokens": 8192, "small_batch": 1, "small_tokens": 1024 + 64},
        pattern="16k",
    ),
    Quantity(
        "rkv/redundancy",
        covered_clusters,
        {"clusters": 32, "copies": 16, "dim": 64, "budget": 102, "weight": 0.1},
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()
figure = no_figure
