"""`Client`: one request under all the rules, redirects and retries included."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

import kb
from kb.config import UserSettings
from kb.http.answer import (
    RETRIED,
    TAKEN,
    UNTAKEN,
    Answer,
    Limits,
    NoAnswer,
    Tally,
    Validators,
    retry_after,
    status_of,
)
from kb.http.body import ACCEPT, read_body
from kb.http.failure import FAILURES, explain
from kb.http.guard import (
    GuardedBackend,
    Resolver,
    allowed_endpoints,
    is_private,
    literal_address,
    resolve,
)
from kb.http.pacing import (
    ARXIV,
    ARXIV_S,
    DEFAULT_S,
    SYSTEM_TIME,
    Pacer,
    Time,
    group_of,
    pace_override,
    request_override,
)
from kb.http.transport import GuardedTransport
from kb.urls import without_secrets

PERMANENT = frozenset({301, 308})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
ERROR_BODY = 64 << 10
"""Bytes of an error page that are kept for the source to read."""


class Client:
    """The only way out. Safe to share between threads.

    Args:
        user: Contact, proxy and permitted private endpoints.
        time: Clock of deadlines, pacing and back-off.
        limits: Bounds of every request.
        resolver: Looks names up.
        pacer: Spaces requests across processes.
    """

    def __init__(
        self,
        user: UserSettings,
        *,
        time: Time = SYSTEM_TIME,
        limits: Limits | None = None,
        resolver: Resolver = resolve,
        pacer: Pacer | None = None,
    ) -> None:
        self.limits = limits or Limits(total_s=request_override() or Limits.total_s)
        self._user = user
        self._time = time
        self._pacer = pacer or Pacer(time, Pacer.default_folder())
        self._pace = pace_override()
        self._replay = user.replay.rstrip("/")
        self._allowed = allowed_endpoints(
            [*user.allow_private, *([urlsplit(self._replay).netloc] if self._replay else [])]
        )
        # the proxy comes from the user's own settings, which is permission to reach it
        hops = self._allowed | (
            allowed_endpoints([urlsplit(user.proxy).netloc.rpartition("@")[2]]) if user.proxy else set()
        )
        self._backend = GuardedBackend(frozenset(hops), time, resolver)
        # the transport itself: httpx.Client would keep cookies and look into redirects that are ours to judge
        self._transport = GuardedTransport(self._backend, user.proxy)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def agent(self) -> str:
        """User-Agent: who we are and whom to write to."""
        contact = self._user.contact or "no contact configured; set KB_CONTACT"
        return f"kb/{kb.__version__} (knowledge base on LLM inference; {contact})"

    def get(
        self,
        url: str,
        *,
        tally: Tally | None = None,
        validators: Validators | None = None,
        accept: str = "*/*",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Fetch an address.

        Args:
            url: http or https.
            tally: Counts requests and bytes, also those of failures.
            validators: Make the request conditional.
            accept: The Accept header.
            headers: Further headers, such as a key; never sent to another host on a redirect.

        Raises:
            NoAnswer: There is no complete answer with status 200 or 304; says which kind of nothing.
        """
        sent = {"accept": accept, **(validators.headers() if validators else {})}
        return self._tries("GET", url, None, sent, headers or {}, tally or Tally())

    def post_json(
        self, url: str, value: Any, *, tally: Tally | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a JSON document and return the answer; a POST is repeated only where the server says it was not taken.

        Raises:
            NoAnswer: As `get`.
        """
        body = json.dumps(value, ensure_ascii=False).encode()
        sent = {"accept": "application/json", "content-type": "application/json"}
        return self._tries("POST", url, body, sent, headers or {}, tally or Tally())

    def _tries(
        self,
        method: str,
        url: str,
        body: bytes | None,
        sent: dict[str, str],
        own: Mapping[str, str],
        tally: Tally,
    ) -> Answer:
        spent = 0.0
        for attempt in range(1, self.limits.tries + 1):
            before = self._time.monotonic()
            try:
                return self._follow(method, url, body, sent, own, tally, self.limits.total_s - spent)
            except _Again as again:
                spent += self._time.monotonic() - before
                wait = again.wait if again.wait is not None else 2.0**attempt * (1 + self._time.jitter())
                last = attempt == self.limits.tries or (method == "POST" and not again.untaken)
                # the time that a request may take is for all its tries together; only pauses do not count
                if last or wait > self.limits.wait_s or spent >= self.limits.total_s:
                    raise again.problem from again.problem.__cause__
                self._time.sleep(wait)
        raise AssertionError("the last try either answers or raises")

    def _follow(
        self,
        method: str,
        url: str,
        body: bytes | None,
        sent: dict[str, str],
        own: Mapping[str, str],
        tally: Tally,
        left: float,
    ) -> Answer:
        deadline = self._time.monotonic() + left
        here, permanent, hops = url, True, 0
        while True:
            self._check(here)
            same_host = urlsplit(here).netloc == urlsplit(url).netloc
            response = self._send(method, here, body, {**sent, **(own if same_host else {})}, deadline, tally)
            if not (response.status in REDIRECTS and response.headers.get("location")):
                moved = here if hops and permanent else ""
                return self._judge(method, here, response, moved)
            hops += 1
            permanent = permanent and response.status in PERMANENT
            if hops > self.limits.redirects:
                raise NoAnswer("unreachable", without_secrets(url), f"{hops} redirects, the last to {here}")
            here = urljoin(here, response.headers["location"])
            if response.status == 303 and method == "POST":  # noqa: PLR2004  RFC 9110: see other
                method, body = "GET", None

    def _check(self, url: str) -> None:
        shown = without_secrets(url)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise NoAnswer("bad-request", shown, f"not an address: {error}") from error
        if parts.scheme.lower() not in {"http", "https"}:
            raise NoAnswer("unsupported", shown, f"scheme {parts.scheme!r}: only http and https are fetched")
        if not host:
            raise NoAnswer("bad-request", shown, "the address has no host")
        endpoint = (host.lower(), port or (443 if parts.scheme.lower() == "https" else 80))
        literal = literal_address(host)
        is_local = (literal is not None and is_private(literal)) or host.rstrip(".").lower() == "localhost"
        if is_local and endpoint not in self._allowed:
            raise NoAnswer(
                "blocked-private-address", shown, f"{host} is not on the public internet",
                remedy=f"if you mean it: KB_ALLOW_PRIVATE={endpoint[0]}:{endpoint[1]}",
            )  # fmt: skip
        if self._user.offline and endpoint not in self._allowed and not self._replay:
            raise NoAnswer("unreachable", shown, "offline: KB_OFFLINE is set", remedy="unset KB_OFFLINE")
        group = group_of(host.lower())
        if not self._is_own(endpoint) and (left := self._pacer.denied_for(group)) > 0:
            raise NoAnswer(
                "refused", shown, f"{group} denied us; not asked again for {left / 60:.0f} minutes"
            )

    def _is_own(self, endpoint: tuple[str, int]) -> bool:
        """Whether an endpoint is the user's own, which is neither spared nor given up."""
        return endpoint in self._allowed or bool(self._replay)

    def _pace_of(self, url: str) -> tuple[str, float]:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        group = group_of(host)
        if self._pace is not None:
            return group, self._pace
        if self._is_own(_endpoint(url)):
            return group, 0.0
        return group, ARXIV_S if group == ARXIV else DEFAULT_S

    def _send(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: dict[str, str],
        deadline: float,
        tally: Tally,
    ) -> _Response:
        group, seconds = self._pace_of(url)
        full = {"user-agent": self.agent, "accept-encoding": ACCEPT, **headers}
        before = self._time.monotonic()
        with self._pacer.turn(group, seconds):
            # waiting for a turn is not the server's fault
            deadline += self._time.monotonic() - before
            tally.requests += 1
            with self._backend.until(deadline):
                return self._exchange(method, url, body, full, tally)

    def _address(self, url: str) -> str:
        """Where an address is really asked: at the replay server where there is one."""
        if not self._replay or url.startswith(f"{self._replay}/"):
            return url
        parts = urlsplit(url)
        return f"{self._replay}/{parts.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else "")

    def _exchange(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str], tally: Tally
    ) -> _Response:
        shown = without_secrets(url)
        limits = self.limits
        timeout = httpx.Timeout(limits.read_s, connect=limits.connect_s, pool=limits.total_s)
        try:
            request = httpx.Request(
                method,
                self._address(url),
                content=body,
                headers=headers,
                extensions={"timeout": timeout.as_dict()},
            )
            with contextlib.closing(self._transport.handle_request(request)) as response:
                is_error = response.status_code >= 400  # noqa: PLR2004  HTTP
                encoding = response.headers.get("content-encoding", "")
                data, wire = read_body(response.iter_raw(), encoding, limits.body_bytes)
                tally.bytes += wire
                plain = {name.lower(): value for name, value in response.headers.items()}
                return _Response(response.status_code, plain, data[:ERROR_BODY] if is_error else data)
        except FAILURES as error:
            problem = explain(error, shown, limits.read_s)
            passing = isinstance(error, httpx.TransportError) and not isinstance(
                error, httpx.LocalProtocolError
            )
            if not passing:
                raise problem from error
            untaken = isinstance(error, httpx.ConnectTimeout | httpx.ConnectError)
            raise _Again(problem, untaken=untaken) from error

    def _judge(self, method: str, url: str, response: _Response, moved: str) -> Answer:
        code, headers = response.status, response.headers
        if code in {200, 203, 304} or (method == "POST" and code in TAKEN):
            validators = Validators(headers.get("etag", ""), headers.get("last-modified", ""))
            return Answer(url, 304 if code == 304 else 200, headers, response.body, moved, validators)  # noqa: PLR2004
        shown = without_secrets(url)
        problem = NoAnswer(status_of(code), shown, f"HTTP {code}", http=code, body=response.body)
        if code == 403 and not self._is_own(_endpoint(url)):  # noqa: PLR2004  HTTP: more requests would be an attack
            self._pacer.block(group_of((urlsplit(url).hostname or "").lower()))
        if code in RETRIED:
            wait = retry_after(headers.get("retry-after", ""), dt.datetime.now(dt.UTC))
            if wait is not None:
                problem.detail += f", retry after {wait:.0f} s"
                problem.cause = problem.detail
            raise _Again(problem, wait=wait, untaken=code in UNTAKEN)
        raise problem


def _endpoint(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (443 if parts.scheme.lower() == "https" else 80)


class _Response:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class _Again(Exception):
    """A failure that may pass; ``untaken`` where the server did not act on the request."""

    def __init__(self, problem: NoAnswer, *, wait: float | None = None, untaken: bool = False) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.wait = wait
        self.untaken = untaken
