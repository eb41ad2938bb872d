"""The replay server: plain HTTP on loopback, with validators, so that a second run is answered 304."""

from __future__ import annotations

import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from kb.ingest.replay.content import answer


class Handler(BaseHTTPRequestHandler):
    """Answers ``/host/path?query`` for every host it knows."""

    protocol_version = "HTTP/1.1"
    server_version = "kb-replay"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer one request."""
        parts = urlsplit(self.path)
        found = answer(parts.path.lstrip("/"), parts.query)
        if found is None:
            self._send(404, "text/plain; charset=utf-8", b"not replayed\n", "")
            return
        body = found[1].encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.headers.get("If-None-Match") == etag:
            self._send(304, found[0], b"", etag)
        else:
            self._send(200, found[0], body, etag)

    def _send(self, code: int, kind: str, body: bytes, etag: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  http.server's signature
        """Say nothing: stdout is the address, stderr is for errors."""


class Server(ThreadingHTTPServer):
    """Does not wait for clients that stay, and says nothing of those that go away."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report what is not the client's doing."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(port: int) -> Server:
    """Bind the server to loopback; port 0 takes a free one."""
    return Server(("127.0.0.1", port), Handler)
