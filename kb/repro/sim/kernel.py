"""The loop of `kb.repro.sim.loop`, compiled: the same rules on arrays, bit for bit the same run.

Every parameter is an argument: numba freezes globals into its cache. The constants of `kernel_state` are places in
arrays, not settings; a digest of the three files names the folder of the cache (`kb.repro.sim.compiled`). Names and
order of statements follow the plain loop; read that one first. Floats are added in its order.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from kb.repro.sim.kernel_parts import gap_bin, pop, push, uniform
from kb.repro.sim.kernel_requests import arrive, is_decode, key_of, next_arrival, preempt, start, stop, take
from kb.repro.sim.kernel_state import (
    ACCEPTED,
    AREA,
    BUDGET,
    BUSY,
    CHAIN,
    CHAINED,
    COMPUTED,
    DECODES,
    DRAFTED,
    EMITTED,
    FINISH,
    FIRST,
    FOLLOWER,
    FREE,
    IS_RUNNING,
    LAST,
    LEFT,
    LOST,
    NOW,
    OUTPUT,
    PAGES,
    PART,
    PART_DRAFTS,
    PARTS,
    PEAK_PAGES,
    PER_DECODE,
    PER_DRAFTED,
    PER_KV,
    PER_PAIR,
    PER_SEQUENCE,
    PER_SWAPPED,
    PLANNED,
    PLANS,
    PREEMPTIVE,
    PRESENT,
    RUN,
    RUNNING,
    SEED,
    SEQUENCES,
    STEPS,
    SWAPPED,
    THINK,
    TOKENS,
    W_DECODES,
    W_DRAFTED,
    W_KV,
    W_PAIRS,
    W_PREFILL,
    W_SEQUENCES,
    W_SWAPPED,
    W_TOKENS,
    WAIT,
    WAITING,
    WORST_GAP,
)


@njit(cache=True)
def go_on(s, kind):
    """Plan running requests: 0 all, 1 those that decode, 2 the others; False if one was preempted."""
    nobody, at = True, 0
    while at < s.n[RUNNING] and s.n[LEFT]:
        job = s.list[RUN, at]
        if s.job[job, PLANNED] == s.n[PLANS] or (kind and is_decode(s, job) != (kind == 1)):
            at += 1
            continue
        while not take(s, job):
            nobody = False
            last = s.n[RUNNING] - 1
            while s.job[s.list[RUN, last], PLANNED] == s.n[PLANS]:
                last -= 1
            victim = s.list[RUN, last]
            preempt(s, victim)
            if victim == job:
                at -= 1
                break
        at += 1
    return nobody


@njit(cache=True)
def admit(s):
    while s.n[WAITING] and s.n[LEFT] and s.n[RUNNING] < s.setting[SEQUENCES]:
        job = s.list[WAIT, 0]
        moved = start(s, job)
        if moved < 0:
            return
        pop(s.key[0], s.list[WAIT], s.n[WAITING])
        s.n[WAITING] -= 1
        s.n[W_SWAPPED] += moved
        if not take(s, job):
            preempt(s, job)
            return


@njit(cache=True)
def behind(s, job, order, count):
    """The last in order that runs, is not in this step and comes after the request; -1 if none."""
    for at in range(count - 1, -1, -1):
        each = order[at]
        if each == job:
            return -1
        if s.job[each, IS_RUNNING] and s.job[each, PLANNED] < s.n[PLANS]:
            return each
    return -1


@njit(cache=True)
def start_by_key(s, job, order, count):
    while True:
        moved = start(s, job)
        if moved >= 0:
            s.n[W_SWAPPED] += moved
            return True
        victim = behind(s, job, order, count)
        if victim < 0:
            return False
        preempt(s, victim)


@njit(cache=True)
def plan_by_key(s):
    """Serve all requests in order of their key; who needs pages takes them from the last."""
    count = s.n[RUNNING] + s.n[WAITING]
    order = np.empty(count, np.int64)
    order[: s.n[RUNNING]] = s.list[RUN, : s.n[RUNNING]]
    order[s.n[RUNNING] :] = s.list[WAIT, : s.n[WAITING]]
    order.sort()
    keys = np.empty(count, np.float64)
    for at in range(count):
        keys[at] = key_of(s, order[at])
    order = order[np.argsort(keys, kind="mergesort")]
    refused = False
    for at in range(count):
        job = order[at]
        if not s.n[LEFT] or s.n[PARTS] == s.setting[SEQUENCES]:
            break
        if not s.job[job, IS_RUNNING] and (refused or not start_by_key(s, job, order, count)):
            refused = True
            continue
        while s.job[job, IS_RUNNING] and not take(s, job):
            victim = behind(s, job, order, count)
            preempt(s, victim if victim >= 0 else job)
    keep_waiting(s, order)


@njit(cache=True)
def keep_waiting(s, order):
    """Queue again, by their present key, all that do not run."""
    s.n[WAITING] = 0
    for job in order:
        if not s.job[job, IS_RUNNING]:
            push(s.key[0], s.list[WAIT], s.n[WAITING], key_of(s, job), job)
            s.n[WAITING] += 1


@njit(cache=True)
def plan(s):
    """Decide the next step."""
    s.n[PARTS] = 0
    s.n[LEFT] = s.setting[BUDGET]
    s.n[W_TOKENS : W_SWAPPED + 1] = 0
    s.n[PLANS] += 1
    if s.weight[6] != 0.0 and not s.setting[PREEMPTIVE]:
        keep_waiting(s, s.list[WAIT, : s.n[WAITING]].copy())
    if s.setting[PREEMPTIVE]:
        plan_by_key(s)
    elif s.setting[DECODES] == 2:
        if go_on(s, 2):
            admit(s)
        if not s.n[W_PREFILL]:
            go_on(s, 0)
    elif s.setting[DECODES] == 1:
        calm = go_on(s, 1)
        if go_on(s, 2) and calm:
            admit(s)
    elif go_on(s, 0):
        admit(s)


@njit(cache=True)
def step_seconds(s):
    n, rate = s.n, s.rate
    total = s.dense[n[W_TOKENS]]
    total += rate[PER_PAIR] * n[W_PAIRS]
    total += rate[PER_KV] * n[W_KV]
    total += rate[PER_DECODE] * n[W_DECODES]
    total += rate[PER_SEQUENCE] * n[W_SEQUENCES]
    total += rate[PER_DRAFTED] * n[W_DRAFTED]
    total += rate[PER_SWAPPED] * n[W_SWAPPED]
    return total


@njit(cache=True)
def verify(s, job, drafts):
    """Accept drafts; the tokens emitted."""
    draw = uniform(s.setting[SEED], job, s.job[job, EMITTED])
    accepted = 0
    while accepted < drafts and draw < s.below[accepted]:
        accepted += 1
    s.n[ACCEPTED] += accepted
    count = min(1 + accepted, s.job[job, OUTPUT] - s.job[job, EMITTED])
    refused = 1 + drafts - count
    s.job[job, COMPUTED] -= refused
    s.job[job, LOST] += refused
    return count


@njit(cache=True)
def end(s, job):
    s.time[job, FINISH] = s.x[NOW]
    s.n[PRESENT] -= 1
    stop(s, job)
    follower = s.job[job, FOLLOWER]
    if follower >= 0:
        push(s.key[1], s.list[CHAIN], s.n[CHAINED], s.x[NOW] + s.time[follower, THINK], follower)
        s.n[CHAINED] += 1


@njit(cache=True)
def finish_step(s):
    """Let the planned step run and hand out its tokens."""
    n = s.n
    seconds = step_seconds(s)
    s.x[AREA] += n[PRESENT] * seconds
    n[STEPS] += 1
    n[TOKENS] += n[W_TOKENS]
    n[DRAFTED] += n[W_DRAFTED]
    n[SWAPPED] += n[W_SWAPPED]
    s.x[BUSY] += seconds
    s.x[NOW] += seconds
    now = s.x[NOW]
    n[PEAK_PAGES] = max(n[PEAK_PAGES], s.setting[PAGES] - n[FREE])
    seen, seen_bin = -1.0, 0  # most of a step's gaps are equal
    for at in range(n[PARTS]):
        drafts = s.list[PART_DRAFTS, at]
        if drafts < 0:
            continue
        job = s.list[PART, at]
        count = verify(s, job, drafts) if drafts else 1
        s.gaps[0] += count - 1
        if s.job[job, EMITTED]:
            gap = now - s.time[job, LAST]
            if gap != seen:
                seen, seen_bin = gap, gap_bin(gap, len(s.gaps))
            s.gaps[seen_bin] += 1
            if gap > s.time[job, WORST_GAP]:
                s.time[job, WORST_GAP] = gap
        else:
            s.time[job, FIRST] = now
        s.job[job, EMITTED] += count
        s.time[job, LAST] = now
        if s.job[job, EMITTED] == s.job[job, OUTPUT]:
            end(s, job)


@njit(cache=True)
def go(s):
    """Run until nobody is left."""
    while True:
        if not s.n[PRESENT]:
            time = next_arrival(s)
            if time == math.inf:
                return
            s.x[NOW] = max(s.x[NOW], time)
        arrive(s)
        plan(s)
        if not s.n[PARTS]:  # nobody fits, nobody runs: `check_fit` excludes it
            raise RuntimeError("an empty step")
        finish_step(s)
