"""Requests in the compiled loop: how one comes, starts, does its share of a step, gives way and ends."""

from __future__ import annotations

import math

from kb.repro.sim.kernel_parts import found_pages, grow, name_pages, pop, push, release, unlink
from kb.repro.sim.kernel_state import (
    AREA,
    ARRIVAL,
    CACHE,
    CHAIN,
    CHAINED,
    COMPUTED,
    DRAFTS,
    EMITTED,
    FREE,
    FREE_ROWS,
    HELD,
    HITS,
    HOLDERS,
    INTENDED,
    IS_RUNNING,
    LEFT,
    LOST,
    NAMED,
    NEXT,
    NOW,
    OUTPUT,
    OUTSIDE,
    PAGES,
    PAGES_FROM,
    PART,
    PART_DRAFTS,
    PARTS,
    PEAK,
    PLANNED,
    PLANS,
    PREEMPTIONS,
    PRESENT,
    PROMISED,
    PROMPT,
    READY,
    READY_TOKENS,
    REUSED,
    ROW,
    ROWS,
    RUN,
    RUNNING,
    SCHEDULED,
    SCHEDULED_ALL,
    SIZE,
    STARTED,
    SWAP,
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
    WHOLE,
    compiled_part,
    inlined_part,
)


@inlined_part
def key_of(s, job):
    w = s.weight
    known = s.job[job, PROMPT] + s.job[job, EMITTED]
    total = w[0] * s.time[job, ARRIVAL]
    total += w[1] * s.job[job, PROMPT]
    total += w[2] * s.job[job, OUTPUT]
    total += w[3] * (known - s.job[job, COMPUTED])
    total += w[4] * (s.job[job, OUTPUT] - s.job[job, EMITTED])
    total += w[5] * s.job[job, PEAK]
    if w[6] != 0.0:
        total += w[6] * (found_pages(s, job) * s.setting[SIZE])
    return total


@inlined_part
def enqueue(s, one):
    n, job, lists, keys = s.n, s.job, s.list, s.key
    job[one, IS_RUNNING] = False
    push(keys[0], lists[WAIT], n[WAITING], key_of(s, one), one)
    n[WAITING] += 1


@compiled_part
def next_arrival(n, time, lists, keys):
    """Time of the next arrival, infinity if none is known."""
    when = math.inf
    if n[NEXT] < n[SCHEDULED_ALL]:
        when = time[lists[SCHEDULED, n[NEXT]], INTENDED]
    if n[CHAINED] and keys[1, 0] < when:
        when = keys[1, 0]
    return when


@inlined_part
def arrive(s):
    setting, n, x, job, time, lists, keys = s.setting, s.n, s.x, s.job, s.time, s.list, s.key
    while True:
        when = next_arrival(n, time, lists, keys)
        if not when <= x[NOW]:
            return when
        if n[CHAINED] and keys[1, 0] == when:
            one = pop(keys[1], lists[CHAIN], n[CHAINED])
            n[CHAINED] -= 1
        else:
            one = lists[SCHEDULED, n[NEXT]]
            n[NEXT] += 1
        if setting[READY]:
            job[one, OUTSIDE] = job[one, READY_TOKENS]
        time[one, ARRIVAL] = when
        x[AREA] += x[NOW] - when
        n[PRESENT] += 1
        enqueue(s, one)


@compiled_part
def pages_for(size, tokens):
    return (tokens + size - 1) // size


@compiled_part
def footprint(setting, job, one):
    return pages_for(setting[SIZE], job[one, PROMPT] + job[one, OUTPUT] + setting[DRAFTS])


