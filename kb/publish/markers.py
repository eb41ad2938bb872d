"""Blocks of a page; the code is in `kb.markers`, because sync needs it too and stages never import each other."""

from __future__ import annotations

from kb.markers import (
    BLOCK_ID,
    SUM_LENGTH,
    VERSION,
    Block,
    MarkerProblem,
    begin_marker,
    end_marker,
    find_blocks,
    split_lines,
    sum_of,
    to_lf,
)

__all__ = [
    "BLOCK_ID",
    "SUM_LENGTH",
    "VERSION",
    "Block",
    "MarkerProblem",
    "begin_marker",
    "end_marker",
    "find_blocks",
    "split_lines",
    "sum_of",
    "to_lf",
]
