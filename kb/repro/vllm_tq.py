"""vLLM's TurboQuant presets: do the bytes per slot give the stated factors?

Backs     vllm-tq/slot-k8v4 · slot-4bit-nc · slot-k3v4-nc · slot-3bit-nc · fp8-default
Question  K takes 16 bytes per bit at head dim 128 plus a norm, V the same plus scale and zero point; slots are padded.
          The bytes are packed for real and counted.
Shows not Task scores or speed.
"""

from __future__ import annotations

import numpy as np

from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure

CLAIMS = (
    "vllm-tq/slot-k8v4",
    "vllm-tq/slot-4bit-nc",
    "vllm-tq/slot-k3v4-nc",
    "vllm-tq/slot-3bit-nc",
    "vllm-tq/fp8-default",
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


def preset(k_bits: float, v_bits: float, k_extra: float, padding: float) -> dict[str, float]:
    """Inputs of one preset at head dim 128."""
    return {
        "dim": 128, "k_bits": k_bits, "v_bits": v_bits, "k_extra": k_extra, "v_extra": 4, "padding": padding,
    }  # fmt: skip


QUANTITIES = (
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
judge = by_claim()
figure = no_figure
