"""What Tangram's bookkeeping costs the host: writing page tables, and giving pages back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kb.errors import WrongResult
from kb.repro.harness.timing import Candidate
from kb.repro.sim.give_back import LinkedPool
from kb.repro.sim.ragged import retention

CONTEXT, PAGE = 8192, 16
HEADS = 8


def _scatter(lengths: np.ndarray, ids: np.ndarray, width: int) -> np.ndarray:
    """Page tables ``[rows, width]`` of rows of ``lengths`` pages, without a loop; unused slots hold -1."""
    table = np.full(len(lengths) * width, -1, dtype=np.int32)
    starts = np.cumsum(lengths) - lengths
    at = np.arange(len(ids)) + np.repeat(np.arange(len(lengths)) * width - starts, lengths)
    table[at] = ids
    return table.reshape(len(lengths), width)


def write_tables(inputs: Mapping[str, float]) -> dict[str, Candidate]:
    """A table per head against one per request, both written without a loop.

    Args:
        inputs: ``requests`` of 8,192 tokens and ``heads`` of all layers.
    """
    requests, heads = int(inputs["requests"]), int(inputs["heads"])
    layers = heads // HEADS

    def prepare(rng: np.random.Generator) -> dict[str, Any]:
        shares = np.concatenate(
            [retention(rng, "few-heads-keep", 0.15, (layers, HEADS)).ravel() for _ in range(requests)]
        )
        ragged = np.ceil(shares * CONTEXT / PAGE).astype(np.int64)
        whole = np.full(requests, CONTEXT // PAGE, dtype=np.int64)
        return {
            "ragged": (ragged, rng.permutation(int(ragged.sum())).astype(np.int32)),
            "one-table": (whole, rng.permutation(int(whole.sum())).astype(np.int32)),
        }

    def verify(made: dict[str, Any], output: tuple[str, np.ndarray]) -> None:
        name, table = output
        lengths, ids = made[name]
        if not np.array_equal(table[table >= 0], ids) or not np.array_equal((table >= 0).sum(1), lengths):
            raise WrongResult(
                "tangram: a page table is wrong",
                cause=f"the {name} table does not list its pages in order",
                remedy="read _scatter(); nothing was stored",
            )

    def writer(name: str) -> Any:
        def run(made: dict[str, Any]) -> tuple[str, np.ndarray]:
            lengths, ids = made[name]
            return name, _scatter(lengths, ids, int(lengths.max()))

        return run

    floor = requests * (CONTEXT // PAGE) * 4 / 1e12
    return {name: Candidate(prepare, writer(name), verify, floor) for name in ("ragged", "one-table")}


def return_pages(inputs: Mapping[str, float]) -> dict[str, Candidate]:
    """Scattered pages given back one by one.

    Args:
        inputs: ``pages``: how many go back, of twice as many.
    """
    pages = int(inputs["pages"])

    def prepare(rng: np.random.Generator) -> tuple[LinkedPool, list[int]]:
        return LinkedPool(2 * pages), rng.permutation(2 * pages)[:pages].tolist()

    def run(made: tuple[LinkedPool, list[int]]) -> int:
        pool, numbers = made
        return pool.give_back(numbers)

    def verify(made: tuple[LinkedPool, list[int]], output: int) -> None:
        if output != len(made[1]):
            raise WrongResult(
                "tangram: pages were lost",
                cause=f"{output} of {len(made[1])} pages are free",
                remedy="read kb/repro/sim/give_back.py; nothing was stored",
            )

    return {"one-by-one": Candidate(prepare, run, verify, pages * 1e-10)}
