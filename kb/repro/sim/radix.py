"""RadixAttention's prefix cache: a radix tree over token ids in whole pages, and the pool its pages come from.

Source: arXiv:2312.07104 §3 and appendix A; today's behaviour of SGLang (whole leaves go, least recently used
first, ties impossible, a page-aligned match).

Keys are `bytes` of fixed-width token ids (`to_key`): comparing a run is one memcmp and no hash is trusted. Page
ids are int32 `bytes` for the same reason. What looks unusual below is there for speed:

* A split keeps the identity of the *lower* node, so a match stays a valid place to insert from.
* ``locks`` of a node counts its own locks plus its locked children, so a lock walks up only to the first
  ancestor that is locked already.
* A touch stamps the last node of the path only. Ancestors matter to eviction only once they are leaves, and an
  evicted child hands its stamp to its parent, which gives the same order as stamping the whole path.
* Leaves lie in one ordered dictionary, oldest first; a touch moves one entry. Leaves that come to light by an
  eviction or an unlock are older than its end: they wait in a heap beside it. Eviction costs the same with fifty
  thousand leaves as with five.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

PAGE_ID_BYTES = 4
SWEEP_AT = 1_024
"""Entries beside the order of leaves from which those that went stale are swept out."""


def to_key(tokens: Iterable[int], token_bytes: int = 4) -> bytes:
    """Token ids as the fixed-width bytes that the caches compare.

    Args:
        tokens: Ids, each in 0..2**31-1 (0..2**63-1 with 8 bytes).
        token_bytes: Width of one id: 4 or 8.

    Raises:
        OverflowError: An id does not fit.
    """
    return array("i" if token_bytes == PAGE_ID_BYTES else "q", tokens).tobytes()


def page_ids(pages: bytes) -> array[int]:
    """Page ids as numbers."""
    out = array("i")
    out.frombytes(pages)
    return out


class PagePool:
    """Pages by number, handed out from a stack; constant time per page whatever the size of the pool.

    Args:
        num_pages: Pages in the pool, numbered from 0.
    """

    __slots__ = ("_free", "num_pages")

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._free = array("i", range(num_pages - 1, -1, -1))

    @property
    def free_pages(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def alloc(self, count: int) -> bytes | None:
        """Take ``count`` pages; None, and nothing taken, if there are not that many."""
        left = len(self._free) - count
        if left < 0:
            return None
        out = self._free[left:].tobytes()
        del self._free[left:]
        return out

    def free(self, pages: bytes) -> None:
        """Give pages back. Giving one back twice is the caller's mistake and is found by `check`."""
        self._free.frombytes(pages)

    def check(self, held: Iterable[int]) -> None:
        """Verify that free and held pages are the pool, each page once.

        Raises:
            ValueError: A page is lost, or held or free twice.
        """
        everything = sorted([*self._free, *held])
        if everything != list(range(self.num_pages)):
            raise ValueError(
                f"{len(everything)} pages accounted for, {self.num_pages} in the pool, or one twice"
            )


class Node:
    """One edge of the tree: a run of whole pages."""

    __slots__ = ("children", "key", "locks", "pages", "parent", "time")

    def __init__(self, key: bytes, pages: bytes, parent: Node | None, time: int) -> None:
        self.key = key
        self.pages = pages
        self.parent = parent
        self.children: dict[bytes, Node] | None = None  # by first page; None for a leaf
        self.locks = 0
        self.time = time


Match = tuple[Node, bytes]
"""Where a match ends, and the page ids (int32 bytes) of all that matched."""


