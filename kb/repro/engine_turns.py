"""Chats that compete for a cache: how fast is each request of a real llama.cpp when fewer sessions fit than talk?

Backs     medium-occlubssk/vllm-concurrent
Question  Six sessions of five turns, in random order, meet 1 to 6 slots of KV cache. The hit rate by the engine's own counters
          beside that of least-recently-used slots, and output tokens per second of each request beside the time that the
          engine's own prefill rate gives.
Shows not The claim's engine, model and GPU, whose 22 and 16 tok/s nothing here can reach: what is shown is that per-request
          speed falls where sessions push each other out, and stays where all fit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from statistics import fmean, median

import numpy as np

from kb.errors import CannotRun, WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Point, Record, Series, Text
from kb.repro.engines.clocked import clocked
from kb.repro.engines.counters import read_counters
from kb.repro.engines.launch import Serving, Setup, serving
from kb.repro.engines.load import Ask, Terms, drive, need_clean
from kb.repro.engines.prompts import draw_tokens
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks

CLAIMS = ("medium-occlubssk/vllm-concurrent",)
LEVELS = ("proxy",)
NEEDS = ("engine",)
SESSIONS, TURNS = 6, 5
FIRST, MORE, OUTPUT = 160, 64, 8
"""Tokens of a session's first prompt, tokens each turn adds, tokens of an answer."""
SLOTS = (6, 4, 2, 1)
ROOM = 1024
"""Tokens per slot: more than the longest session."""
PROBES = (64, 160, 320)
REPEATS = 3
DEADLINE_S = 120.0
"""Of one request; the first that fails ends the run, for then there is no number."""


class Slots(Record):
    """One server."""

    slots: int
    sessions: int = SESSIONS
    turns: int = TURNS


def cases(scope: Scope) -> Iterator[Slots]:
    """Room for all sessions, then for fewer."""
    del scope
    for count in SLOTS:
        yield Slots(slots=count)


# Reference


def order_of_turns(rng: np.random.Generator) -> list[int]:
    """Which session speaks, turn by turn."""
    return [int(i) for i in rng.permutation(np.repeat(np.arange(SESSIONS), TURNS))]


def computed_tokens(order: Sequence[int], slots: int) -> list[tuple[int, int]]:
    """Prompt tokens and those of them to compute, per turn: the least recently used slot gives way."""
    held: OrderedDict[int, int] = OrderedDict()
    length: dict[int, int] = {}
    found = []
    for session in order:
        size = length[session] + MORE if session in length else FIRST
        found.append((size, size - held.pop(session, 0)))
        held[session] = length[session] = size
        if len(held) > slots:
            held.popitem(last=False)
    return found


def hit_rate(turns: Sequence[tuple[int, int]]) -> float:
    """Share of prompt tokens found."""
    return 1 - sum(fresh for _, fresh in turns) / sum(size for size, _ in turns)


# The functions the harness calls


def check(case: Slots, bench: Bench) -> None:
    """With room for all, a turn computes only what it adds; with one slot and turns in rotation, everything."""
    order = order_of_turns(bench.rng(case))
    roomy = computed_tokens(order, SESSIONS)
    thrash = computed_tokens(list(range(SESSIONS)) * TURNS, SESSIONS - 1)
    first = SESSIONS * FIRST + SESSIONS * (TURNS - 1) * MORE
    if sum(fresh for _, fresh in roomy) != first or hit_rate(thrash) != 0.0:
        raise WrongResult(
            f"{sum(fresh for _, fresh in roomy)} tokens to compute where {first} are new",
            cause="the cache of slots is wrong",
            remedy="pytest tests/repro/engines",
        )


def measure(case: Slots, bench: Bench) -> Iterator[Measurement]:
    """Start the server, probe its prefill, then let the sessions talk."""
    if bench.endpoint:
        raise CannotRun(
            f"{case.slots} slots: not measured",
            cause="it needs a llama.cpp with so many slots, which --endpoint does not promise",
            remedy="leave --endpoint away: it is then started here",
        )
    flags = ("--slots", str(case.slots), "--context", str(case.slots * ROOM))
    with serving(Setup(engine="llama.cpp", flags=flags)) as server:
        rng = bench.rng(case)
        order = order_of_turns(rng)
        turns = computed_tokens(order, case.slots)
        per_token, rest = prefill_rate(server, rng)
        hits, rates = talk(server, rng, order, case.slots)
    expected = fmean(OUTPUT / (rest + per_token * fresh) for _, fresh in turns)
    yield bench.record("hit_rate", case, [hits], expected=hit_rate(turns))
    yield clocked(bench, "throughput", case, rates, expected=expected)


def prefill_rate(server: Serving, rng: np.random.Generator) -> tuple[float, float]:
    """Seconds per prompt token, and seconds of a whole answer beside them, by least squares over probes."""
    sizes, times = [], []
    for number in range(REPEATS + 1):
        for size in PROBES:
            (one,) = one_by_one(server, [draw_tokens(rng, size)])
            if number:  # the first round warms up
                sizes.append(size)
                times.append(one)
    slope, start = np.polyfit(sizes, times, 1)
    return float(slope), float(start)


