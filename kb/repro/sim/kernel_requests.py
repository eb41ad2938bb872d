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
)


@compiled_part
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


@compiled_part
def enqueue(s, job):
    s.job[job, IS_RUNNING] = False
    push(s.key[0], s.list[WAIT], s.n[WAITING], key_of(s, job), job)
    s.n[WAITING] += 1


@compiled_part
def next_arrival(s):
    time = math.inf
    if s.n[NEXT] < s.n[SCHEDULED_ALL]:
        time = s.time[s.list[SCHEDULED, s.n[NEXT]], INTENDED]
    if s.n[CHAINED] and s.key[1, 0] < time:
        time = s.key[1, 0]
    return time


@compiled_part
def arrive(s):
    while True:
        time = next_arrival(s)
        if not time <= s.x[NOW]:
            return
        if s.n[CHAINED] and s.key[1, 0] == time:
            job = pop(s.key[1], s.list[CHAIN], s.n[CHAINED])
            s.n[CHAINED] -= 1
        else:
            job = s.list[SCHEDULED, s.n[NEXT]]
            s.n[NEXT] += 1
        if s.setting[READY]:
            s.job[job, OUTSIDE] = s.job[job, READY_TOKENS]
        s.time[job, ARRIVAL] = time
        s.x[AREA] += s.x[NOW] - time
        s.n[PRESENT] += 1
        enqueue(s, job)


@compiled_part
def pages_for(s, tokens):
    return (tokens + s.setting[SIZE] - 1) // s.setting[SIZE]


@compiled_part
def footprint(s, job):
    return pages_for(s, s.job[job, PROMPT] + s.job[job, OUTPUT] + s.setting[DRAFTS])


@compiled_part
def start(s, one):
    """KV tokens to move from the host; -1, and nothing taken, if the request does not fit."""
    n, job, page, page_of, page_ids, table = s.n, s.job, s.page, s.page_of, s.page_ids, s.table
    whole = footprint(s, one)
    if s.setting[WHOLE] and n[PROMISED] + whole > s.setting[PAGES]:
        return -1
    found = found_pages(s, one)
    missing = pages_for(s, job[one, PROMPT] + job[one, EMITTED]) - found
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
        grow(s, one, pages_for(s, moved))
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


@compiled_part
def stop(s, job):
    """Take a request off the running list and give its pages back."""
    at = 0
    while s.list[RUN, at] != job:
        at += 1
    last = s.n[RUNNING] - 1
    for slot in range(at, last):
        s.list[RUN, slot] = s.list[RUN, slot + 1]
    s.n[RUNNING] = last
    s.job[job, IS_RUNNING] = False
    if s.setting[CACHE]:
        name_pages(
            s, job, min(s.job[job, COMPUTED], s.job[job, PROMPT] + s.job[job, EMITTED]) // s.setting[SIZE]
        )
    release(s, job)
    s.n[PROMISED] -= footprint(s, job)


@compiled_part
def preempt(s, job):
    stop(s, job)
    s.job[job, PREEMPTIONS] += 1
    if s.setting[SWAP]:
        s.job[job, OUTSIDE] = s.job[job, COMPUTED]
        s.n[W_SWAPPED] += s.job[job, COMPUTED]
    s.job[job, LOST] += s.job[job, COMPUTED]
    s.job[job, COMPUTED] = 0
    enqueue(s, job)


@compiled_part
def take(s, job):
    """Plan a running request's share of the step; False, and nothing planned, if pages are missing."""
    known, done = s.job[job, PROMPT] + s.job[job, EMITTED], s.job[job, COMPUTED]
    left = known - done
    decodes = done > 0 and left == 1
    drafts = min(s.setting[DRAFTS], s.n[LEFT] - 1) if decodes else 0
    share = 1 + drafts if decodes else min(left, s.n[LEFT])
    after = done + share
    if after > s.job[job, HELD] * s.setting[SIZE] and not grow(s, job, pages_for(s, after)):
        return False
    if s.setting[CACHE]:
        full = min(after, known) // s.setting[SIZE]
        if full > s.job[job, NAMED]:
            name_pages(s, job, full)
    s.n[W_TOKENS] += share
    if decodes:
        s.n[W_DECODES] += 1
        s.n[W_KV] += done
        s.n[W_DRAFTED] += drafts
    else:
        s.n[W_PREFILL] += share
        s.n[W_SEQUENCES] += 1
        s.n[W_PAIRS] += share * done + share * (share + 1) // 2
    s.job[job, TOTAL] += share
    s.job[job, COMPUTED] = after
    s.job[job, PEAK] = max(s.job[job, PEAK], min(after, known))
    s.job[job, PLANNED] = s.n[PLANS]
    s.list[PART, s.n[PARTS]] = job
    s.list[PART_DRAFTS, s.n[PARTS]] = drafts if after >= known else -1  # -1: emits nothing
    s.n[PARTS] += 1
    s.n[LEFT] -= share
    return True


@compiled_part
def is_decode(s, job):
    return s.job[job, COMPUTED] > 0 and s.job[job, PROMPT] + s.job[job, EMITTED] - s.job[job, COMPUTED] == 1
