"""What a request gives: an answer, or the reason why there is none."""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kb.errors import PartlyDone


@dataclass(frozen=True)
class Limits:
    """Bounds of one request; seconds are on the monotonic clock."""

    connect_s: float = 10.0
    read_s: float = 20.0
    """Longest wait for the next bytes."""
    total_s: float = 60.0
    """From the first connection to the last byte, redirects included."""
    body_bytes: int = 15 << 20
    """Most decoded bytes."""
    redirects: int = 10
    tries: int = 3
    wait_s: float = 150.0
    """Longest wait between two tries; a server that asks for more is left for the next run."""


@dataclass(frozen=True)
class Validators:
    """What makes the next request conditional; verbatim as the server sent it."""

    etag: str = ""
    last_modified: str = ""

    def headers(self) -> dict[str, str]:
        """Request headers."""
        pairs = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in pairs.items() if value}


@dataclass
class Tally:
    """What was spent on a source."""

    requests: int = 0
    bytes: int = 0
    """On the wire, bodies only."""


@dataclass(frozen=True)
class Answer:
    """A complete answer with status 200 or 304."""

    url: str
    """Where it was found, after redirects."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""
    """Decoded."""
    moved_to: str = ""
    """New address where every redirect on the way was permanent (301, 308)."""
    validators: Validators = field(default_factory=Validators)

    @property
    def not_modified(self) -> bool:
        """Nothing changed since the validators were stored."""
        return self.status == 304  # noqa: PLR2004  HTTP

    @property
    def media_type(self) -> str:
        """Content type without parameters, lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """Charset of the content type, lower case; empty where it names none."""
        found = re.search(
            r"charset\s*=\s*[\"']?([\w.:-]+)", self.headers.get("content-type", ""), re.IGNORECASE
        )
        return found.group(1).lower() if found else ""


class NoAnswer(PartlyDone):
    """A request came to nothing; ``status`` is one of `kb.vocab.SOURCE_STATUS`.

    Args:
        status: What kind of nothing.
        url: Address asked, already without secrets.
        detail: What was observed.
        http: Status code of the server, 0 where it gave none.
        body: Beginning of the error page, for sources that can read it.
        remedy: What the user can do.
    """

    def __init__(
        self, status: str, url: str, detail: str, *, http: int = 0, body: bytes = b"", remedy: str = ""
    ) -> None:
        super().__init__(
            f"{url}: {status}",
            cause=detail,
            remedy=remedy or "run again later; kb sources test NAME asks this source alone",
            next_command="kb sources test",
        )
        self.status = status
        self.url = url
        self.detail = detail
        self.http = http
        self.body = body


STATUS_OF_CODE: dict[int, str] = {
    400: "bad-request", 401: "refused", 402: "refused", 403: "refused", 404: "not-found", 407: "refused",
    408: "too-slow", 410: "gone", 429: "rate-limited", 451: "refused",
}  # fmt: skip
"""HTTP code → status; other 4xx are bad requests, 5xx unreachable."""
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
"""Codes that may pass; no other 4xx is asked twice."""
UNTAKEN = frozenset({425, 429, 503})
"""Codes of `RETRIED` that say the request was not acted on: only then is a POST repeated."""
TAKEN = frozenset({201, 202, 204})
"""What a webhook may answer beside 200: created, queued, nothing to say."""


def status_of(code: int) -> str:
    """Status of an HTTP code that is no success."""
    return STATUS_OF_CODE.get(code, "bad-request" if code < 500 else "unreachable")  # noqa: PLR2004  HTTP


def retry_after(value: str, now: dt.datetime) -> float | None:
    """Seconds a ``Retry-After`` header asks for (RFC 9110: seconds or a date), or None."""
    value = value.strip()
    if re.fullmatch(r"\d{1,9}", value):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return max(0.0, (moment - now).total_seconds())
