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


# Memory: the list of pages nobody holds runs from OLDEST to NEWEST. The small functions take arrays, not the state:
# copying sixteen arrays would cost more than what they do.


@compiled_part
def unlink(page, n, one):
    before, after = page[one, OLDER], page[one, NEWER]
    if before >= 0:
        page[before, NEWER] = after
    else:
        n[OLDEST] = after
    if after >= 0:
        page[after, OLDER] = before
    else:
        n[NEWEST] = before
    n[FREE] -= 1


@compiled_part
def link(page, n, one):
    """Put a page at the new end; one without a name at the old end."""
    if page[one, NAME] >= 0:
        end = n[NEWEST]
        page[one, OLDER], page[one, NEWER] = end, -1
        if end >= 0:
            page[end, NEWER] = one
        else:
            n[OLDEST] = one
        n[NEWEST] = one
    else:
        end = n[OLDEST]
        page[one, OLDER], page[one, NEWER] = -1, end
        if end >= 0:
            page[end, OLDER] = one
        else:
            n[NEWEST] = one
        n[OLDEST] = one
    n[FREE] += 1


@compiled_part
def found_pages(s, one):
    if not s.setting[CACHE] or s.job[one, OUTSIDE]:
        return 0
    page_of, page_ids = s.page_of, s.page_ids
    begin = s.job[one, PAGES_FROM]
    most = min(
        (s.job[one, PROMPT] + s.job[one, EMITTED] - 1) // s.setting[SIZE], s.job[one, PAGES_END] - begin
    )
    for count in range(most):
        if page_of[page_ids[begin + count]] < 0:
            return count
    return most


@compiled_part
def grow(s, one, pages):
    n, page, page_of, job = s.n, s.page, s.page_of, s.job
    need = pages - job[one, HELD]
    if need <= 0:
        return True
    if need > n[FREE]:
        return False
    if not s.setting[CACHE]:
        n[FREE] -= need
    else:
        table, row = s.table, job[one, ROW]
        for slot in range(job[one, HELD], pages):
            taken = n[OLDEST]
            unlink(page, n, taken)
            name = page[taken, NAME]
            if name >= 0:
                page_of[name] = -1
                page[taken, NAME] = -1
            page[taken, HOLDERS] = 1
            table[row, slot] = taken
    job[one, HELD] = pages
    return True


@compiled_part
def name_pages(s, one, full):
    page, page_of, page_ids, job, table = s.page, s.page_of, s.page_ids, s.job, s.table
    begin, row = job[one, PAGES_FROM], job[one, ROW]
    full = min(full, job[one, PAGES_END] - begin)
    for slot in range(job[one, NAMED], full):
        name = page_ids[begin + slot]
        if page_of[name] < 0:
            held = table[row, slot]
            page_of[name] = held
            page[held, NAME] = name
    job[one, NAMED] = max(full, job[one, NAMED])


@compiled_part
def release(s, one):
    n, page, job, table = s.n, s.page, s.job, s.table
    if not s.setting[CACHE]:
        n[FREE] += job[one, HELD]
    else:
        row = job[one, ROW]
        for slot in range(job[one, HELD] - 1, -1, -1):
            held = table[row, slot]
            page[held, HOLDERS] -= 1
            if not page[held, HOLDERS]:
                link(page, n, held)
        s.list[FREE_ROWS, n[ROWS]] = row
        n[ROWS] += 1
        job[one, NAMED] = 0
    job[one, HELD] = 0
