"""Many simulations on all cores: each point a process's task, results in the order of the points.

A point carries its own seed, so where and when it runs changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

Point = TypeVar("Point")
Result = TypeVar("Result")


def sweep(simulate: Callable[[Point], Result], points: Sequence[Point], workers: int) -> list[Result]:
    """Results of all points.

    Args:
        simulate: A function of a module, so that another process can find it; deterministic.
        points: What to simulate.
        workers: Processes; 1 runs here.
    """
    if workers <= 1 or len(points) <= 1:
        return [simulate(point) for point in points]
    with ProcessPoolExecutor(min(workers, len(points)), get_context("spawn")) as pool:
        return list(pool.map(simulate, points))
