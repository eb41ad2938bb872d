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
from kb.repro.sim.kernel_requests import arrive, key_of, next_arrival, preempt, start, stop, take
from kb.repro.sim.kernel_state import (
    ACCEPTED,
    AREA,
    BUDGET,
    BUSY,
    CACHE,
    CHAIN,
    CHAINED,
    COMPUTED,
    DECODES,
    DRAFTED,
    DRAFTS,
    EMITTED,
    FINISH,
    FIRST,
    FOLLOWER,
    FREE,
    HELD,
    IS_RUNNING,
    LAST,
    LEFT,
    LOST,
    NAMED,
    NOW,
    OUTPUT,
    PAGES,
    PART,
    PART_DRAFTS,
    PARTS,
    PEAK,
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
    PROMPT,
    RUN,
    RUNNING,
    SEED,
    SEQUENCES,
    SIZE,
    STEPS,
    SWAPPED,
    THINK,
    TOKENS,
    TOTAL,
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
    compiled_part,
    inlined_part,
)


@compiled_part
def go_on(s, kind):
    """Plan running requests: 0 all, 1 those that decode, 2 the others; False if one was preempted.

    The first branch is `take` for a decode that needs neither a page nor a name: nearly all of them.
    """
    job, n, run, part, part_drafts = s.job, s.n, s.list[RUN], s.list[PART], s.list[PART_DRAFTS]
    size, most_drafts, shared, plans = s.setting[SIZE], s.setting[DRAFTS], s.setting[CACHE], s.n[PLANS]
    left, parts, decoding, kv, drafted = n[LEFT], n[PARTS], 0, 0, 0  # in registers, not in memory
    nobody, at = True, 0
    while at < n[RUNNING] and left:
        one = run[at]
        done = job[one, COMPUTED]
        known = job[one, PROMPT] + job[one, EMITTED]
        decodes = done > 0 and known - done == 1
        if job[one, PLANNED] == plans or (kind and decodes != (kind == 1)):
            at += 1
            continue
        drafts = min(most_drafts, left - 1)
        after = done + 1 + drafts
        if (
            decodes
            and after <= job[one, HELD] * size
            and (not shared or known < (job[one, NAMED] + 1) * size)
        ):
            decoding += 1
            kv += done
            drafted += drafts
            job[one, TOTAL] += 1 + drafts
            job[one, COMPUTED] = after
            job[one, PEAK] = max(job[one, PEAK], known)
            job[one, PLANNED] = plans
            part[parts] = one
            part_drafts[parts] = drafts
            parts += 1
            left -= 1 + drafts
            at += 1
            continue
        n[LEFT], n[PARTS] = left, parts
        while not take(s, one):
            nobody = False
            last = n[RUNNING] - 1
            while job[run[last], PLANNED] == plans:
                last -= 1
            victim = run[last]
            preempt(s, victim)
            if victim == one:
                at -= 1
                break
        at += 1
        left, parts = n[LEFT], n[PARTS]
    n[LEFT], n[PARTS] = left, parts
    n[W_TOKENS] += decoding + drafted
    n[W_DECODES] += decoding
    n[W_KV] += kv
    n[W_DRAFTED] += drafted
    return nobody


@compiled_part
def admit(s):
    setting, n, lists, keys = s.setting, s.n, s.list, s.key
    while n[WAITING] and n[LEFT] and n[RUNNING] < setting[SEQUENCES]:
        one = lists[WAIT, 0]
        moved = start(s, one)
        if moved < 0:
            return
        pop(keys[0], lists[WAIT], n[WAITING])
        n[WAITING] -= 1
        n[W_SWAPPED] += moved
        if not take(s, one):
            preempt(s, one)
            return


@compiled_part
def behind(s, one, order, count):
    """The last in order that runs, is not in this step and comes after the request; -1 if none."""
    n, job = s.n, s.job
    for at in range(count - 1, -1, -1):
        each = order[at]
        if each == one:
            return -1
        if job[each, IS_RUNNING] and job[each, PLANNED] < n[PLANS]:
            return each
    return -1


@compiled_part
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


@compiled_part
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


@compiled_part
def keep_waiting(s, order):
    """Queue again, by their present key, all that do not run."""
    s.n[WAITING] = 0
    for job in order:
        if not s.job[job, IS_RUNNING]:
            push(s.key[0], s.list[WAIT], s.n[WAITING], key_of(s, job), job)
            s.n[WAITING] += 1


