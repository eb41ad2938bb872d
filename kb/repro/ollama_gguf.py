"""Ollama 0.30 and GGUF: how large is a block, and what can faster kernels gain?

Backs     ollama/nvidia-speedup
Question  Decode reads every weight once. If the old kernels reached a share x of the bandwidth, new ones gain at most
          1/x - 1; the stated 20 % therefore says that the old ones reached no more than 83 %.
Shows not The 20 %: no model, GPU or baseline is given.
"""

from __future__ import annotations

import numpy as np

from kb.repro.harness.exact import Quantity, bounded, by_claim, exact, no_figure

CLAIMS = ("ollama/nvidia-speedup",)
LEVELS = ("derived",)
NEEDS = ()

BLOCKS: dict[str, tuple[int, tuple[tuple[str, int], ...]]] = {
    "Q4_0": (32, (("<f2", 1), ("u1", 16))),
    "Q8_0": (32, (("<f2", 1), ("i1", 32))),
    "Q4_K": (256, (("<f2", 2), ("u1", 12), ("u1", 128))),
    "Q6_K": (256, (("u1", 128), ("u1", 64), ("i1", 16), ("<f2", 1))),
}
"""Weights per block, then its fields as (NumPy type, count). Source: the GGUF specification."""


def block_bytes(name: str) -> int:
    """Bytes of one block, counted from its fields."""
    return sum(np.dtype(kind).itemsize * count for kind, count in BLOCKS[name][1])


def bits_per_weight(name: str) -> float:
    """Bits a weight takes, scales included."""
    return 8 * block_bytes(name) / BLOCKS[name][0]


def most_gain(used: float) -> float:
    """Largest gain of a kernel that used a share of the memory bandwidth before."""
    return 1 / used - 1


QUANTITIES = (Quantity("ollama/nvidia-speedup", most_gain, {"used": 0.5}),)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "bandwidth": bounded(
            0.0,
            "what kernels that used half of the bandwidth could gain",
            "此前只用一半带宽的 kernel 所能获得的提升",
        )
    }
)
figure = no_figure
