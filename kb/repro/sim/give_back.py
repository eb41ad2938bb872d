"""Returning pages to a pool one by one, as a serving engine's host code does.

Source: the block pool of vLLM (a block object with a reference count, and a doubly linked list of free blocks), read in
its published source. Only what returning a page costs is kept: no hashes, no events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Block:
    """One page as the host sees it."""

    number: int
    owners: int = 1
    before: Block | None = None
    after: Block | None = None


class LinkedPool:
    """Pages of a pool, all taken, and the list of free ones.

    Args:
        num_pages: Pages in the pool.
    """

    def __init__(self, num_pages: int) -> None:
        self.blocks = [Block(number) for number in range(num_pages)]
        self.last = Block(-1)
        self.num_free = 0

    def give_back(self, numbers: Sequence[int]) -> int:
        """Drop one owner of each page, one by one; pages without owners join the free list.

        Returns:
            Pages in the free list afterwards.
        """
        for number in numbers:
            block = self.blocks[number]
            block.owners -= 1
            if block.owners == 0:
                last = self.last
                last.after, block.before = block, last
                self.last = block
                self.num_free += 1
        return self.num_free
