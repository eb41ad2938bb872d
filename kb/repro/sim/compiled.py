"""The compiled loop behind the same door as the plain one; numba is loaded on the first call.

The page lists of `kb.repro.sim.memory` become one table of rows; everything else has the same name there and here.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from kb.errors import CannotRun, WrongUse
from kb.repro.sim import policies
from kb.repro.sim.checks import check_fit
from kb.repro.sim.draws import acceptance_steps
from kb.repro.sim.work import GAP_BINS, NOBODY, Engine, Requests, Run, StepCost

FILES = ("kernel.py", "kernel_parts.py", "kernel_requests.py", "kernel_state.py")
TURNS = ("in turn", "first", "after")


def has_compiler() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@cache
def _kernel() -> ModuleType:
    """The compiled loop. Its cache lies in a folder named by a digest of its source.

    numba notices a change of the file that holds a function, but not of the files that function calls into.

    Raises:
        CannotRun: numba is not installed.
    """
    if not has_compiler():
        raise CannotRun(
            "the compiled simulator: cannot run",
            cause="numba is not installed",
            remedy="pip install 'kb[sim]'; the plain loop gives the same numbers, slower",
        )
    import numba

    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join((here / name).read_bytes() for name in FILES)).hexdigest()[:16]
    before = numba.config.CACHE_DIR
    if not before:
        beside = here / "__pycache__"
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kb"
        place = beside if os.access(beside if beside.exists() else here, os.W_OK) else home
        numba.config.CACHE_DIR = str(place / f"kernel-{digest}")
    try:
        from kb.repro.sim import kernel
    finally:
        numba.config.CACHE_DIR = before
    return kernel


def simulate(requests: Requests, engine: Engine, cost: StepCost) -> Run:
    """Run a workload as `kb.repro.sim.loop.simulate` does, bit for bit, some hundred times faster.

    Raises:
        CannotRun: numba is not installed.
        WrongUse: A setting the compiled loop does not have: a radix tree, planning ahead, a cost that is a function.
        BadInput: As the plain loop.
    """
    if engine.prefix_cache == "radix" or engine.lag or not isinstance(cost, StepCost):
        raise WrongUse(
            "the compiled loop has neither a radix tree nor planning ahead, nor does it call functions",
            cause=f"prefix_cache {engine.prefix_cache}, lag {engine.lag}, cost {type(cost).__name__}",
            remedy="use kb.repro.sim.loop.simulate",
        )
    check_fit(requests, engine, cost)
    kernel = _kernel()
    state = _state(requests, engine, cost)
    kernel.go(state)
    return _read(state, requests)


def _state(requests: Requests, engine: Engine, cost: StepCost) -> Any:
    """Lay everything out for the kernel."""
    from kb.repro.sim import kernel_state as at

    policy, count = policies.find(engine.policy), len(requests)
    shared = (
        engine.prefix_cache == "hash" and requests.page_from is not None and requests.page_ids is not None
    )
    rows = min(count, engine.pages if policy.preemptive else engine.max_sequences) if shared else 0
    longest = int((requests.prompt + requests.output).max(initial=1)) + engine.draft_length
    ids = np.zeros(0, np.int32) if not shared or requests.page_ids is None else requests.page_ids
    rates = (
        cost.per_pair, cost.per_kv_token, cost.per_decode, cost.per_prefill_sequence, cost.per_drafted,
        cost.per_swapped_token,
    )  # fmt: skip
    state = at.State(
        setting=_settings(engine, shared=shared, ready=requests.ready is not None),
        weight=np.array(policy.order.weights()),
        below=acceptance_steps(engine.acceptance_rate, engine.draft_length),
        dense=np.ascontiguousarray(cost.dense, np.float64),
        rate=np.array(rates, np.float64),
        job=np.zeros((count, at.COLUMNS), np.int64),
        time=np.zeros((count, at.TIMES)),
        list=np.zeros((at.LISTS, max(count, rows)), np.int64),
        key=np.zeros((2, count)),
        page=_free_pages(engine.pages if shared else 1),
        page_ids=np.ascontiguousarray(ids, np.int32),
        page_of=np.full(int(ids.max(initial=-1)) + 1, NOBODY, np.int32),
        table=np.zeros((rows, -(-longest // engine.page_tokens) if shared else 0), np.int32),
        n=np.zeros(at.SCALARS, np.int64),
        x=np.zeros(3),
        gaps=np.zeros(GAP_BINS, np.int64),
    )
    state.n[[at.FREE, at.NEWEST, at.ROWS]] = engine.pages, len(state.page) - 1, rows
    state.list[at.FREE_ROWS, :rows] = np.arange(rows)
    _fill(state, requests, shared=shared)
    return state


def _settings(engine: Engine, *, shared: bool, ready: bool) -> Any:
    policy = policies.find(engine.policy)
    return np.array(
        [
            engine.pages, engine.page_tokens, engine.token_budget, engine.max_sequences,
            engine.preemption == "swap", engine.admission == "whole", engine.draft_length, shared,
            policy.preemptive, TURNS.index(policy.decodes), ready, engine.seed,
        ],
        np.int64,
    )  # fmt: skip


def _free_pages(pages: int) -> Any:
    """Pages without names in one list, in order."""
    from kb.repro.sim import kernel_state as at

    out = np.zeros((pages, at.PAGE_COLUMNS), np.int32)
    out[:, at.NAME] = NOBODY
    out[:, at.OLDER] = np.arange(-1, pages - 1)
    out[:, at.NEWER] = np.arange(1, pages + 1)
    out[-1, at.NEWER] = NOBODY
    return out


def _fill(state: Any, requests: Requests, *, shared: bool) -> None:
    """The columns that come from the workload."""
    from kb.repro.sim import kernel_state as at

    job, time, after = state.job, state.time, requests.after
    job[:, at.PROMPT], job[:, at.OUTPUT] = requests.prompt, requests.output
    time[:, at.INTENDED] = requests.arrival
    time[:, [at.FIRST, at.FINISH, at.ARRIVAL]] = np.nan
    job[:, at.FOLLOWER] = NOBODY
    if after is not None:
        chained = np.flatnonzero(after >= 0)
        job[after[chained], at.FOLLOWER] = chained
    if requests.think is not None:
        time[:, at.THINK] = requests.think
    if requests.ready is not None:
        job[:, at.READY_TOKENS] = requests.ready
    if shared and requests.page_from is not None:
        job[:, at.PAGES_FROM], job[:, at.PAGES_END] = requests.page_from[:-1], requests.page_from[1:]
    free = np.arange(len(requests)) if after is None else np.flatnonzero(after < 0)
    state.list[at.SCHEDULED, : len(free)] = free
    state.n[at.SCHEDULED_ALL] = len(free)


def _read(state: Any, requests: Requests) -> Run:
    """A run from the state in which the kernel left everything."""
    from kb.repro.sim import kernel_state as at

    job, time, n, x = state.job, state.time, state.n, state.x
    return Run(
        arrival=time[:, at.ARRIVAL].copy(),
        first=time[:, at.FIRST].copy(),
        finish=time[:, at.FINISH].copy(),
        output=requests.output,
        hits=job[:, at.HITS].copy(),
        reused=job[:, at.REUSED].copy(),
        computed=job[:, at.TOTAL].copy(),
        lost=job[:, at.LOST].copy(),
        preemptions=job[:, at.PREEMPTIONS].copy(),
        worst_gap=time[:, at.WORST_GAP].copy(),
        steps=int(n[at.STEPS]),
        tokens=int(n[at.TOKENS]),
        drafted=int(n[at.DRAFTED]),
        accepted=int(n[at.ACCEPTED]),
        swapped_tokens=int(n[at.SWAPPED]),
        busy=float(x[at.BUSY]),
        end=float(x[at.NOW]),
        area=float(x[at.AREA]),
        pages_left=int(n[at.FREE]),
        peak_pages=int(n[at.PEAK_PAGES]),
        gaps=state.gaps,
    )
