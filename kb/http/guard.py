"""No way to private addresses: resolve, check, connect to the very address that was checked.

A name is resolved once per connection and the connection goes to that address, so an answer that changes between check
and connect changes nothing. Exactly the endpoints of ``KB_ALLOW_PRIVATE`` or the user's file are exempt. The stream
also enforces the deadline of the whole request, which neither httpx nor httpcore knows.
"""

from __future__ import annotations

import contextlib
import contextvars
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpcore

from kb.http.pacing import Time

Resolver = Callable[[str, int], list[str]]
Deadline = contextvars.ContextVar[float]
NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Blocked(Exception):
    """The target is a private address."""


def is_private(address: str) -> bool:
    """Whether an address is not on the public internet; forms that embed an IPv4 address are looked into."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_private(str(inner))
    return not ip.is_global or ip.is_multicast or ip.is_reserved


def literal_address(host: str) -> str | None:
    """The address a host spells, ``127.1`` and ``0x7f000001`` included; None for a name."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    with contextlib.suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host)) if host[:1].isdigit() else None
    return None


def resolve(host: str, port: int) -> list[str]:
    """Addresses of a name, in the system's order.

    Raises:
        OSError: The name has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def allowed_endpoints(listed: Iterable[str]) -> frozenset[tuple[str, int]]:
    """``host:port`` texts as pairs; one without a port allows 80 and 443."""
    pairs: set[tuple[str, int]] = set()
    for text in listed:
        host, _, port = text.strip().rpartition(":")
        if host and port.isdigit() and (":" not in host or host.startswith("[")):
            pairs.add((host.strip("[]").lower(), int(port)))
        else:
            pairs.update((text.strip().strip("[]").lower(), p) for p in (80, 443))
    return frozenset(pairs)


class GuardedStream(httpcore.NetworkStream):
    """A stream that gives up at the request's deadline."""

    def __init__(self, inner: httpcore.NetworkStream, left: Callable[[], float]) -> None:
        self._inner = inner
        self._left = left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _bounded(timeout, self._left, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _bounded(timeout, self._left, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _bounded(timeout, self._left, httpcore.ConnectTimeout)
        return GuardedStream(self._inner.start_tls(ssl_context, server_hostname, limit), self._left)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _bounded(timeout: float | None, left: Callable[[], float], kind: type[Exception]) -> float:
    rest = left()
    if rest <= 0:
        raise kind("the deadline of the request passed")
    return rest if timeout is None else min(timeout, rest)


class GuardedBackend(httpcore.NetworkBackend):
    """Connects only to addresses it checked.

    Args:
        allowed: Endpoints ``(host, port)`` that may be private.
        time: Clock of the deadlines.
        resolver: Looks names up; tests pass one that changes its mind.
    """

    def __init__(self, allowed: frozenset[tuple[str, int]], time: Time, resolver: Resolver = resolve) -> None:
        self._inner = httpcore.SyncBackend()
        self._allowed = allowed
        self._time = time
        self._resolver = resolver
        self._deadline: Deadline = contextvars.ContextVar("deadline", default=float("inf"))

    @contextlib.contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Bound everything this thread does inside by a moment of the monotonic clock."""
        token = self._deadline.set(deadline)
        try:
            yield
        finally:
            self._deadline.reset(token)

    def left(self) -> float:
        """Seconds until the deadline."""
        return self._deadline.get() - self._time.monotonic()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        limit = _bounded(timeout, self.left, httpcore.ConnectTimeout)
        problem: Exception | None = None
        for address in self._checked(host, port, limit):
            try:
                stream = self._inner.connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                return GuardedStream(stream, self.left)
        raise problem or httpcore.ConnectError(f"{host} has no address")

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002  httpcore's signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        raise httpcore.ConnectError(f"unix sockets are not allowed: {path}")

    def _checked(self, host: str, port: int, limit: float) -> list[str]:
        addresses = self._lookup(host, port, limit)
        if (host.strip("[]").lower(), port) in self._allowed:
            return addresses
        if private := [address for address in addresses if is_private(address)]:
            raise Blocked(f"{host}:{port} leads to {private[0]}, which is not on the public internet")
        return addresses

    def _lookup(self, host: str, port: int, limit: float) -> list[str]:
        if (literal := literal_address(host)) is not None:
            return [literal]
        # the system's resolver has no timeout of its own; a thread that hangs is left behind
        found: list[str] = []
        errors: list[OSError] = []

        def look() -> None:
            try:
                found.extend(self._resolver(host, port))
            except (OSError, UnicodeError) as error:
                errors.append(OSError(str(error)))

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(limit)
        if thread.is_alive():
            raise httpcore.ConnectTimeout(f"{host}: no answer from the name server within {limit:.0f} s")
        if errors or not found:
            raise httpcore.ConnectError(f"{host}: {errors[0] if errors else 'no address'}")
        return found
