"""vLLM's TurboQuant presets: do the bytes per slot give the stated factors?

Backs     vllm-tq/slot-k8v4 · slot-4bit-nc · slot-k3v4-nc · slot-3bit-nc · fp8-default · capacity
Question  K takes 16 bytes per bit at head dim 128 plus a norm, V the same plus scale and zero point; slots are padded.
          The bytes are packed for real and counted. A whole model's capacity is held against its slots'.
Shows not Task scores or speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = (
    "vllm-tq/slot-k8v4",
    "vllm-tq/slot-4bit-nc",
    "vllm-tq/slot-k3v4-nc",
    "vllm-tq/slot-3bit-nc",
    "vllm-tq/fp8-default",
    "vllm-tq/capacity",
)
LEVELS = ("derived",)
NEEDS = ()


def slot_ratio(
    dim: float, k_bits: float, v_bits: float, k_extra: float, v_extra: float, padding: float
) -> float:
    """Bytes of K and V of one head and token at 16 bits over their bytes in a preset.

    Args:
        dim: Head dim.
        k_bits: Per number of K.
        v_bits: Per number of V.
        k_extra: Bytes beside K: its norm.
        v_extra: Bytes beside V: scale and zero point.
        padding: Bytes that align the slot.
    """
    slot = dim * k_bits / 8 + k_extra + dim * v_bits / 8 + v_extra + padding
    return 2 * dim * 2 / slot


def packed_ratio(
    dim: float, k_bits: float, v_bits: float, k_extra: float, v_extra: float, padding: float
) -> float:
    """The same by packing bits and counting the bytes."""
    k = np.packbits(np.zeros(int(dim * k_bits), dtype=bool)).nbytes + k_extra
    v = np.packbits(np.zeros(int(dim * v_bits), dtype=bool)).nbytes + v_extra
    return np.zeros(2 * int(dim), dtype=np.float16).nbytes / (k + v + padding)


def preset(
    k_bits: float, v_bits: float, k_extra: float, padding: float, dim: float = 128
) -> dict[str, float]:
    """Inputs of one preset."""
    return {
        "dim": dim, "k_bits": k_bits, "v_bits": v_bits, "k_extra": k_extra, "v_extra": 4, "padding": padding,
    }  # fmt: skip


NEAR, FAR = 0.9, 0.7
"""Share of its slots' factor that a model's capacity may lack: agrees, and agrees partly."""


def ends(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Hold the least and the greatest stated capacity against the factors of the presets they belong to.

    A model cannot gain more than its slots do; what it gains less went into whatever stays uncompressed.
    """
    found: dict[str, list[float]] = {}
    for one in sorted(taken, key=lambda one: one.samples[0]):
        found.setdefault(f"head dim {one.case['inputs']['dim']:g}", []).append(one.samples[0])
    shares = {
        name: ((claim.low or 0) / pair[0], (claim.high or 0) / pair[-1]) for name, pair in found.items()
    }
    every = [share for pair in shares.values() for share in pair]
    outcome = (
        Outcome.CONTRADICTED
        if max(every) > 1 or min(every) < FAR
        else Outcome.HOLDS
        if min(every) >= NEAR
        else Outcome.PARTLY
    )
    shown = "; ".join(f"{name} {low:.3f} and {high:.3f}" for name, (low, high) in shares.items())
    return (
        outcome,
        f"stated capacity over the slots' factor, least and greatest preset: {shown}; slots alone would give more",
        f"所述容量与槽位字节倍数之比（最小与最大档）：{shown}；仅按槽位字节应更大",
    )


QUANTITIES = (
    *(
        Quantity(
            "vllm-tq/capacity",
            slot_ratio,
            preset(k_bits, v_bits, k_extra, 0, dim),
            pattern=f"{name}-{dim}",
            by_hand=packed_ratio,
        )
        for dim in (128, 256)
        for name, k_bits, v_bits, k_extra in (("k8v4", 8, 4, 0), ("3bit-nc", 3, 3, 2))
    ),
    Quantity("vllm-tq/slot-k8v4", slot_ratio, preset(8, 4, 0, 0), by_hand=packed_ratio),
    Quantity("vllm-tq/slot-4bit-nc", slot_ratio, preset(4, 4, 2, 2), by_hand=packed_ratio),
    Quantity("vllm-tq/slot-k3v4-nc", slot_ratio, preset(3, 4, 2, 2), by_hand=packed_ratio),
    Quantity("vllm-tq/slot-3bit-nc", slot_ratio, preset(3, 3, 2, 2), by_hand=packed_ratio),
    Quantity(
        "vllm-tq/fp8-default",
        slot_ratio,
        {"dim": 128, "k_bits": 8, "v_bits": 8, "k_extra": 0, "v_extra": 0, "padding": 0},
        by_hand=packed_ratio,
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"ends": ends})
figure = no_figure
