"""The same work over many pieces on all cores: results in order, however many processes share the work."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from typing import Any, TypeVar

Kit = TypeVar("Kit")
Piece = TypeVar("Piece")
Made = TypeVar("Made")

CHUNK = 400
"""Pieces handed to a process at once."""
WORTHWHILE = 4_000
"""Fewer pieces are done before a second process has started."""
AHEAD = 3
"""Chunks per process that are prepared before the oldest is waited for; bounds what is held in memory."""
_mine: list[Any] = []
"""What this process works with, where it is a worker."""


def spread(
    work: Callable[[Kit, Piece], Made], pieces: Iterable[Piece], make: Callable[[], Kit], num: int
) -> Iterator[Made]:
    """Do a piece of work over and over, in order.

    Args:
        work: A function of a module, so that other processes find it.
        pieces: What it is done on; read only as far ahead as needed.
        make: Makes what the work needs, once in each process.
        num: About how many pieces there are, to decide whether other processes are worth starting.
    """
    # forked, because a spawned process would run the caller's main module again
    workers = min(_num_cores(), num // WORTHWHILE + 1) if "fork" in get_all_start_methods() else 1
    if workers < 2:  # noqa: PLR2004  one process is this one
        kit = make()
        yield from (work(kit, piece) for piece in pieces)
        return
    source = iter(pieces)
    waiting: deque[Future[list[Made]]] = deque()
    with ProcessPoolExecutor(workers, get_context("fork"), _prepare, (make,)) as pool:
        while chunk := list(itertools.islice(source, CHUNK)):
            waiting.append(pool.submit(_work, work, chunk))
            if len(waiting) >= AHEAD * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare(make: Callable[[], Any]) -> None:
    _mine[:] = [make()]


def _work(work: Callable[[Any, Piece], Made], chunk: Sequence[Piece]) -> list[Made]:
    return [work(_mine[0], piece) for piece in chunk]