@inlined_part
def plan(s):
    """Decide the next step."""
    setting, n, lists = s.setting, s.n, s.list
    n[PARTS] = 0
    n[LEFT] = setting[BUDGET]
    for place in range(W_TOKENS, W_SWAPPED + 1):
        n[place] = 0
    n[PLANS] += 1
    if s.weight[6] != 0.0 and not setting[PREEMPTIVE]:
        keep_waiting(s, lists[WAIT, : n[WAITING]].copy())
    if setting[PREEMPTIVE]:
        plan_by_key(s)
    elif setting[DECODES] == 2:
        if go_on(s, 2) and n[WAITING]:
            admit(s)
        if not n[W_PREFILL]:
            go_on(s, 0)
    elif setting[DECODES] == 1:
        calm = go_on(s, 1)
        if go_on(s, 2) and calm and n[WAITING]:
            admit(s)
    elif go_on(s, 0) and n[WAITING]:
        admit(s)


@compiled_part
def step_seconds(n, dense, rate):
    total = dense[n[W_TOKENS]]
    total += rate[PER_PAIR] * n[W_PAIRS]
    total += rate[PER_KV] * n[W_KV]
    total += rate[PER_DECODE] * n[W_DECODES]
    total += rate[PER_SEQUENCE] * n[W_SEQUENCES]
    total += rate[PER_DRAFTED] * n[W_DRAFTED]
    total += rate[PER_SWAPPED] * n[W_SWAPPED]
    return total


@compiled_part
def verify(s, one, drafts):
    """Accept drafts; the tokens emitted."""
    setting, n, job = s.setting, s.n, s.job
    draw = uniform(setting[SEED], one, job[one, EMITTED])
    accepted = 0
    while accepted < drafts and draw < s.below[accepted]:
        accepted += 1
    n[ACCEPTED] += accepted
    count = min(1 + accepted, job[one, OUTPUT] - job[one, EMITTED])
    refused = 1 + drafts - count
    job[one, COMPUTED] -= refused
    job[one, LOST] += refused
    return count


@inlined_part
def end(s, one):
    n, x, job, time, lists, keys = s.n, s.x, s.job, s.time, s.list, s.key
    time[one, FINISH] = x[NOW]
    n[PRESENT] -= 1
    stop(s, one)
    follower = job[one, FOLLOWER]
    if follower >= 0:
        push(keys[1], lists[CHAIN], n[CHAINED], x[NOW] + time[follower, THINK], follower)
        n[CHAINED] += 1


@inlined_part
def finish_step(s):
    """Let the planned step run and hand out its tokens."""
    n, x, job, time, gaps = s.n, s.x, s.job, s.time, s.gaps
    part, part_drafts, bins = s.list[PART], s.list[PART_DRAFTS], len(s.gaps)
    seconds = step_seconds(n, s.dense, s.rate)
    x[AREA] += n[PRESENT] * seconds
    n[STEPS] += 1
    n[TOKENS] += n[W_TOKENS]
    n[DRAFTED] += n[W_DRAFTED]
    n[SWAPPED] += n[W_SWAPPED]
    x[BUSY] += seconds
    x[NOW] += seconds
    now = x[NOW]
    n[PEAK_PAGES] = max(n[PEAK_PAGES], s.setting[PAGES] - n[FREE])
    seen, seen_bin = -1.0, 0  # most of a step's gaps are equal
    for at in range(n[PARTS]):
        drafts = part_drafts[at]
        if drafts < 0:
            continue
        one = part[at]
        count = 1
        if drafts:
            count = verify(s, one, drafts)
            gaps[0] += count - 1
        emitted = job[one, EMITTED]
        if emitted:
            gap = now - time[one, LAST]
            if gap != seen:
                seen, seen_bin = gap, gap_bin(gap, bins)
            gaps[seen_bin] += 1
            if gap > time[one, WORST_GAP]:
                time[one, WORST_GAP] = gap
        else:
            time[one, FIRST] = now
        emitted += count
        job[one, EMITTED] = emitted
        time[one, LAST] = now
        if emitted == job[one, OUTPUT]:
            end(s, one)


@njit(cache=True)
def go(s):
    """Run until nobody is left."""
    n, x, time, lists, keys = s.n, s.x, s.time, s.list, s.key
    due = next_arrival(n, time, lists, keys)
    while True:
        if not n[PRESENT]:
            if due == math.inf:
                return
            x[NOW] = max(x[NOW], due)
        if due <= x[NOW]:
            due = arrive(s)
        plan(s)
        if not n[PARTS]:  # nobody fits, nobody runs: `check_fit` excludes it
            raise RuntimeError("an empty step")
        finish_step(s)
        if n[CHAINED]:
            due = next_arrival(n, time, lists, keys)
