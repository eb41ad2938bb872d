"""One exchange whose answer is read line by line as it arrives, for measuring: no retry, no redirect, no pacing.

A measured request must not be repeated or wait its turn behind others, so it has its own connection and this way beside
`kb.http.Client`. The guard, the deadline of the whole exchange and the caps are the same: only the one address that the
user typed may be private, whatever the server does the exchange ends at its deadline, and no answer takes more memory
than one line.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

import kb
from kb.errors import WrongUse
from kb.http.answer import NoAnswer, status_of
from kb.http.body import TooLarge
from kb.http.failure import FAILURES, explain
from kb.http.guard import GuardedBackend, allowed_endpoints
from kb.http.pacing import SYSTEM_TIME, Time
from kb.http.transport import GuardedTransport
from kb.urls import without_secrets

OK = 200
MAX_LINE = 1 << 20
"""Bytes of one line; a longer one ends the exchange."""
MAX_BODY = 64 << 20
"""Bytes of one answer."""
ERROR_BODY = 2_000
"""Bytes of an error page that are shown."""


@dataclass(frozen=True)
class Lines:
    """An answer with status 200 whose lines are still coming."""

    headers: Mapping[str, str]
    """Names in lower case."""
    lines: Iterator[bytes]
    """Without their line ends, each as soon as it is whole; raises `NoAnswer`."""


class Endpoint:
    """One server at the address a person typed, which is permission to reach it; safe to share between threads.

    Args:
        url: ``http://host:port`` with or without a path.
        time: Clock of the deadlines.

    Raises:
        WrongUse: That is no http address.
    """

    def __init__(self, url: str, *, time: Time = SYSTEM_TIME) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            host, port, parts = "", 0, urlsplit("")
        if parts.scheme not in {"http", "https"} or not host:
            raise WrongUse(
                f"{url or '(empty)'}: not asked",
                cause="it is no http address of a server",
                remedy="give it as http://HOST:PORT",
            )
        self.url = url.rstrip("/")
        self._time = time
        self._allowed = allowed_endpoints([f"[{host}]:{port}" if ":" in host else f"{host}:{port}"])

    def get(self, path: str, *, within_s: float, headers: Mapping[str, str] | None = None) -> bytes:
        """Fetch a whole small answer.

        Raises:
            NoAnswer: There is none, or not within ``within_s``.
        """
        with self.open("GET", path, None, within_s=within_s, headers=headers) as answer:
            return b"\n".join(answer.lines)

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        path: str,
        value: Any,
        *,
        within_s: float,
        headers: Mapping[str, str] | None = None,
        most_bytes: int = MAX_BODY,
    ) -> Iterator[Lines]:
        """Send one request on a connection of its own and hand out the answer while it arrives.

        Args:
            method: GET or POST.
            path: Below the address of the server, with its leading slash.
            value: JSON document to send; None for none.
            within_s: Seconds from now to the last byte.
            headers: Further headers, such as a key.
            most_bytes: Longer answers are cut off.

        Raises:
            NoAnswer: Here and while lines are read: what went wrong, with the status of `kb.vocab.SOURCE_STATUS`.
        """
        url = f"{self.url}{path}"
        shown = without_secrets(url)
        body = None if value is None else json.dumps(value, ensure_ascii=False).encode()
        full = {"user-agent": f"kb/{kb.__version__}", "accept-encoding": "identity", **(headers or {})}
        if body is not None:
            full["content-type"] = "application/json"
        backend = GuardedBackend(self._allowed, self._time)
        with contextlib.closing(GuardedTransport(backend)) as transport:
            deadline = self._time.monotonic() + within_s
            with backend.until(deadline), _named(shown, within_s):
                timeout = httpx.Timeout(within_s)
                request = httpx.Request(
                    method, url, content=body, headers=full, extensions={"timeout": timeout.as_dict()}
                )
                with contextlib.closing(transport.handle_request(request)) as response:
                    _see_status(response, shown)
                    named = {name.lower(): text for name, text in response.headers.items()}
                    yield Lines(named, _lines(response.iter_raw(), most_bytes))


@contextlib.contextmanager
def _named(shown: str, within_s: float) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise explain(error, shown, within_s) from error


def _see_status(response: httpx.Response, shown: str) -> None:
    code = response.status_code
    if code == OK:
        return
    text = bytearray()
    with contextlib.suppress(*FAILURES):  # the status says what matters
        for piece in response.iter_raw():
            text += piece
            if len(text) > ERROR_BODY:
                break
    said = bytes(text[:ERROR_BODY])
    raise NoAnswer(status_of(code), shown, f"HTTP {code}", http=code, body=said)


def _lines(pieces: Iterator[bytes], most_bytes: int) -> Iterator[bytes]:
    """Cut pieces into lines; neither a line nor the whole grows beyond its bound."""
    rest = bytearray()
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > most_bytes:
            raise TooLarge(f"more than {most_bytes:,} bytes")
        searched = len(rest)
        rest += piece
        start = 0
        while (end := rest.find(b"\n", max(start, searched))) >= 0:
            yield bytes(rest[start:end]).rstrip(b"\r")
            start = end + 1
        del rest[:start]
        if len(rest) > MAX_LINE:
            raise TooLarge(f"a line of more than {MAX_LINE:,} bytes")
    if rest:
        yield bytes(rest)
