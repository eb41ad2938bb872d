"""Decodes a body within a bound: gzip and deflate, whatever the headers claim, never more bytes than allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

GZIP = b"\x1f\x8b\x08"
ACCEPT = "gzip, deflate"
"""Only what can be decoded under a cap with the standard library."""
STEP = 1 << 18
GZIP_BITS = 31
"""Window size for zlib that also means a gzip header."""


class TooLarge(Exception):
    """More decoded bytes than the limit."""


class BadEncoding(Exception):
    """An encoding that was not asked for, or compressed bytes that are damaged."""


def read_body(chunks: Iterable[bytes], encoding: str, limit: int) -> tuple[bytes, int]:
    """Return the decoded body and its size on the wire.

    Compressed bytes are recognised by their first bytes too: servers send gzip without saying so, and plain text while
    saying gzip.

    Raises:
        TooLarge: The body decodes to more than ``limit`` bytes; memory stays within the limit and one step.
        BadEncoding: The encoding is not gzip, deflate or identity, or the stream is damaged or cut short.
    """
    out = bytearray()
    wire = 0
    decoder: _Inflate | None = None
    first = True
    head = b""
    for chunk in chunks:
        wire += len(chunk)
        if first:
            head += chunk
            if len(head) < len(GZIP):
                continue
            decoder, chunk, first = _decoder(head, encoding), head, False  # noqa: PLW2901
        _take(out, decoder, chunk, limit)
    if first and head:
        decoder = _decoder(head, encoding)
        _take(out, decoder, head, limit)
    if decoder is not None and not decoder.ended:
        raise BadEncoding("the compressed body is cut short")
    return bytes(out), wire


def _take(out: bytearray, decoder: _Inflate | None, chunk: bytes, limit: int) -> None:
    pieces = iter((chunk,)) if decoder is None else decoder.feed(chunk)
    for piece in pieces:
        out += piece
        if len(out) > limit:
            raise TooLarge(f"more than {limit:,} bytes")


def _decoder(head: bytes, encoding: str) -> _Inflate | None:
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    unknown = [
        name for name in names if name not in {"gzip", "x-gzip", "deflate", "identity", "none", "utf-8"}
    ]
    if unknown:
        raise BadEncoding(f"content encoding {unknown[0]!r} was not asked for")
    if head.startswith(GZIP):
        return _Inflate(GZIP_BITS)
    if "deflate" in names:
        # RFC 9110 means zlib; some servers send raw deflate
        is_zlib = len(head) > 1 and head[0] & 0x0F == 8 and (head[0] * 256 + head[1]) % 31 == 0  # noqa: PLR2004
        return _Inflate(15 if is_zlib else -15)
    return None


class _Inflate:
    """A zlib stream read in bounded steps; gzip files of several members are followed."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._inner = zlib.decompressobj(bits)
        self.ended = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what the chunk decodes to, at most `STEP` bytes at a time."""
        data = chunk
        if self.ended and self._bits == GZIP_BITS and data.startswith(GZIP[:2]):
            self._restart()
        while not self.ended:
            try:
                piece = self._inner.decompress(data, STEP)
            except zlib.error as error:
                raise BadEncoding(f"the compressed body is damaged: {error}") from error
            data = self._inner.unconsumed_tail
            if piece:
                yield piece
            if self._inner.eof:
                data = self._inner.unused_data
                self.ended = True
                if self._bits == GZIP_BITS and data.startswith(GZIP[:2]):
                    self._restart()
            elif not data and len(piece) < STEP:  # a full step may leave output inside zlib
                return

    def _restart(self) -> None:
        self._inner = zlib.decompressobj(self._bits)
        self.ended = False