class RadixCache:
    """Prefix cache of one worker. Sizes are pages unless they say tokens.

    Args:
        page_tokens: Tokens per page.
        num_pages: Pages in the pool that cache and running requests share.
        token_bytes: Width of a token id in keys, 4 or 8.
    """

    def __init__(self, page_tokens: int, num_pages: int, token_bytes: int = 4) -> None:
        self.page_tokens = page_tokens
        self.pool = PagePool(num_pages)
        self.evictable = 0
        """Cached pages that no request holds."""
        self.protected = 0
        """Cached pages on the path of a locked match."""
        self._token_bytes = token_bytes
        self._page_bytes = page_tokens * token_bytes
        self._clock = 0
        self._exposures = 0
        self._sweep_at = SWEEP_AT
        self._roots: dict[str, Node] = {}
        self._leaves: OrderedDict[Node, None] = OrderedDict()
        self._exposed: list[tuple[int, int, Node]] = []
        self._root = self._root_of("")

    def _root_of(self, namespace: str) -> Node:
        root = self._roots.get(namespace)
        if root is None:
            root = self._roots[namespace] = Node(b"", b"", None, 0)
            root.locks = 1  # never evicted
        return root

    def match(self, key: bytes, namespace: str = "") -> Match:
        """Find the longest cached prefix in whole pages and mark it as used now.

        A match that ends inside a run splits it; sizes and the matches of all other keys stay the same.

        Args:
            key: From `to_key`; a last part shorter than a page is ignored.
            namespace: Adapter, salt, …: equal tokens under different names share nothing.
        """
        runs: list[bytes] = []
        root = self._root_of(namespace) if namespace else self._root
        node, _ = self._walk(root, key, runs)
        self._clock += 1
        if runs:
            self._touch(node)
        return node, b"".join(runs)

    def _touch(self, node: Node) -> None:
        node.time = self._clock
        if node.children is None and not node.locks:
            self._leaves[node] = None
            self._leaves.move_to_end(node)

    def match_prompt(self, key: bytes, namespace: str = "") -> Match:
        """Match all but the last token of a prompt: one token must be computed to know what follows."""
        return self.match(key[: -self._token_bytes], namespace)

    def tokens_of(self, match: Match) -> int:
        """Tokens that a match covers."""
        return len(match[1]) // PAGE_ID_BYTES * self.page_tokens

    def peek(self, key: bytes, namespace: str = "") -> int:
        """Tokens that `match` would find, with no effect on order, splits or accounts."""
        node, at, size = self._root_of(namespace), 0, self._page_bytes
        while node.children is not None:
            child = node.children.get(key[at : at + size])
            if child is None:
                break
            if not key.startswith(child.key, at):
                at += self._common(child.key, key, at)
                break
            node, at = child, at + len(child.key)
        return at // self._token_bytes

    def _common(self, run: bytes, key: bytes, at: int) -> int:
        """Bytes, in whole pages, that ``run`` and ``key`` from ``at`` on have in common; the first page is known."""
        size = self._page_bytes
        low, high = 1, min(len(run), len(key) - at) // size  # pages known equal, pages that may be
        while low < high:
            middle = (low + high + 1) // 2
            if key.startswith(run[: middle * size], at):
                low = middle
            else:
                high = middle - 1
        return low * size

    def _walk(self, node: Node, key: bytes, runs: list[bytes]) -> tuple[Node, int]:
        """Follow ``key`` below ``node``, splitting where it leaves a run; collect the pages.

        Returns:
            The last node reached and the bytes of ``key`` that matched.
        """
        size, at, children = self._page_bytes, 0, node.children
        while children is not None:
            child = children.get(key[at : at + size])
            if child is None:
                break
            run = child.key
            if not key.startswith(run, at):
                common = self._common(run, key, at)
                node = self._split(child, common)
                runs.append(node.pages)
                return node, at + common
            runs.append(child.pages)
            at += len(run)
            node, children = child, child.children
        return node, at

    def _split(self, lower: Node, common: int) -> Node:
        """Put a new node for the first ``common`` bytes above ``lower``; return it."""
        parent, cut = lower.parent, common // self._page_bytes * PAGE_ID_BYTES
        if parent is None or parent.children is None:
            raise ValueError("a node without a parent cannot be split")
        upper = Node(lower.key[:common], lower.pages[:cut], parent, lower.time)
        parent.children[lower.key[: self._page_bytes]] = upper
        lower.key, lower.pages, lower.parent = lower.key[common:], lower.pages[cut:], upper
        upper.children = {lower.key[: self._page_bytes]: lower}
        upper.locks = 1 if lower.locks else 0
        return upper

    # Insertion

    def insert(self, match: Match, rest: bytes, fresh: bytes) -> int:
        """Add what follows a match; return the tokens of ``rest`` that were cached already.

        Pages of ``fresh`` that the tree does not take go back to the pool: duplicates of what another request
        inserted since the match, and what lies past the last whole page.

        Args:
            match: From `match` of the tokens before ``rest``, still cached (lock it while the request runs).
            rest: Key of the tokens after the match, the rest of the prompt and the output.
            fresh: Page ids that hold ``rest``, one per page begun.

        Raises:
            ValueError: The matched pages were evicted meanwhile, or ``fresh`` is too short.
        """
        node, size = match[0], self._page_bytes
        limit = len(rest) // size * size
        if node.parent is None and node.key:
            raise ValueError("the match was evicted before the insert; lock it while its request runs")
        if len(fresh) // PAGE_ID_BYTES < limit // size:
            raise ValueError(f"{len(fresh) // PAGE_ID_BYTES} fresh pages, {limit // size} needed")
        node, at = self._walk(node, rest, [])
        self._clock += 1
        begin, end = at // size * PAGE_ID_BYTES, limit // size * PAGE_ID_BYTES
        if begin:
            self.pool.free(fresh[:begin])  # duplicates come first
        if at < limit:
            self._add_leaf(node, rest[at:limit], fresh[begin:end])
        elif node.key:
            self._touch(node)
        if end < len(fresh):
            self.pool.free(fresh[end:])
        return at // self._token_bytes

    def _add_leaf(self, parent: Node, key: bytes, pages: bytes) -> None:
        leaf = Node(key, pages, parent, self._clock)
        if parent.children is None:
            parent.children = {}
            self._leaves.pop(parent, None)
        parent.children[key[: self._page_bytes]] = leaf
        self._leaves[leaf] = None
        self.evictable += len(pages) // PAGE_ID_BYTES

    # Locks

    def lock(self, match: Match) -> None:
        """Protect all that matched from eviction until `unlock`; locks nest."""
        node: Node | None = match[0]
        while node is not None:
            node.locks += 1
            if node.locks > 1:
                return
            pages = len(node.pages) // PAGE_ID_BYTES
            self.evictable -= pages
            self.protected += pages
            if node.children is None:
                self._leaves.pop(node, None)
            node = node.parent

    def unlock(self, match: Match) -> None:
        """Take one lock back.

        Raises:
            ValueError: The match is not locked.
        """
        node: Node | None = match[0]
        if node is not None and node.locks < (1 if node.key else 2):  # a root is always locked once
            raise ValueError("unlock without a lock")
        while node is not None:
            node.locks -= 1
            if node.locks:
                return
            pages = len(node.pages) // PAGE_ID_BYTES
            self.evictable += pages
            self.protected -= pages
            if node.children is None:
                self._expose(node)
            node = node.parent

    # Eviction

    def evict(self, count: int) -> int:
        """Free unlocked leaves, least recently used first, until ``count`` pages are free or none is left.

        Returns:
            Pages freed: at least ``count`` if that many were evictable, and less than one leaf more.
        """
        freed = 0
        while freed < count:
            node = self._oldest()
            if node is None:
                break
            freed += self._remove(node)
        return freed

    def _expose(self, node: Node) -> None:
        """Put a leaf that came to light in its place in the order."""
        newest = next(reversed(self._leaves), None)
        if newest is None or newest.time <= node.time:
            self._leaves[node] = None
            return
        self._exposures += 1
        heappush(self._exposed, (node.time, self._exposures, node))
        if (
            len(self._exposed) > self._sweep_at
        ):  # entries whose leaf was touched since: most, if nothing is evicted
            self._exposed = [entry for entry in self._exposed if self._is_waiting(entry)]
            heapify(self._exposed)
            self._sweep_at = max(SWEEP_AT, 2 * len(self._exposed))

    def _is_waiting(self, entry: tuple[int, int, Node]) -> bool:
        """Whether an entry of the heap still is where its leaf stands in the order."""
        time, _, node = entry
        alive = node.time == time and node.children is None and not node.locks and node.parent is not None
        return alive and node not in self._leaves

    def _oldest(self) -> Node | None:
        """Take the least recently used unlocked leaf out of the order."""
        leaves, exposed = self._leaves, self._exposed
        first = next(iter(leaves), None)
        while exposed:
            if self._is_waiting(exposed[0]):
                if first is not None and first.time < exposed[0][0]:
                    break
                return heappop(exposed)[2]
            heappop(exposed)
        if first is not None:
            del leaves[first]
        return first

    def _remove(self, node: Node) -> int:
        """Free a leaf that is out of the order already; return its pages."""
        parent = node.parent
        if parent is None or parent.children is None:
            raise ValueError("only a leaf of the tree can be removed")
        pages = len(node.pages) // PAGE_ID_BYTES
        self.pool.free(node.pages)
        self.evictable -= pages
        del parent.children[node.key[: self._page_bytes]]
        node.parent = None
        parent.time = max(parent.time, node.time)
        if not parent.children:
            parent.children = None
            if not parent.locks:
                self._expose(parent)
        return pages

    def nodes(self) -> Iterator[Node]:
        """All nodes that hold pages, parents before children."""
        todo = list(self._roots.values())
        while todo:
            node = todo.pop()
            if node.key:
                yield node
            todo.extend((node.children or {}).values())

    def reset(self) -> bool:
        """Empty the cache; False, and nothing changed, while a request holds a lock."""
        if self.protected or any(root.locks > 1 for root in self._roots.values()):
            return False
        self.evict(self.evictable)
        return True
