"""A histogram of times in bins of equal ratio, found without a logarithm: exact in binary, so equal in both loops."""

from __future__ import annotations

import math

import numpy as np

from kb.repro.sim.work import GAP_BINS, Ints

PER_OCTAVE = 64
LOWEST = -40
"""2**-40 s and less fall into bin 0."""


def gap_bin(seconds: float) -> int:
    """Bin of a time."""
    mantissa, exponent = math.frexp(seconds)
    index = (exponent - 1 - LOWEST) * PER_OCTAVE + int((mantissa - 0.5) * (2 * PER_OCTAVE))
    return min(max(index, 0), GAP_BINS - 1)


def upper_edge(index: int) -> float:
    """Time below which all of a bin lies, s."""
    octave, part = divmod(index, PER_OCTAVE)
    return math.ldexp(1 + (part + 1) / PER_OCTAVE, octave + LOWEST)


def quantile(bins: Ints, share: float) -> float:
    """Upper edge of the bin that holds the quantile, s: at most 1.6 % above it; NaN of nothing, 0 in bin 0."""
    total = int(bins.sum())
    if not total:
        return math.nan
    index = int(np.searchsorted(np.cumsum(bins), share * total))
    return upper_edge(index) if index else 0.0
