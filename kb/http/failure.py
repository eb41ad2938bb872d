"""What a failed exchange is called: one table from the transport's exceptions to `NoAnswer`."""

from __future__ import annotations

import httpx

from kb.http.answer import NoAnswer
from kb.http.body import BadEncoding, TooLarge
from kb.http.guard import Blocked

FAILURES = (Blocked, TooLarge, BadEncoding, httpx.TransportError, httpx.InvalidURL, UnicodeError)
"""Everything an exchange may end with, short of an answer."""


def explain(error: Exception, shown: str, read_s: float) -> NoAnswer:
    """Name the kind of nothing.

    Args:
        error: One of `FAILURES`.
        shown: The address without secrets.
        read_s: Longest wait for bytes that was granted.
    """
    if isinstance(error, Blocked | TooLarge):
        kind, said = ("too-large" if isinstance(error, TooLarge) else "blocked-private-address"), f"{error}"
    elif isinstance(error, BadEncoding):
        kind, said = ("unsupported" if "not asked for" in f"{error}" else "truncated"), f"{error}"
    elif isinstance(error, httpx.TimeoutException):
        kind, said = "too-slow", f"{error}" or f"no bytes for {read_s:.0f} s"
    elif isinstance(error, httpx.RemoteProtocolError):
        kind = "truncated" if "without sending complete" in f"{error}" else "unreachable"
        said = f"the answer ended early: {error}"
    elif isinstance(error, httpx.InvalidURL | httpx.LocalProtocolError | UnicodeError):
        kind, said = "bad-request", f"not an address: {error}"
    else:
        kind, said = "unreachable", f"{type(error).__name__}: {error}"
    return NoAnswer(kind, shown, said)
