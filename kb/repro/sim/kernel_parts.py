"""Parts of the compiled loop that know no rule of serving: a heap, draws, bins, and pages with names."""

from __future__ import annotations

import math

import numpy as np

from kb.repro.sim.kernel_state import (
    CACHE,
    EMITTED,
    FREE,
    FREE_ROWS,
    HELD,
    HOLDERS,
    NAME,
    NAMED,
    NEWER,
    NEWEST,
    OLDER,
    OLDEST,
    OUTSIDE,
    PAGES_END,
    PAGES_FROM,
    PROMPT,
    ROW,
    ROWS,
    SIZE,
    compiled_part,
)


@compiled_part
def push(keys, ids, size, key, number):
    """Push onto a heap of (key, id)."""
    at = size
    while at > 0:
        up = (at - 1) // 2
        if keys[up] < key or (keys[up] == key and ids[up] < number):
            break
        keys[at] = keys[up]
        ids[at] = ids[up]
        at = up
    keys[at] = key
    ids[at] = number


@compiled_part
def pop(keys, ids, size):
    """Take the first of a heap of (key, id) of this size."""
    first = ids[0]
    last = size - 1
    key, number = keys[last], ids[last]
    at = 0
    while True:
        low = 2 * at + 1
        if low >= last:
            break
        right = low + 1
        if right < last and (keys[right] < keys[low] or (keys[right] == keys[low] and ids[right] < ids[low])):
            low = right
        if key < keys[low] or (key == keys[low] and number < ids[low]):
            break
        keys[at] = keys[low]
        ids[at] = ids[low]
        at = low
    keys[at] = key
    ids[at] = number
    return first


@compiled_part
def mix(state):
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled_part
def uniform(seed, request, position):
    step = np.uint64(0x9E3779B97F4A7C15)
    state = mix(np.uint64(seed) + step)
    state = mix(state + np.uint64(request) * step)
    state = mix(state + np.uint64(position) * step)
    return np.float64(state >> np.uint64(11)) * 2.0**-53


@compiled_part
def gap_bin(seconds, bins):
    mantissa, exponent = math.frexp(seconds)
    index = (exponent - 1 + 40) * 64 + int((mantissa - 0.5) * 128)
    return min(max(index, 0), bins - 1)


# Memory: the list of pages nobody holds runs from OLDEST to NEWEST


@compiled_part
def unlink(s, page):
    before, after = s.page[page, OLDER], s.page[page, NEWER]
    if before >= 0:
        s.page[before, NEWER] = after
    else:
        s.n[OLDEST] = after
    if after >= 0:
        s.page[after, OLDER] = before
    else:
        s.n[NEWEST] = before
    s.n[FREE] -= 1


@compiled_part
def link(s, page):
    """Put a page at the new end; one without a name at the old end."""
    if s.page[page, NAME] >= 0:
        end = s.n[NEWEST]
        s.page[page, OLDER], s.page[page, NEWER] = end, -1
        if end >= 0:
            s.page[end, NEWER] = page
        else:
            s.n[OLDEST] = page
        s.n[NEWEST] = page
    else:
        end = s.n[OLDEST]
        s.page[page, OLDER], s.page[page, NEWER] = -1, end
        if end >= 0:
            s.page[end, OLDER] = page
        else:
            s.n[NEWEST] = page
        s.n[OLDEST] = page
    s.n[FREE] += 1


@compiled_part
def found_pages(s, job):
    if not s.setting[CACHE] or s.job[job, OUTSIDE]:
        return 0
    begin = s.job[job, PAGES_FROM]
    most = min(
        (s.job[job, PROMPT] + s.job[job, EMITTED] - 1) // s.setting[SIZE], s.job[job, PAGES_END] - begin
    )
    for count in range(most):
        if s.page_of[s.page_ids[begin + count]] < 0:
            return count
    return most


@compiled_part
def grow(s, job, pages):
    need = pages - s.job[job, HELD]
    if need <= 0:
        return True
    if need > s.n[FREE]:
        return False
    if not s.setting[CACHE]:
        s.n[FREE] -= need
    else:
        row = s.table[s.job[job, ROW]]
        for slot in range(s.job[job, HELD], pages):
            page = s.n[OLDEST]
            unlink(s, page)
            name = s.page[page, NAME]
            if name >= 0:
                s.page_of[name] = -1
                s.page[page, NAME] = -1
            s.page[page, HOLDERS] = 1
            row[slot] = page
    s.job[job, HELD] = pages
    return True


@compiled_part
def name_pages(s, job, full):
    begin = s.job[job, PAGES_FROM]
    full = min(full, s.job[job, PAGES_END] - begin)
    for slot in range(s.job[job, NAMED], full):
        name = s.page_ids[begin + slot]
        if s.page_of[name] < 0:
            page = s.table[s.job[job, ROW], slot]
            s.page_of[name] = page
            s.page[page, NAME] = name
    s.job[job, NAMED] = max(full, s.job[job, NAMED])


@compiled_part
def release(s, job):
    if not s.setting[CACHE]:
        s.n[FREE] += s.job[job, HELD]
    else:
        row = s.table[s.job[job, ROW]]
        for slot in range(s.job[job, HELD] - 1, -1, -1):
            page = row[slot]
            s.page[page, HOLDERS] -= 1
            if not s.page[page, HOLDERS]:
                link(s, page)
        s.list[FREE_ROWS, s.n[ROWS]] = s.job[job, ROW]
        s.n[ROWS] += 1
        s.job[job, NAMED] = 0
    s.job[job, HELD] = 0
