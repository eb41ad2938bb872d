"""Prefill on some engines, decoding on others, a link between them.

A request computes its prompt and its first token on a prefill engine; its KV entries cross the link; the rest of its
tokens come from a decode engine, where the entries take pages but no computing. Requests are dealt to engines in turn.
The link moves one request at a time, in the order in which prefills end. A prefill engine gives a request's pages back
when its prefill ends, so nothing presses back from a full decode engine; sessions and closed loops, which would carry
that feedback, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kb.errors import WrongUse
from kb.repro.sim.work import Engine, Floats, Requests, Run, StepCost

Simulate = Callable[[Requests, Engine, StepCost], Run]


@dataclass(frozen=True)
class Link:
    """What KV entries cross."""

    bytes_per_second: float
    latency: float = 0.0
    """Per request, s."""


@dataclass(frozen=True)
class Group:
    """Equal engines of one role."""

    engine: Engine
    cost: StepCost
    count: int = 1


@dataclass(frozen=True)
class Handover:
    """A run over two groups; arrays have one row per request, s."""

    arrival: Floats
    first: Floats
    moved: Floats
    """When the KV entries were all at the decode engine; the first token's time for requests of one token."""
    finish: Floats
    prefill: tuple[Run, ...]
    decode: tuple[Run, ...]
    link_busy: float
    """Seconds the link carried something."""


def serve(
    requests: Requests, prefill: Group, decode: Group, link: Link, kv_token_bytes: int, simulate: Simulate
) -> Handover:
    """Serve an open-loop workload on a prefill group, a link and a decode group.

    Args:
        requests: Open loop: nobody waits for another's end.
        prefill: Engines of the first stage.
        decode: Engines of the second stage.
        link: Between them, shared by all.
        kv_token_bytes: Bytes of one token's KV entries.
        simulate: `kb.repro.sim.compiled.simulate` or `kb.repro.sim.loop.simulate`.

    Raises:
        WrongUse: Requests wait for each other.
    """
    if requests.after is not None and (requests.after >= 0).any():
        raise WrongUse(
            "prefill and decoding apart: cannot run sessions or closed loops",
            cause="the second stage would have to press back on arrivals at the first",
            remedy="give an open-loop workload",
        )
    names = replace(requests, after=None, think=None, output=np.ones_like(requests.output))
    order = np.arange(len(requests))
    ahead = [
        (rows, simulate(_rows(names, rows), prefill.engine, prefill.cost)) for rows in _deal(order, prefill)
    ]
    first = np.zeros(len(requests))
    for rows, run in ahead:
        first[rows] = run.first
    moved, busy = _cross(requests, first, link, kv_token_bytes)
    finish = moved.copy()
    order = np.argsort(moved, kind="stable")
    behind = []
    for rows in _deal(order[requests.output[order] > 1], decode):
        late = Requests(
            arrival=moved[rows],
            prompt=requests.prompt[rows] + 1,
            output=requests.output[rows] - 1,
            ready=requests.prompt[rows],
        )
        run = simulate(late, decode.engine, decode.cost)
        finish[rows] = run.finish
        behind.append(run)
    return Handover(
        requests.arrival, first, moved, finish, tuple(run for _, run in ahead), tuple(behind), busy
    )


def _deal(order: np.ndarray, group: Group) -> Sequence[np.ndarray]:
    return [rows for start in range(group.count) if len(rows := order[start :: group.count])]


def _rows(requests: Requests, rows: np.ndarray) -> Requests:
    """Some of the requests, with their names of pages."""
    page_from, page_ids = requests.page_from, requests.page_ids
    if page_from is not None and page_ids is not None:
        sizes = (page_from[1:] - page_from[:-1])[rows]
        inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        page_ids = page_ids[np.repeat(page_from[:-1][rows], sizes) + inside]
        page_from = np.concatenate([[0], np.cumsum(sizes)])
    return Requests(
        requests.arrival[rows],
        requests.prompt[rows],
        requests.output[rows],
        page_from=page_from,
        page_ids=page_ids,
    )


def _cross(requests: Requests, first: Floats, link: Link, kv_token_bytes: int) -> tuple[Floats, float]:
    """When each request's entries have crossed, first come first served, and how long the link was busy."""
    moved, free, busy = first.copy(), 0.0, 0.0
    for row in np.argsort(first, kind="stable").tolist():
        if requests.output[row] == 1:
            continue
        seconds = link.latency + float(requests.prompt[row]) * kv_token_bytes / link.bytes_per_second
        free = max(free, float(first[row])) + seconds
        moved[row] = free
        busy += seconds
    return moved, busy
