"""Open-loop load on any OpenAI-compatible server, measured from the moment each request was meant to be sent.

A closed loop waits for a slow server and so leaves out the requests that would have suffered (coordinated omission).
Here the moments are fixed beforehand; a request that the driver sends late, because all its connections are taken,
counts from the moment it was due. Every request ends by its own deadline, whatever the server does, and every request
has a record: tokens and their moments, or what went wrong. Token counts come from the server and are held against what
was asked and what was seen.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import fmean
from threading import Lock
from typing import Any

from kb.errors import CannotRun
from kb.http import NoAnswer
from kb.http.stream import Endpoint, Lines
from kb.repro.engines.events import Garbage, Lie, events, read_counts, text_of
from kb.repro.harness.stats import mean_interval

STATUSES = {
    "ok": "answered as asked",
    "too-slow": "not whole at its deadline: stalled, or trickling",
    "unreachable": "no connection, or it was reset before an answer began",
    "reset": "the connection ended in the middle of the answer",
    "rate-limited": "HTTP 429",
    "server-error": "HTTP 5xx, or an error in the stream",
    "refused": "another HTTP error",
    "garbage": "not a stream of JSON events",
    "too-large": "more bytes or events than such an answer has",
    "lies": "its own token counts contradict what was asked or seen",
    "not-sent": "never sent: its deadline passed, or the run was stopped",
}
"""What a request can end with."""
BYTES_PER_TOKEN, SPARE_BYTES = 4_096, 1 << 16
"""An answer may be this long: an event per token with its JSON, and a head."""
EXAMPLES = 3
"""Requests that an error names one by one."""


@dataclass(frozen=True)
class Ask:
    """One request to send."""

    at_s: float
    """When, from the start of the run; a closed loop ignores it."""
    prompt: tuple[int, ...]
    """Token ids, so that no tokenizer stands between what was planned and what is counted."""
    max_tokens: int
    """Exactly so many are asked for; the end of text is ignored."""
    name: str = ""
    """Tells groups of requests apart."""
    warm_up: bool = False
    """Sent and recorded, but no part of what is measured."""


@dataclass(frozen=True)
class Terms:
    """How a run is driven."""

    deadline_s: float = 60.0
    """From the moment a request is due to its last token."""
    most_open: int = 64
    """Connections at once; a request that is due waits for one, and its clock runs."""
    open_loop: bool = True
    """False: ``most_open`` clients, each sending its next request when its last one ended."""
    stop_s: float = float("inf")
    """Nothing is sent later than that after the start."""
    stop_failures: int = 8
    """Failures in a row after which nothing more is sent."""
    stop_precision: float = 0.0
    """Half-width of the 95 % interval of the mean latency over the mean, at which a run is long enough; 0: never."""
    stop_least: int = 30
    """Answers before the precision is looked at."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request."""


@dataclass
class Sent:
    """What became of one request; seconds from the start of the run."""

    number: int
    ask: Ask
    due_s: float
    sent_s: float = float("nan")
    status: str = "not-sent"
    detail: str = ""
    arrivals: array[float] = field(default_factory=lambda: array("d"))
    """Moment of each event with text, in order."""
    end_s: float = float("nan")
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    """As the server counts them; with speculation one event may carry several."""
    cached_tokens: int | None = None
    text: str = ""

    @property
    def ok(self) -> bool:
        """Whether its times may be used."""
        return self.status == "ok"

    @property
    def ttft_s(self) -> float:
        """From the moment it was due to its first token."""
        return self.arrivals[0] - self.due_s

    @property
    def e2e_s(self) -> float:
        """From the moment it was due to its last token."""
        return self.arrivals[-1] - self.due_s

    @property
    def tpot_s(self) -> float:
        """(last − first token) / (output tokens − 1)."""
        return (self.arrivals[-1] - self.arrivals[0]) / max(1, (self.output_tokens or 0) - 1)

    @property
    def itl_s(self) -> list[float]:
        """Gaps between consecutive events with text."""
        return [after - before for before, after in zip(self.arrivals, self.arrivals[1:], strict=False)]


@dataclass(frozen=True)
class Driven:
    """A whole run, warm-up included, in the order of the plan."""

    sent: tuple[Sent, ...]
    stopped: str = ""
    """Why not everything was sent; empty where it was."""

    @property
    def measured(self) -> list[Sent]:
        """All but the warm-up."""
        return [one for one in self.sent if not one.ask.warm_up]

    @property
    def trouble(self) -> str:
        """What went wrong, with the first requests it happened to; empty where every answer can be used.

        A run that was long enough by its own stop rule has requests that were not sent: no trouble.
        """
        wrong = [one for one in self.sent if not one.ok and not (one.status == "not-sent" and self._precise)]
        if not wrong:
            return ""
        counts = ", ".join(
            f"{n} {status}" for status, n in Counter(one.status for one in wrong).most_common()
        )
        shown = "; ".join(f"request {one.number}: {one.status}: {one.detail}" for one in wrong[:EXAMPLES])
        return f"{len(wrong)} of {len(self.sent)} requests cannot be used ({counts}); {shown}"

    @property
    def _precise(self) -> bool:
        return self.stopped == PRECISE


PRECISE = "precise enough"


def need_clean(driven: Driven, what: str) -> Driven:
    """Return a run of which every answer can be used.

    Raises:
        CannotRun: Some cannot: a number from the rest would leave out the requests that suffered.
    """
    if driven.trouble:
        raise CannotRun(
            f"{what}: no number was taken",
            cause=driven.trouble,
            remedy="look at the server, or lower the load; the same command tries again",
        )
    return driven


