"""Our prefix cache behind the driver's interface, in two ways; run by `benchmarks/radix.py`.

``TokenSlots``: like SGLang's, int64 token arrays in and int64 token slots out, conversions inside the timed calls.
``PageTables``: as the simulator uses it, int32 keys and page ids.
"""

# ruff: noqa: ANN001, ANN201, ANN204, ARG002 - signatures are the driver's
import gc
import sys
from array import array
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kb.repro.sim.radix import RadixCache


class PageTables:
    """Keys are int32 arrays that a request would grow, slots are page ids."""

    name = "kb RadixCache, page tables"
    token_bytes = 4

    def __init__(self, page_size, capacity):
        self.page = page_size
        self.cache = RadixCache(page_size, capacity // page_size, self.token_bytes)
        gc.freeze()

    def prepare(self, toks):
        return array("i", toks)

    def lookup(self, key):
        return self.cache.peek(key.tobytes())

    def match(self, key):
        found = self.cache.match(key.tobytes())
        return len(found[1]) // 4 * self.page, found, found[1]

    def lock(self, handle):
        self.cache.lock(handle)

    def unlock(self, handle):
        self.cache.unlock(handle)

    def alloc(self, n):
        return self.cache.pool.alloc(-(-n // self.page))

    def evict(self, n):
        return self.cache.evict(-(-n // self.page)) * self.page

    def available(self):
        return self.cache.pool.free_pages * self.page

    def insert(self, key, handle, matched, prefix_slots, slots):
        return matched + self.cache.insert(handle, key[matched:].tobytes(), slots)

    def admit(self, key, total):
        n, h, ps = self.match(key)
        self.lock(h)
        need = total - n
        s = self.alloc(need)
        if s is None:
            free = self.available()
            self.evict(need + self.page - free if need > free else need)
            s = self.alloc(need)
            if s is None:
                self.unlock(h)
                return None
        return n, h, ps, s

    def finish(self, full_key, t):
        n, h, ps, s = t
        self.insert(full_key, h, n, ps, s)
        self.unlock(h)


class TokenSlots(PageTables):
    """Keys are int64 arrays, slots are int64 arrays of one entry per token."""

    name = "kb RadixCache, token slots"
    token_bytes = 8

    def __init__(self, page_size, capacity):
        super().__init__(page_size, capacity)
        pages = capacity // page_size
        self.slots = np.arange(pages * page_size, dtype=np.int64).reshape(pages, page_size)
        self.nothing = np.empty(0, dtype=np.int64)

    def prepare(self, toks):
        return array("q", toks)

    def expand(self, pages):
        if not pages:
            return self.nothing
        return self.slots.take(np.frombuffer(pages, dtype=np.int32), axis=0).reshape(-1)

    def match(self, key):
        found = self.cache.match(key.tobytes())
        pages = found[1]
        return len(pages) // 4 * self.page, found, self.expand(pages)

    def alloc(self, n):
        pages = self.cache.pool.alloc(-(-n // self.page))
        return None if pages is None else self.expand(pages)

    def insert(self, key, handle, matched, prefix_slots, slots):
        pages = (slots[:: self.page] // self.page).astype(np.int32).tobytes()
        return matched + self.cache.insert(handle, key[matched:].tobytes(), pages)
