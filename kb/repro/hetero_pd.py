"""Heterogeneous prefill and decode, arxiv:2606.29708: do its tables agree with themselves?

Backs     hetero-pd/prod-split · prod-prefill-rate · prod-decode-rate · prod-throughput · r-star-fp8-4p4d ·
          axes-abstract · transfer-moves-bytes
Question  Rates times lengths give the token rates. Arrivals above completions must queue. Halving bytes can double a rate
          that transfer limits. A tensor read in another layout or dtype is wrong without any error.
Shows not The deployment: it needs its accelerators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.model import Claim, Measurement
from kb.repro.harness.exact import Quantity, by_claim, exact, explained, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = (
    "hetero-pd/prod-split",
    "hetero-pd/prod-prefill-rate",
    "hetero-pd/prod-decode-rate",
    "hetero-pd/r-star-fp8-4p4d",
    "hetero-pd/axes-abstract",
    "hetero-pd/transfer-moves-bytes",
)
LEVELS = ("derived",)
NEEDS = ()
HARMFUL = 0.1
"""Relative error of an output that nobody would call rounding."""


def ratio(prefill: float, decode: float) -> float:
    """Prefill over decode accelerators."""
    return prefill / decode


def token_rate(requests: float, tokens: float) -> float:
    """Tokens per second at a request rate."""
    return requests * tokens


def transfer_bound(rate: float, byte_ratio: float) -> float:
    """Highest request rate after bytes shrink by ``byte_ratio``, if transfer or capacity was what limited it."""
    return rate * byte_ratio


def count(axes: float) -> float:
    """Axes counted in the body's table."""
    return axes


def silent_error(
    rng: np.random.Generator, tokens: float, heads: float, dim: float, swap_layout: float
) -> list[float]:
    """Relative error of attention output when a cache is read in another layout or byte order, with no error raised.

    Args:
        rng: Source of draws.
        tokens: Tokens T of the cache ``[T, H, d]``.
        heads: KV heads H.
        dim: Head dim d.
        swap_layout: 1 reads ``[H, T, d]``, 0 reads the other byte order of 16-bit floats.
    """
    found = []
    for _ in range(4):
        shape = (int(tokens), int(heads), int(dim))
        k, v = rng.standard_normal((2, *shape)).astype(np.float16)
        q = rng.standard_normal((int(heads), int(dim)))
        if swap_layout:
            read = [
                np.frombuffer(x.tobytes(), np.float16).reshape(shape[1], shape[0], shape[2]).swapaxes(0, 1)
                for x in (k, v)
            ]
        else:
            read = [
                np.nan_to_num(np.frombuffer(x.tobytes(), ">f2").astype(np.float64).reshape(shape))
                for x in (k, v)
            ]
        right, wrong = _attend(q, k, v), _attend(q, *read)
        found.append(float(np.linalg.norm(wrong - right) / np.linalg.norm(right)))
    return found


def _attend(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    logits = np.einsum("hd,thd->ht", q, k.astype(np.float64)) / np.sqrt(q.shape[1])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    out: np.ndarray = np.einsum(
        "ht,thd->hd", weights / weights.sum(axis=1, keepdims=True), v.astype(np.float64)
    )
    return out


def check_silent(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """A mismatch is silent and harmful if every mutation is read without an error and changes the output."""
    del claim
    least = min(sample for one in taken for sample in one.samples)
    return (
        least > HARMFUL,
        f"a cache read in another layout or byte order raises nothing and is off by at least {least:.0%}",
        f"以其他布局或字节序读取缓存不会报错，输出至少偏差 {least:.0%}",
    )


QUANTITIES = (
    Quantity("hetero-pd/prod-split", ratio, {"prefill": 32, "decode": 16}),
    Quantity("hetero-pd/prod-prefill-rate", token_rate, {"requests": 1.62, "tokens": 65_536}),
    Quantity("hetero-pd/prod-decode-rate", token_rate, {"requests": 1.62, "tokens": 512}),
    Quantity("hetero-pd/r-star-fp8-4p4d", transfer_bound, {"rate": 0.1, "byte_ratio": 2}),
    Quantity("hetero-pd/axes-abstract", count, {"axes": 5}),
    *(
        Quantity(
            "hetero-pd/transfer-moves-bytes",
            silent_error,
            {"tokens": 64, "heads": 8, "dim": 32, "swap_layout": swap},
            pattern=pattern,
            insensitive="the claim states no number",
        )
        for swap, pattern in ((1, "layout"), (0, "byte-order"))
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "bytes-halved": explained(
            "half the bytes at a transfer-bound rate of 0.1 req/s", "传输受限的 0.1 req/s 在字节减半后"
        ),
        "silent": check_silent,
    }
)
figure = no_figure
