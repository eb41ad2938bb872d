"""httpx on a guarded connection pool: the public httpcore API with our network backend, errors mapped to httpx's."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator

import httpcore
import httpx

from kb.http.guard import GuardedBackend

ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.PoolTimeout, httpx.PoolTimeout),
    (httpcore.TimeoutException, httpx.ReadTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
    (httpcore.NetworkError, httpx.NetworkError),
    (httpcore.ProxyError, httpx.ProxyError),
    (httpcore.UnsupportedProtocol, httpx.UnsupportedProtocol),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
    (httpcore.RemoteProtocolError, httpx.RemoteProtocolError),
    (httpcore.ProtocolError, httpx.ProtocolError),
)


@contextlib.contextmanager
def mapped() -> Iterator[None]:
    """Turn httpcore's errors into httpx's."""
    try:
        yield
    except tuple(kind for kind, _ in ERRORS) as error:
        other = next(other for kind, other in ERRORS if isinstance(error, kind))
        raise other(str(error)) from error


class _Stream(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with mapped():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class GuardedTransport(httpx.BaseTransport):
    """Sends requests over a pool whose connections pass the guard.

    Args:
        backend: The guard.
        proxy: Address of a proxy; the guard then sees the proxy, so the caller checks literal addresses.
    """

    def __init__(self, backend: GuardedBackend, proxy: str = "") -> None:
        context: ssl.SSLContext | None = None  # made when the first https address is asked: it takes 20 ms
        if proxy:
            self._pool: httpcore.ConnectionPool = httpcore.HTTPProxy(
                proxy_url=proxy, ssl_context=context, network_backend=backend
            )
        else:
            self._pool = httpcore.ConnectionPool(
                ssl_context=context,
                network_backend=backend,
                max_keepalive_connections=10,
                keepalive_expiry=5.0,
            )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)  # noqa: S101  a synchronous client sends it
        raw = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with mapped():
            response = self._pool.handle_request(raw)
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Stream(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()
