"""KV pages of the simulated engine: none shared, shared by page hash, or by a radix tree.

The rules are vLLM's: a page that no request holds keeps its contents until it is taken for others; pages without a
name are taken first, then the least recently used; a request gives its pages back deepest first. One page carries a
name: a second page of equal contents stays nameless. `kb.repro.sim.page_hash` is the cache over real tokens that this
one abbreviates; here a page's contents are an integer given with the workload.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from kb.repro.sim.radix import PAGE_ID_BYTES, Match, RadixCache, page_ids, to_key


class Holder:
    """What a memory keeps for one request."""

    __slots__ = ("contents", "match", "named", "pages")

    def __init__(self, contents: Sequence[int]) -> None:
        self.contents = contents
        """Name of each full page of prompt and output; empty where nothing is shared."""
        self.pages: list[int] = []
        self.named = 0
        """Leading pages whose contents are known to the cache, or known to be there already."""
        self.match: Match | None = None


class Memory(Protocol):
    """Pages of one engine."""

    @property
    def free(self) -> int:
        """Pages a request may take now; those that only the cache keeps count."""
        ...

    def found(self, holder: Holder, most: int) -> int:
        """Leading pages, at most ``most``, that a new holder would find. No effect."""
        ...

    def missing(self, holder: Holder, found: int, pages: int) -> int:
        """Free pages that ``pages`` pages cost, ``found`` of them found."""
        ...

    def start(self, holder: Holder, found: int) -> None:
        """Hold the first ``found`` pages."""
        ...

    def grow(self, holder: Holder, pages: int) -> bool:
        """Hold ``pages`` pages in all; False, and nothing changed, if there are not enough."""
        ...

    def name(self, holder: Holder, full: int) -> None:
        """Let others find the first ``full`` pages."""
        ...

    def release(self, holder: Holder) -> None:
        """Give all pages back."""
        ...


class HashMemory:
    """Shared by page contents; with empty contents, a plain pool."""

    def __init__(self, pages: int) -> None:
        self._order: OrderedDict[int, None] = OrderedDict.fromkeys(range(pages))
        self._name = [-1] * pages
        self._page: dict[int, int] = {}
        self._holders = [0] * pages

    @property
    def free(self) -> int:
        return len(self._order)

    def found(self, holder: Holder, most: int) -> int:
        count = 0
        for name in holder.contents[:most]:
            if name not in self._page:
                break
            count += 1
        return count

    def missing(self, holder: Holder, found: int, pages: int) -> int:
        idle = sum(1 for name in holder.contents[:found] if not self._holders[self._page[name]])
        return pages - found + idle

    def start(self, holder: Holder, found: int) -> None:
        for name in holder.contents[:found]:
            page = self._page[name]
            if not self._holders[page]:
                del self._order[page]
            self._holders[page] += 1
            holder.pages.append(page)
        holder.named = found

    def grow(self, holder: Holder, pages: int) -> bool:
        need = pages - len(holder.pages)
        if need > len(self._order):
            return False
        for _ in range(need):
            page, _ = self._order.popitem(last=False)
            if self._name[page] >= 0:
                del self._page[self._name[page]]
                self._name[page] = -1
            self._holders[page] = 1
            holder.pages.append(page)
        return True

    def name(self, holder: Holder, full: int) -> None:
        for slot in range(holder.named, min(full, len(holder.contents))):
            name, page = holder.contents[slot], holder.pages[slot]
            if name not in self._page:
                self._page[name] = page
                self._name[page] = name
            holder.named = slot + 1

    def release(self, holder: Holder) -> None:
        for page in reversed(holder.pages):
            self._holders[page] -= 1
            if not self._holders[page]:
                self._order[page] = None
                if self._name[page] < 0:
                    self._order.move_to_end(page, last=False)
        holder.pages.clear()
        holder.named = 0


class RadixMemory:
    """Shared through `RadixCache`: contents enter the tree when a request ends or is preempted, as in SGLang."""

    def __init__(self, pages: int) -> None:
        self._cache = RadixCache(1, pages)

    @property
    def free(self) -> int:
        return self._cache.pool.free_pages + self._cache.evictable

    def found(self, holder: Holder, most: int) -> int:
        return self._cache.peek(to_key(holder.contents[:most]))

    def missing(self, holder: Holder, found: int, pages: int) -> int:
        match = self._cache.match(to_key(holder.contents[:found]))
        before = self._cache.evictable
        self._cache.lock(match)
        idle = before - self._cache.evictable
        self._cache.unlock(match)
        return pages - found + idle

    def start(self, holder: Holder, found: int) -> None:
        holder.match = self._cache.match(to_key(holder.contents[:found]))
        self._cache.lock(holder.match)
        holder.pages.extend(page_ids(holder.match[1]))

    def grow(self, holder: Holder, pages: int) -> bool:
        need = pages - len(holder.pages)
        if need > self.free:
            return False
        if need > 0:
            short = need - self._cache.pool.free_pages
            if short > 0:
                self._cache.evict(short)
            holder.pages.extend(page_ids(self._cache.pool.alloc(need) or b""))
        return True

    def name(self, holder: Holder, full: int) -> None:
        holder.named = min(full, len(holder.contents), len(holder.pages))

    def release(self, holder: Holder) -> None:
        if holder.match is None:
            return
        match, shared = holder.match, len(holder.match[1]) // PAGE_ID_BYTES
        self._cache.insert(
            match, to_key(holder.contents[shared : max(holder.named, shared)]), to_key(holder.pages[shared:])
        )
        self._cache.unlock(match)
        holder.match = None
        holder.pages.clear()
        holder.named = 0
