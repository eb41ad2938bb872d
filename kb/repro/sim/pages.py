"""A paged KV cache as serving engines keep it: a pool of pages, reference counts, a free list, page tables.

Axes: H KV heads that share a page · N tokens of a request · b tokens per page.
A page holds the entries of b consecutive tokens for all H heads of a layer. It goes back to the pool only when the last
owner lets go of it, and an owner lets go only when no entry of any head is left in it. Source: vLLM's block pool and
the mechanism described by the NVIDIA EAI post on paged compression.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


class OutOfPagesError(Exception):
    """The pool has fewer free pages than were asked for; nothing was taken."""


class PagePool:
    """Pages of one device: a stack of free ids and a reference count per page."""

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._free = list(range(num_pages - 1, -1, -1))
        self._refs = np.zeros(num_pages, dtype=np.int64)

    @property
    def num_free(self) -> int:
        """Pages nobody owns."""
        return len(self._free)

    def take(self, count: int) -> Ints:
        """Take ``count`` free pages, each with one owner.

        Raises:
            OutOfPagesError: There are fewer; nothing was taken.
        """
        if count > len(self._free):
            raise OutOfPagesError(f"{count} pages asked for, {len(self._free)} free")
        cut = len(self._free) - count
        taken = np.array(self._free[cut:][::-1], dtype=np.int64)
        del self._free[cut:]
        self._refs[taken] = 1
        return taken

    def share(self, pages: Ints) -> None:
        """Add an owner to pages that have one, as prefix caching does."""
        if np.any(self._refs[pages] == 0):
            raise ValueError("a free page cannot be shared")
        np.add.at(self._refs, pages, 1)

    def drop(self, pages: Ints) -> int:
        """Remove one owner of each page; the number of pages that went back to the pool."""
        if np.any(self._refs[pages] == 0):
            raise ValueError("a free page cannot be dropped")
        np.subtract.at(self._refs, pages, 1)
        gone = pages[self._refs[pages] == 0]
        self._free.extend(gone[::-1].tolist())
        return len(gone)

    def owners(self, page: int) -> int:
        """Owners of a page; 0 means free."""
        return int(self._refs[page])


@dataclass
class PagedCache:
    """KV entries of one request in one layer.

    ``table[i]`` is the page of tokens ``i·b … i·b+b−1``, or −1 once it was given back. ``live[h, n]`` is True while head
    h keeps token n.
    """

    pool: PagePool
    page_tokens: int
    table: Ints
    live: Bools

    @classmethod
    def fill(cls, pool: PagePool, num_tokens: int, num_heads: int, page_tokens: int) -> PagedCache:
        """Hold ``num_tokens`` tokens of ``num_heads`` heads.

        Raises:
            OutOfPagesError: The pool is too small.
        """
        table = pool.take(-(-num_tokens // page_tokens))
        return cls(pool, page_tokens, table, np.ones((num_heads, num_tokens), dtype=np.bool_))

    @property
    def num_pages(self) -> int:
        """Pages this request owns."""
        return int(np.count_nonzero(self.table >= 0))

    def evict(self, kept: Bools) -> int:
        """Drop every entry that is not in ``kept`` (``[H, N]`` or ``[1, N]`` for one set shared by all heads).

        Returns:
            Pages that went back to the pool.
        """
        self.live &= kept
        return self._give_back(~self._in_use())

    def _in_use(self) -> Bools:
        """Pages in which some head still keeps some token."""
        any_head: Bools = np.logical_or.reduce(self.live, axis=0)
        padded = np.zeros(len(self.table) * self.page_tokens, dtype=np.bool_)
        padded[: any_head.size] = any_head
        used: Bools = np.logical_or.reduce(padded.reshape(len(self.table), self.page_tokens), axis=1)
        return used

    def _give_back(self, empty: Bools) -> int:
        slots = np.flatnonzero(empty & (self.table >= 0))
        freed = self.pool.drop(self.table[slots])
        self.table[slots] = -1
        return freed

    def copies(self, *, keep_order: bool) -> int:
        """Entries that compaction would move: see `compact`."""
        counts = self.live.sum(axis=1)
        if keep_order:
            first_hole = np.where(self.live.all(axis=1), counts, np.argmin(self.live, axis=1))
            return int((counts - first_hole).sum())
        beyond = np.arange(self.live.shape[1])[None, :] >= counts[:, None]
        return int(np.count_nonzero(self.live & beyond))

    def compact(self, *, keep_order: bool) -> tuple[int, int]:
        """Move the survivors of every head to the front and give the emptied pages back.

        Args:
            keep_order: Survivors stay in order, so everything behind the first hole moves. Else the last survivors move
                into the holes, so only survivors beyond the new end move.

        Returns:
            (entries moved, pages given back), an entry being one token of one head.
        """
        moved = self.copies(keep_order=keep_order)
        longest = int(self.live.sum(axis=1).max(initial=0))
        needed = -(-longest // self.page_tokens)
        missing = np.flatnonzero(self.table[:needed] < 0)
        if (
            missing.size
        ):  # a page among the first was given back before: the request takes one from its own tail
            spare = np.flatnonzero(self.table[needed:] >= 0)[: missing.size] + needed
            self.table[missing] = self.table[spare]
            self.table[spare] = -1
        counts = self.live.sum(axis=1)
        self.live = np.arange(self.live.shape[1])[None, :] < counts[:, None]
        empty = np.zeros(len(self.table), dtype=np.bool_)
        empty[needed:] = True
        return moved, self._give_back(empty)
