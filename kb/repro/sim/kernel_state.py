"""State of the compiled loop: few arrays, since each one is seven words in every call, and the places in them."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import njit

inlined_part = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
"""For what is called in one or two places on the way of each step or request: handing over the state costs more."""
compiled_part = njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For what only the loop calls: a way in from Python for each would treble the time to compile."""

# places in State.setting
PAGES, SIZE, BUDGET, SEQUENCES, SWAP, WHOLE, DRAFTS, CACHE, PREEMPTIVE, DECODES, READY, SEED = range(12)
# places in State.n
FREE, RUNNING, WAITING, PARTS, LEFT, PLANS, PRESENT, PROMISED, NEXT, SCHEDULED_ALL, CHAINED, ROWS = range(12)
(W_TOKENS, W_PREFILL, W_SEQUENCES, W_PAIRS, W_DECODES, W_KV, W_DRAFTED, W_SWAPPED) = range(12, 20)
(STEPS, TOKENS, DRAFTED, ACCEPTED, SWAPPED, PEAK_PAGES, OLDEST, NEWEST, SCALARS) = range(20, 29)
# places in State.x
NOW, AREA, BUSY = range(3)
# places in State.rate
PER_PAIR, PER_KV, PER_DECODE, PER_SEQUENCE, PER_DRAFTED, PER_SWAPPED = range(6)
# columns of State.job
(PROMPT, COMPUTED, EMITTED, HELD, NAMED, TOTAL, PEAK, PLANNED, OUTPUT, FOLLOWER, READY_TOKENS, PAGES_FROM, PAGES_END,
 OUTSIDE, STARTED, IS_RUNNING, ROW, HITS, REUSED, LOST, PREEMPTIONS, COLUMNS) = range(22)  # fmt: skip
# columns of State.time
INTENDED, THINK, LAST, ARRIVAL, FIRST, FINISH, WORST_GAP, TIMES = range(8)
# columns of State.page
NAME, HOLDERS, OLDER, NEWER, PAGE_COLUMNS = range(5)
# rows of State.list
SCHEDULED, RUN, WAIT, CHAIN, PART, PART_DRAFTS, FREE_ROWS, LISTS = range(8)


class State(NamedTuple):
    """Everything there is."""

    setting: Any  # int64
    weight: Any  # of the policy's key, float64 [7]
    below: Any  # draws below which one more draft is accepted, float64 [k]
    dense: Any  # seconds by tokens, float64
    rate: Any  # the other seconds of a step, float64 [6]
    job: Any  # int64 [requests, COLUMNS]: one request, three cache lines
    time: Any  # float64 [requests, TIMES]
    list: Any  # request numbers, int64 [LISTS, requests]
    key: Any  # keys of the heaps WAIT and CHAIN, float64 [2, requests]
    page: Any  # int32 [pages, PAGE_COLUMNS]; one row without a prefix cache
    page_ids: Any  # names of the pages of all requests, int32
    page_of: Any  # page by name, -1 where none, int32
    table: Any  # pages of the requests that run, int32 [rows, most pages of a request]
    n: Any  # int64 scalars
    x: Any  # float64 scalars
    gaps: Any  # int64
