"""When two texts say the same: signatures of word runs that can be compared, and looked up, without reading all others.

MinHash after Broder (1997), with banding: two texts that share a third of their word runs usually meet in a band.
Signatures depend on the text alone, so every machine finds the same pairs.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from operator import eq
from struct import Struct
from typing import TYPE_CHECKING

from kb.triage.reading import lower, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RUN = 4
"""Words, or Chinese characters, in one run."""
BANDS = 16
ROWS = 2
"""Numbers per band: a similarity of 0.25 meets with probability 0.64, one of 0.4 with 0.94."""
SLOTS = BANDS * ROWS
_SLOTS = Struct(f"<{SLOTS}I")
MIN_RUNS = 8
"""Shorter texts are compared by their titles only."""
MIN_TITLE = 12
"""Characters from which a title tells works apart; a Chinese character counts as two."""
_TOKEN = re.compile(r"[a-z0-9]+(?:[.'-][a-z0-9]+)*|[\u3400-\u9fff]")


@cache
def _factors() -> NDArray[np.uint64]:
    import numpy as np

    # fixed odd multipliers and offsets of a multiply-shift family: a digest, so that no random generator is involved
    words = [
        zlib.crc32(f"kb-{slot}".encode()) << 32 | zlib.crc32(f"{slot}-kb".encode())
        for slot in range(2 * SLOTS)
    ]
    return np.array(words, dtype=np.uint64).reshape(2, SLOTS, 1) | np.uint64(1)


def signature(text: str) -> bytes:
    """Signature of a text, `SLOTS` little-endian 32-bit numbers; empty where it is too short to be compared."""
    import numpy as np

    tokens = [zlib.crc32(token.encode()) for token in _TOKEN.findall(lower(plain(text)))]
    if len(tokens) < MIN_RUNS + RUN - 1:
        return b""
    words = np.array(tokens, dtype=np.uint64)
    runs = words[: len(tokens) - RUN + 1].copy()
    for place in range(1, RUN):
        runs = runs * np.uint64(6364136223846793005) + words[place : len(tokens) - RUN + 1 + place]
    factors, offsets = _factors()
    mixed = (factors * (runs ^ (runs >> np.uint64(29))) + offsets) >> np.uint64(32)
    least: bytes = mixed.min(axis=1).astype("<u4").tobytes()
    return least


def bands(signed: bytes) -> list[int]:
    """Keys under which texts that are alike meet, one per band; none for an empty signature."""
    width = 4 * ROWS
    return [
        band << 32 | zlib.crc32(signed[band * width : (band + 1) * width])
        for band in range(BANDS if signed else 0)
    ]


def similarity(one: bytes, other: bytes) -> float:
    """Estimated share of common runs, 0–1."""
    if not one or not other:
        return 0.0
    same: int = sum(map(eq, _SLOTS.unpack(one), _SLOTS.unpack(other)))
    return same / SLOTS


def title_key(title: str) -> str:
    """Title without case, white space and punctuation; empty where it is too short to tell works apart."""
    tokens = _TOKEN.findall(lower(plain(title)))
    size = sum(2 if "\u3400" <= token <= "\u9fff" else len(token) for token in tokens)
    return "".join(tokens) if size >= MIN_TITLE else ""