@compiled_part
def start(s, one):
    """KV tokens to move from the host; -1, and nothing taken, if the request does not fit."""
    n, job, page, page_of, page_ids, table = s.n, s.job, s.page, s.page_of, s.page_ids, s.table
    whole = footprint(s.setting, s.job, one)
    if s.setting[WHOLE] and n[PROMISED] + whole > s.setting[PAGES]:
        return -1
    found = found_pages(s, one) if s.setting[CACHE] else 0
    missing = pages_for(s.setting[SIZE], job[one, PROMPT] + job[one, EMITTED]) - found
    begin = job[one, PAGES_FROM]
    for slot in range(found):
        if not page[page_of[page_ids[begin + slot]], HOLDERS]:
            missing += 1
    if missing > n[FREE]:
        return -1
    if s.setting[CACHE]:
        n[ROWS] -= 1
        row = s.list[FREE_ROWS, n[ROWS]]
        job[one, ROW] = row
        for slot in range(found):
            held = page_of[page_ids[begin + slot]]
            if not page[held, HOLDERS]:
                unlink(page, n, held)
            page[held, HOLDERS] += 1
            table[row, slot] = held
        job[one, HELD] = found
        job[one, NAMED] = found
    moved = job[one, OUTSIDE]
    job[one, OUTSIDE] = 0
    if moved:
        grow(s, one, pages_for(s.setting[SIZE], moved))
        job[one, COMPUTED] = moved
    else:
        job[one, COMPUTED] = found * s.setting[SIZE]
    job[one, REUSED] += job[one, COMPUTED]
    if not job[one, STARTED]:
        job[one, HITS] = found * s.setting[SIZE]
        job[one, STARTED] = True
    n[PROMISED] += whole
    job[one, IS_RUNNING] = True
    s.list[RUN, n[RUNNING]] = one
    n[RUNNING] += 1
    job[one, PEAK] = max(job[one, PEAK], job[one, COMPUTED])
    return 0 if s.setting[READY] and not job[one, PREEMPTIONS] else moved


@inlined_part
def stop(s, one):
    """Take a request off the running list and give its pages back."""
    setting, n, job, lists = s.setting, s.n, s.job, s.list
    at = 0
    while lists[RUN, at] != one:
        at += 1
    last = n[RUNNING] - 1
    for slot in range(at, last):
        lists[RUN, slot] = lists[RUN, slot + 1]
    n[RUNNING] = last
    job[one, IS_RUNNING] = False
    if setting[CACHE]:
        name_pages(s, one, min(job[one, COMPUTED], job[one, PROMPT] + job[one, EMITTED]) // setting[SIZE])
    release(s, one)
    n[PROMISED] -= footprint(setting, job, one)


@compiled_part
def preempt(s, one):
    setting, n, job = s.setting, s.n, s.job
    stop(s, one)
    job[one, PREEMPTIONS] += 1
    if setting[SWAP]:
        job[one, OUTSIDE] = job[one, COMPUTED]
        n[W_SWAPPED] += job[one, COMPUTED]
    job[one, LOST] += job[one, COMPUTED]
    job[one, COMPUTED] = 0
    enqueue(s, one)


@compiled_part
def take(s, one):
    """Plan a running request's share of the step; False, and nothing planned, if pages are missing."""
    setting, n, job, lists = s.setting, s.n, s.job, s.list
    known, done = job[one, PROMPT] + job[one, EMITTED], job[one, COMPUTED]
    left = known - done
    decodes = done > 0 and left == 1
    drafts = min(setting[DRAFTS], n[LEFT] - 1) if decodes else 0
    share = 1 + drafts if decodes else min(left, n[LEFT])
    after = done + share
    if after > job[one, HELD] * setting[SIZE] and not grow(s, one, pages_for(setting[SIZE], after)):
        return False
    if setting[CACHE]:
        full = min(after, known) // setting[SIZE]
        if full > job[one, NAMED]:
            name_pages(s, one, full)
    n[W_TOKENS] += share
    if decodes:
        n[W_DECODES] += 1
        n[W_KV] += done
        n[W_DRAFTED] += drafts
    else:
        n[W_PREFILL] += share
        n[W_SEQUENCES] += 1
        n[W_PAIRS] += share * done + share * (share + 1) // 2
    job[one, TOTAL] += share
    job[one, COMPUTED] = after
    job[one, PEAK] = max(job[one, PEAK], min(after, known))
    job[one, PLANNED] = n[PLANS]
    lists[PART, n[PARTS]] = one
    lists[PART_DRAFTS, n[PARTS]] = drafts if after >= known else -1  # -1: emits nothing
    n[PARTS] += 1
    n[LEFT] -= share
    return True


@compiled_part
def is_decode(s, one):
    job = s.job
    return job[one, COMPUTED] > 0 and job[one, PROMPT] + job[one, EMITTED] - job[one, COMPUTED] == 1