def one_by_one(server: Serving, prompts: Sequence[tuple[int, ...]]) -> list[float]:
    """Latency of each of some prompts, sent one after another."""
    asks = [Ask(0.0, prompt, OUTPUT) for prompt in prompts]
    terms = Terms(deadline_s=DEADLINE_S, most_open=1, open_loop=False, stop_failures=1)
    driven = need_clean(drive(server.endpoint, server.model, asks, terms), "sessions")
    return [one.e2e_s for one in driven.sent]


def talk(
    server: Serving, rng: np.random.Generator, order: Sequence[int], slots: int
) -> tuple[float, list[float]]:
    """Hit rate by the engine's counters, and output tokens per second of each turn."""
    one_by_one(server, [draw_tokens(rng, PROBES[0]) for _ in range(slots)])  # strangers in every slot
    text = {session: draw_tokens(rng, FIRST) for session in range(SESSIONS)}
    spoken: set[int] = set()
    prompts = []
    for session in order:
        if session in spoken:
            text[session] += draw_tokens(rng, MORE)
        spoken.add(session)
        prompts.append(text[session])
    before = read_counters(server.endpoint)
    latencies = one_by_one(server, prompts)
    grown = read_counters(server.endpoint).since(before)
    found, fresh, sent = grown.get("hit_tokens"), grown.get("computed_tokens"), sum(map(len, prompts))
    if found is None or fresh is None or found + fresh != sent:
        raise CannotRun(
            f"{server.endpoint.url}: no hit rate",
            cause=f"{sent} prompt tokens were sent, it counts {fresh} computed and {found} found",
            remedy="use a llama.cpp that counts both, and that nobody else uses",
        )
    return found / sent, [OUTPUT / seconds for seconds in latencies]


def rows(taken: Sequence[Measurement]) -> dict[int, tuple[Measurement, Measurement]]:
    """Hit rate and throughput by slots."""
    hits = {int(one.case["slots"]): one for one in taken if one.metric == "hit_rate"}
    rates = {int(one.case["slots"]): one for one in taken if one.metric == "throughput"}
    return {count: (hits[count], rates[count]) for count in sorted(hits.keys() & rates.keys())}


def pressure(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Never a verdict on the stated rates: another engine, model and device. It says what was seen here."""
    del claim
    found = {int(one.case["slots"]): one for one in taken if one.metric == "throughput"}
    if len(found) < 2:  # noqa: PLR2004  a fall has two ends
        return Outcome.UNTESTED, "fewer than two cache sizes", "不足两种缓存大小"
    few, many = min(found), max(found)
    low, high = median(found[few].samples), median(found[many].samples)
    told = (
        f"a small model on a CPU says nothing of 22 or 16 tok/s; here a request runs at {high:.1f} tok/s with room for "
        f"all {many} sessions and at {low:.1f} with room for {few}: cache pressure lowers per-request speed"
    )
    zh = (
        f"CPU 上的小模型不能检验 22 与 16 tok/s；此处 {many} 个会话全部容纳时每请求 {high:.1f} tok/s，"
        f"只容 {few} 个时 {low:.1f}：缓存压力会降低每请求速度"
    )
    return Outcome.NOT_COMPARABLE, told, zh


judge = with_checks(pressure=pressure)


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Hit rate by slots, counted and simulated."""
    found = rows(taken)
    if not found:
        return ()
    lines = (
        (Text(zh="引擎计数", en="engine"), [fmean(hits.samples) for hits, _ in found.values()]),
        (
            Text(zh="LRU 槽模拟", en="least recently used slots"),
            [hits.expected or 0.0 for hits, _ in found.values()],
        ),
    )
    told = "; ".join(
        f"{count}: {fmean(hits.samples):.3f} ({hits.expected:.3f}), {median(rates.samples):.1f} tok/s ({rates.expected:.1f})"
        for count, (hits, rates) in found.items()
    )
    return (
        Figure(
            name="engine-turns",
            repro="engine-turns",
            title=Text(
                zh="槽少于会话数时，多轮对话的缓存命中率下降，与 LRU 一致",
                en="With fewer slots than sessions, chats lose their cache as least recently used slots say",
            ),
            x=Text(zh=f"可容纳的会话数（共 {SESSIONS} 个）", en=f"sessions that fit, of {SESSIONS}"),
            y=Text(zh="命中率", en="hit rate"),
            series=tuple(
                Series(
                    label=label,
                    points=tuple(Point(x=float(c), y=y) for c, y in zip(found, values, strict=True)),
                )
                for label, values in lines
            ),
            alt=Text(zh=f"引擎（模拟）：{told}。", en=f"Engine (simulated): {told}."),
            topics=("inference",),
        ),
    )
