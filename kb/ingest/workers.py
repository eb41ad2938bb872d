"""Parsing beside the run: in processes of their own where much is parsed, because threads of one Python process take turns.

Long documents of arXiv have a process for themselves, so that a page of two thousand papers does not stand in line behind
feeds. Other long documents may be made to be slow, and parsers of markup have ways to be slow on megabytes: each is read in a
process that ends when it has used its time or its memory.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import importlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TypeVar

from kb.ingest.feedxml import Unreadable

T = TypeVar("T")
MANY = 16
"""Feeds from which processes of their own pay for their start."""
PARSE_S = 30.0
"""Longest parsing of one document in another process."""
LONG_BYTES = 1 << 20
"""Documents of arXiv from this size have a process for themselves."""
FEED_BYTES, PAGE_BYTES = 100_000, 400_000
"""Documents of anybody else from this size are read apart: what a parser can be made to waste on less is two seconds."""
APART_CPU_S = 10
"""CPU seconds of such a process."""
APART_MEMORY = 2 << 30
"""Bytes of address space of such a process."""
_pools: list[concurrent.futures.ProcessPoolExecutor] = []
"""One for feeds and one for long documents, for the time of one run; none where all is parsed here."""


@contextlib.contextmanager
def side_by_side(feeds: int, unconditional: int) -> Iterator[None]:
    """Parse in other processes inside the block where there are many feeds and more than one core.

    Args:
        feeds: How many will be asked.
        unconditional: How many of them will surely answer with a document.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if feeds < MANY or cores < 2:  # noqa: PLR2004
        yield
        return
    # spawned, not forked: this process has threads, and a fork would keep its locks
    made = [_pool(min(cores - 1, 3), "feedparser"), _pool(1, "arxiv._feed")]
    if unconditional >= MANY:
        for pool in made:
            pool.submit(int)  # they start and import while the first answers are on their way
    _pools[:] = made
    try:
        yield
    finally:
        _pools.clear()
        for pool in made:
            pool.shutdown(wait=False, cancel_futures=True)  # they end while this process prints


def _pool(count: int, needed: str) -> concurrent.futures.ProcessPoolExecutor:
    return concurrent.futures.ProcessPoolExecutor(
        count, multiprocessing.get_context("spawn"), _prepare, (needed,)
    )


def _prepare(needed: str) -> None:
    gc.set_threshold(50_000)  # each look for cyclic garbage goes through a whole document
    with contextlib.suppress(ImportError):
        importlib.import_module(needed)


def parsed(parse: Callable[..., T | Unreadable], size: int, *args: object) -> T | Unreadable:
    """What a function of plain arguments makes of a document, in another process where there is one.

    Args:
        parse: The function.
        size: Bytes of the document.
        args: Its arguments.
    """
    if not _pools:
        return parse(*args)
    try:
        return _pools[size >= LONG_BYTES].submit(parse, *args).result(PARSE_S)
    except concurrent.futures.TimeoutError:
        return Unreadable("too-slow", f"parsing took more than {PARSE_S:.0f} s")
    except concurrent.futures.BrokenExecutor:
        return parse(*args)  # a process died, perhaps for memory; this one is still there


def apart(read: Callable[..., T | Unreadable], *args: object, cpu_s: int = APART_CPU_S) -> T | Unreadable:
    """What a function makes of a long document of anybody, in a process that can be ended.

    Args:
        read: The function, of plain arguments; its result is plain too.
        args: Its arguments.
        cpu_s: CPU seconds it may take.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_read_apart, args=(there, read, args, cpu_s), daemon=True)
    process.start()
    there.close()
    try:
        if not here.poll(PARSE_S):
            return Unreadable("too-slow", f"reading it took more than {PARSE_S:.0f} s")
        found: T | Unreadable = here.recv()
    except EOFError:  # ended by its limits
        return Unreadable("too-slow", f"reading it took more than {cpu_s} s of CPU, or too much memory")
    else:
        return found
    finally:
        process.kill()
        process.join()
        here.close()


def _read_apart(there: Connection, read: Callable[..., object], args: tuple[object, ...], cpu_s: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (APART_MEMORY, APART_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(MemoryError):
        there.send(read(*args))
    there.close()
