"""A prefix cache so simple that it cannot be wrong: a dictionary from every page-aligned prefix to its page.

`play` runs one random program on it and on `RadixCache` and compares after each step.
"""

import random

from kb.repro.sim.radix import PAGE_ID_BYTES, RadixCache, page_ids, to_key


class Model:
    """Prefix → (page, time of last use), prefixes in whole pages; locks are counted per prefix."""

    def __init__(self, page):
        self.page = page
        self.cached = {}
        self.used = {}
        self.locks = {}
        self.clock = 0

    def prefixes(self, tokens):
        return [tuple(tokens[:end]) for end in range(self.page, len(tokens) + 1, self.page)]

    def longest(self, tokens):
        """The cached prefixes of ``tokens``, shortest first: longest common prefix by trying every length."""
        found = []
        for prefix in self.prefixes(tokens):
            if prefix not in self.cached:
                break
            found.append(prefix)
        return found

    def touch(self, prefixes):
        self.clock += 1
        for prefix in prefixes:
            self.used[prefix] = self.clock

    def leaves(self):
        inner = {prefix[: -self.page] for prefix in self.cached}
        return [prefix for prefix in self.cached if prefix not in inner and not self.locks.get(prefix)]


def random_tokens(rng, past, page):
    """Tokens that often share a prefix, cut anywhere, with what was used before."""
    head = []
    if past and rng.random() < 0.8:
        head = rng.choice(past)
        head = head[: rng.randrange(len(head) + 1)]
    return head + [rng.randrange(3) for _ in range(rng.randrange(3 * page + 4))]


class Program:
    """One random program, the cache and the model side by side."""

    def __init__(self, seed, page):
        self.rng = random.Random(seed)
        self.page = page
        self.capacity = self.rng.randrange(4, 40)
        self.cache = RadixCache(page, self.capacity)
        self.model = Model(page)
        self.past = []
        self.running = []  # (tokens matched, match, prefixes locked, fresh pages)

    def check(self):
        cache, model = self.cache, self.model
        held = [page for node in cache.nodes() for page in page_ids(node.pages)]
        flying = [page for *_, fresh in self.running for page in page_ids(fresh)]
        cache.pool.check(held + flying)  # free + cached + in flight = the pool, no page twice
        assert sorted(held) == sorted(model.cached.values())
        assert cache.evictable + cache.protected == len(held)
        assert cache.protected == sum(1 for count in model.locks.values() if count)

    def match(self, tokens):
        before = (self.cache.evictable, self.cache.protected, self.cache.pool.free_pages)
        expected = self.model.longest(tokens)
        key = to_key(tokens)
        assert self.cache.peek(key) == len(expected) * self.page
        found = self.cache.match(key)
        assert page_ids(found[1]).tolist() == [self.model.cached[prefix] for prefix in expected]
        assert (self.cache.evictable, self.cache.protected, self.cache.pool.free_pages) == before
        if expected:
            self.model.touch(expected)
        return found, expected

    def start(self):
        tokens = random_tokens(self.rng, self.past, self.page)
        self.past.append(tokens)
        found, expected = self.match(tokens)
        self.cache.lock(found)
        for prefix in expected:
            self.model.locks[prefix] = self.model.locks.get(prefix, 0) + 1
        need = -(-len(tokens) // self.page) - len(expected)
        if need > self.cache.pool.free_pages:
            self.evict(need - self.cache.pool.free_pages)
        fresh = self.cache.pool.alloc(need)
        if fresh is None:
            self.release(found, expected)
            return
        self.running.append((tokens, found, expected, fresh))

    def release(self, found, expected):
        self.cache.unlock(found)
        for prefix in expected:
            self.model.locks[prefix] -= 1

    def finish(self):
        if not self.running:
            return
        tokens, found, expected, fresh = self.running.pop(self.rng.randrange(len(self.running)))
        matched, model = len(expected), self.model
        present = model.longest(tokens)
        already = self.cache.insert(found, to_key(tokens[matched * self.page :]), fresh)
        assert already == (len(present) - matched) * self.page
        numbers = page_ids(fresh).tolist()
        everything = model.prefixes(tokens)
        for at, prefix in enumerate(everything):
            if prefix not in model.cached:
                model.cached[prefix] = numbers[at - matched]
        if everything:
            model.touch(everything)
        self.release(found, expected)

    def evict(self, count):
        model, cache = self.model, self.cache
        free, evictable = cache.pool.free_pages, cache.evictable
        freed = cache.evict(count)
        left = {page for node in cache.nodes() for page in page_ids(node.pages)}
        gone = [prefix for prefix, page in model.cached.items() if page not in left]
        assert freed == len(gone) == cache.pool.free_pages - free
        assert freed >= min(count, evictable)
        assert not any(model.locks.get(prefix) for prefix in gone)
        times = [model.used[prefix] for prefix in gone]
        for prefix in gone:
            del model.cached[prefix]
        for prefix in model.cached:  # no orphan: what is left still has all that comes before it
            assert len(prefix) == self.page or prefix[: -self.page] in model.cached
        if times and count <= evictable:  # least recently used first
            assert max(times) <= min((model.used[leaf] for leaf in model.leaves()), default=max(times))

    def step(self):
        act = self.rng.random()
        if act < 0.4:
            self.start()
        elif act < 0.7:
            self.finish()
        elif act < 0.9:
            self.match(random_tokens(self.rng, self.past, self.page))
        else:
            self.evict(self.rng.randrange(4))
        self.check()


def play(seed, page, steps=40):
    """Run one program to its end; all accounts are even afterwards."""
    program = Program(seed, page)
    for _ in range(steps):
        program.step()
    while program.running:
        program.finish()
        program.check()
    assert program.cache.protected == 0
    assert program.cache.reset()
    assert program.cache.pool.free_pages == program.capacity
    assert program.cache.evictable == 0
    return len(program.past)


__all__ = ["PAGE_ID_BYTES", "Model", "Program", "play"]
