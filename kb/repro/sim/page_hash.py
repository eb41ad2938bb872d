"""Prefix caching by a hash per page, as vLLM does it: a dictionary of full pages, no tree.

Source: vLLM's design note on automatic prefix caching. A page's hash covers its tokens, the hash of the page
before it and, on the first page, what else decides its contents (adapter, salt, image). Only full pages have a
hash. A page that no request holds keeps its hash and waits in a queue, least recently used first; taking it for
other contents forgets the hash. A request gives its pages back deepest first, so tails go before prefixes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

NOBODY = b""


def page_hashes(key: bytes, page_bytes: int, extra: bytes = b"") -> list[bytes]:
    """Chained hash of each full page of a key.

    Args:
        key: Token ids as fixed-width bytes (`kb.repro.sim.radix.to_key`).
        page_bytes: Bytes of one page of tokens.
        extra: What else decides the contents: adapter, salt, image id and offset.
    """
    out: list[bytes] = []
    parent = hashlib.sha256(b"first page" + extra).digest()
    for at in range(0, len(key) - page_bytes + 1, page_bytes):
        parent = hashlib.sha256(parent + key[at : at + page_bytes]).digest()
        out.append(parent)
    return out


@dataclass
class Running:
    """A request that runs: its tokens so far, its pages, how many of them came from the cache."""

    key: bytes
    extra: bytes
    pages: list[int | None] = field(default_factory=list)
    """Page of each page slot; None where a sliding window let it go."""
    hit_tokens: int = 0
    hashed: int = 0
    """Leading pages whose hash is registered or was found."""
    parent: bytes = NOBODY


class PageHashCache:
    """Pages of one worker with their hashes.

    Args:
        page_tokens: Tokens per page.
        num_pages: Pages in the pool.
        token_bytes: Width of a token id in keys.
    """

    def __init__(self, page_tokens: int, num_pages: int, token_bytes: int = 4) -> None:
        self.page_tokens = page_tokens
        self.num_pages = num_pages
        self._token_bytes = token_bytes
        self._page_bytes = page_tokens * token_bytes
        self._holders = [0] * num_pages
        self._hash_of: list[bytes] = [NOBODY] * num_pages
        self._pages_of: dict[bytes, dict[int, None]] = {}  # copies of equal contents, oldest first
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_pages))

    @property
    def free_pages(self) -> int:
        """Pages that no request holds, cached ones included."""
        return len(self._free)

    @property
    def cached_pages(self) -> int:
        """Pages that have a hash, copies included."""
        return sum(map(len, self._pages_of.values()))

    def lookup(self, key: bytes, extra: bytes = b"") -> int:
        """Tokens of a prompt that the cache holds; at least the last token is left to compute. No effect."""
        return len(self._found(page_hashes(key, self._page_bytes, extra), len(key))) * self.page_tokens

    def _found(self, hashes: Sequence[bytes], key_bytes: int) -> list[int]:
        """Pages of the longest known chain that leaves one token over."""
        most = max(0, key_bytes // self._token_bytes - 1) // self.page_tokens
        pages: list[int] = []
        for name in hashes[:most]:
            copies = self._pages_of.get(name)
            if copies is None:
                break
            pages.append(next(iter(copies)))
        return pages

    def admit(self, key: bytes, extra: bytes = b"", *, read_cache: bool = True) -> Running | None:
        """Start a request: take what the cache has and fresh pages for the rest of its prompt.

        Args:
            key: The prompt.
            extra: See `page_hashes`.
            read_cache: False for a request that needs every token computed (prompt log-probabilities); its pages
                still fill the cache.

        Returns:
            The running request, or None, and nothing changed, if there are not enough free pages.
        """
        hashes = page_hashes(key, self._page_bytes, extra)
        found = self._found(hashes, len(key)) if read_cache else []
        waiting = sum(1 for page in found if not self._holders[page])
        need = -(-len(key) // self._page_bytes) - len(found)
        if need > len(self._free) - waiting:
            return None
        for page in found:
            self._hold(page)
        fresh = [self._take() for _ in range(need)]
        request = Running(key, extra, [*found, *fresh], len(found) * self.page_tokens, len(found))
        request.parent = hashes[len(found) - 1] if found else NOBODY
        self._register(request)
        return request

    def extend(self, request: Running, tokens: bytes, *, lookahead: int = 0) -> bool:
        """Append tokens to a running request; False, and nothing changed, if a page is missing.

        Args:
            request: From `admit`.
            tokens: Accepted tokens, as bytes. Drafted tokens that were refused are never passed here, so they
                are never hashed; their slots are simply written again.
            lookahead: Tokens for which room is held beyond these, for drafts.
        """
        size = len(request.key) + len(tokens) + lookahead * self._token_bytes
        need = -(-size // self._page_bytes) - len(request.pages)
        if need > len(self._free):
            return False
        request.pages.extend(self._take() for _ in range(need))
        request.key += tokens
        self._register(request)
        return True

    def drop_before(self, request: Running, token: int) -> int:
        """Give back the pages that lie wholly before a token, as a sliding window does; return how many."""
        gone = 0
        for slot in range(token // self.page_tokens):
            page = request.pages[slot]
            if page is not None:
                self._release(page)
                request.pages[slot] = None
                gone += 1
        return gone

    def release(self, request: Running) -> None:
        """End or preempt a request: its pages become free, deepest first, and keep their hashes."""
        for page in reversed(request.pages):
            if page is not None:
                self._release(page)
        request.pages.clear()

    def reset(self) -> bool:
        """Forget all hashes; False, and nothing changed, while a request holds a page."""
        if len(self._free) < self.num_pages:
            return False
        self._pages_of.clear()
        self._hash_of = [NOBODY] * self.num_pages
        self._free = OrderedDict.fromkeys(range(self.num_pages))
        return True

    def _hold(self, page: int) -> None:
        if not self._holders[page]:
            del self._free[page]
        self._holders[page] += 1

    def _take(self) -> int:
        """The least recently used free page, its old contents forgotten."""
        page, _ = self._free.popitem(last=False)
        name = self._hash_of[page]
        if name:
            self._hash_of[page] = NOBODY
            copies = self._pages_of[name]
            del copies[page]
            if not copies:
                del self._pages_of[name]
        self._holders[page] = 1
        return page

    def _release(self, page: int) -> None:
        if not self._holders[page]:
            raise ValueError(f"page {page} is free already")
        self._holders[page] -= 1
        if not self._holders[page]:
            self._free[page] = None
            if not self._hash_of[page]:
                self._free.move_to_end(page, last=False)  # nothing to lose: used first

    def _register(self, request: Running) -> None:
        """Name the pages that are full by now; two pages of equal contents keep the same name."""
        start = request.hashed * self._page_bytes
        parent = request.parent or hashlib.sha256(b"first page" + request.extra).digest()
        for at in range(start, len(request.key) - self._page_bytes + 1, self._page_bytes):
            parent = hashlib.sha256(parent + request.key[at : at + self._page_bytes]).digest()
            page = request.pages[request.hashed]
            if page is not None:
                self._pages_of.setdefault(parent, {})[page] = None
                self._hash_of[page] = parent
            request.hashed += 1
        request.parent = parent if request.hashed else NOBODY