def drive(
    endpoint: Endpoint,
    model: str,
    asks: Sequence[Ask],
    terms: Terms | None = None,
    *,
    tick: Callable[[], float] = time.perf_counter,
) -> Driven:
    """Send the requests and wait until each has ended; it takes at most the last moment plus one deadline.

    Args:
        endpoint: The server.
        model: Name it serves.
        asks: In any order.
        terms: Defaults where None.
        tick: Clock of all moments.
    """
    terms = terms or Terms()
    run = _Run(endpoint, model, terms, tick)
    plan = sorted(asks, key=lambda ask: ask.at_s) if terms.open_loop else list(asks)
    sent = [Sent(number, ask, ask.at_s) for number, ask in enumerate(plan)]
    waiting: list[Future[None]] = []
    with ThreadPoolExecutor(max(1, min(terms.most_open, len(sent)))) as pool:
        for one in sent:
            if terms.open_loop:
                run.wait_until(one.ask.at_s)
            if run.stopped:
                break
            waiting.append(pool.submit(run.work, one))
    for done in waiting:
        done.result()  # a fault of the driver itself is no fault of the server
    return Driven(tuple(sent), run.stopped)


class _Run:
    """What the threads of one run share."""

    def __init__(self, endpoint: Endpoint, model: str, terms: Terms, tick: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self.model = model
        self.terms = terms
        self.stopped = ""
        self._tick = tick
        self._start = tick()
        self._lock = Lock()
        self._failures = 0
        self._latencies: list[float] = []

    def now(self) -> float:
        return self._tick() - self._start

    def wait_until(self, moment: float) -> None:
        """Sleep, waking up now and then to see whether the run was stopped."""
        while not self.stopped and (left := moment - self.now()) > 0:
            time.sleep(min(left, 0.1))

    def work(self, one: Sent) -> None:
        """Send one request, read its answer and note how it ended."""
        now = self.now()
        if now > self.terms.stop_s:
            self.stopped = self.stopped or f"the limit of {self.terms.stop_s:g} s"
        if not self.terms.open_loop:
            one.due_s = now
        left = one.due_s + self.terms.deadline_s - now
        if self.stopped or left <= 0:
            one.detail = self.stopped or "all connections were taken until its deadline"
        else:
            one.sent_s = now
            try:
                one.status, one.detail = self._exchange(one, left)
            except NoAnswer as problem:
                one.status, one.detail = _named(problem, begun=bool(one.arrivals))
            one.end_s = self.now()
        self._note(one)

    def _exchange(self, one: Sent, left: float) -> tuple[str, str]:
        value = {
            "model": self.model, "prompt": list(one.ask.prompt), "max_tokens": one.ask.max_tokens, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True, **self.terms.extra,
        }  # fmt: skip
        most = BYTES_PER_TOKEN * one.ask.max_tokens + SPARE_BYTES
        with self.endpoint.open("POST", "/v1/completions", value, within_s=left, most_bytes=most) as answer:
            return self._read(one, answer)

    def _read(self, one: Sent, answer: Lines) -> tuple[str, str]:
        """Follow the stream to its end."""
        usage: Any = None
        try:
            for event in events(answer.lines):
                if event is None:
                    asked, seen = one.ask.max_tokens, len(one.arrivals)
                    counts = read_counts(usage, prompt=len(one.ask.prompt), asked=asked, seen=seen)
                    one.prompt_tokens, one.output_tokens, one.cached_tokens = counts
                    return "ok", ""
                if "error" in event:
                    return "server-error", f"in the stream: {str(event['error'])[:200]}"
                usage = event.get("usage") or usage
                text, ends = text_of(event)
                if text or (ends and not one.arrivals):  # half a character is a token without text
                    one.arrivals.append(self.now())
                    one.text += text
                    if len(one.arrivals) > one.ask.max_tokens:
                        return "lies", f"more events with text than the {one.ask.max_tokens} tokens asked for"
        except Garbage as problem:
            return "garbage", str(problem)
        except Lie as problem:
            return "lies", str(problem)
        return "reset", f"the stream ended after {len(one.arrivals)} events without its end mark"

    def _note(self, one: Sent) -> None:
        with self._lock:
            self._failures = 0 if one.ok else self._failures + 1
            if one.ok and not one.ask.warm_up:
                self._latencies.append(one.e2e_s)
            if self._failures >= self.terms.stop_failures and not self.stopped:
                self.stopped = f"{self._failures} failures in a row, the last {one.status}"
            if self._is_precise() and not self.stopped:
                self.stopped = PRECISE

    def _is_precise(self) -> bool:
        enough = len(self._latencies) >= self.terms.stop_least
        if not self.terms.stop_precision or not enough:
            return False
        low, _, high = mean_interval(self._latencies)
        return (high - low) / 2 <= self.terms.stop_precision * fmean(self._latencies)


def _named(problem: NoAnswer, *, begun: bool) -> tuple[str, str]:
    """Status and detail of a failed exchange."""
    if problem.http:
        said = problem.body[:200].decode("utf-8", "replace")
        detail = f"HTTP {problem.http} {said}".strip()
        if problem.http == 429:  # noqa: PLR2004  HTTP
            return "rate-limited", detail
        return ("server-error" if problem.http >= 500 else "refused"), detail  # noqa: PLR2004  HTTP
    if problem.status in {"too-slow", "too-large"}:
        return problem.status, problem.detail
    return ("reset" if begun or problem.status == "truncated" else "unreachable"), problem.detail
