"""TriAttention, arxiv:2604.04921: which of its factors are settings, and does its score predict future attention?

Backs     triattention/kv-reduction · throughput · math500-speed · aime24-speed · trtllm-equal-batch · reconstruction
Question  10.7 is context over budget. The speed factors are ratios of printed rates. The score is tried on queries with
          planted concentration: its correlation with the true mean of future logits.
Shows not Accuracy, or speed on a GPU: both need the model.
"""

from __future__ import annotations

import numpy as np

from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure, ratio

CLAIMS = (
    "triattention/kv-reduction",
    "triattention/throughput",
    "triattention/math500-speed",
    "triattention/aime24-speed",
    "triattention/trtllm-equal-batch",
    "triattention/reconstruction",
)
LEVELS = ("derived",)
NEEDS = ()


def pages_ratio(new: float, old: float) -> float:
    """The same ratio counted in pages of one token."""
    return sum(1 for _ in range(int(new))) / sum(1 for _ in range(int(old)))


def score_correlation(
    rng: np.random.Generator,
    dim: float,
    dominant: float,
    rest: float,
    keys: float,
    queries: float,
    heads: float,
) -> list[float]:
    """Pearson correlation between the trigonometric score and the mean future logit, one per head.

    Queries of band f are ``q_f = mean_f + noise`` with concentration ``R_f = |E q| / E|q|``: ``dominant`` in the band
    of most energy, ``rest`` elsewhere. Keys have random phases and sizes. Offsets are 1, 2, 4 … 65,536 as in the
    released code, RoPE base 10,000.

    Args:
        rng: Source of draws.
        dim: Head dim d; there are d/2 bands.
        dominant: R of the band with most energy, 0–1.
        rest: R of the other bands, 0–1.
        keys: Keys per head.
        queries: Queries per offset that the true mean is taken over.
        heads: Independent heads.
    """
    bands = int(dim) // 2
    omega = 10_000.0 ** (-np.arange(bands) / bands)
    offsets = 2.0 ** np.arange(17)
    found = []
    for _ in range(int(heads)):
        energy = rng.lognormal(0, 1, bands)
        concentration = np.full(bands, rest)
        concentration[int(np.argmax(energy))] = dominant
        centre = energy * np.exp(2j * np.pi * rng.random(bands))
        noise = np.abs(centre) * np.sqrt(np.maximum(1 / concentration**2 - 1, 0))  # about the stated R
        key = rng.lognormal(0, 0.5, (int(keys), bands)) * np.exp(2j * np.pi * rng.random((int(keys), bands)))
        distance = rng.integers(0, 4096, int(keys))
        true, score = np.zeros(int(keys)), np.zeros(int(keys))
        for offset in offsets:
            turn = np.exp(1j * np.outer(distance + offset, omega))
            draws = rng.standard_normal((int(queries), bands, 2)) @ np.array([1, 1j]) / np.sqrt(2)
            mean_query = (centre + noise * draws).mean(axis=0)
            true += (mean_query * np.conj(key) * turn).sum(axis=1).real
            score += (centre * np.conj(key) * turn).sum(axis=1).real
        spread = np.mean(np.hypot(np.abs(centre), noise)) - np.mean(np.abs(centre))
        score += spread * np.abs(key).sum(axis=1)
        found.append(float(np.corrcoef(true, score)[0, 1]))
    return found


QUANTITIES = (
    Quantity("triattention/kv-reduction", ratio, {"new": 32_768, "old": 3_072}, by_hand=pages_ratio),
    Quantity("triattention/throughput", ratio, {"new": 563.5, "old": 222.8}),
    Quantity("triattention/math500-speed", ratio, {"new": 1405.2, "old": 222.8}),
    Quantity("triattention/aime24-speed", ratio, {"new": 413.9, "old": 222.8}),
    Quantity("triattention/trtllm-equal-batch", ratio, {"new": 4930.6, "old": 3057.5}),
    Quantity(
        "triattention/reconstruction",
        score_correlation,
        {"rest": 0.6, "dominant": 0.99, "dim": 128, "keys": 128, "queries": 1, "heads": 16},
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim()

figure = no_figure
