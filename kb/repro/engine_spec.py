"""Speculation in a real engine under load: does n-gram drafting's speed-up fade as more requests decode together?

Backs     sd-latency/decay-with-load
Question  Two vLLM servers, one drafting four tokens from the prompt, answer the same repeating prompts in turn, 1 to 64 at
          once. The mean latency of each, the speed-up by load, and the load at which it is gone, beside the event
          loop with step times probed on the plain server and the acceptance the drafting one counts.
Shows not A drafting model, or a GPU: on two CPU cores the step is compute-bound from a few tokens on, so the load at which
          speculation stops to pay is small. Load is requests at once, not arrivals per second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Literal, NamedTuple

import numpy as np

from kb.errors import CannotRun, WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Point, Record, Series, Text
from kb.repro.engines.clocked import clocked
from kb.repro.engines.counters import Counters, read_counters
from kb.repro.engines.launch import Serving, Setup, serving
from kb.repro.engines.load import Ask, Terms, drive, need_clean
from kb.repro.engines.prompts import draw_tokens
from kb.repro.engines.step_times import StepTimes, probe
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.sim.loop import simulate
from kb.repro.sim.work import Engine, Requests, StepCost

CLAIMS = ("sd-latency/decay-with-load",)
LEVELS = ("proxy",)
NEEDS = ("engine",)
DRAFT = 4
BATCHES = (1, 4, 16, 32, 64)
"""Requests at once."""
PATTERN, PROMPT, OUTPUT = 12, 96, 40
"""A prompt repeats so many tokens; greedy decoding falls into loops that drafts from the prompt and the answer foresee."""
TEMPERATURE = 0.0
"""Tried first at 0: 86 % of drafts accepted, a gain of 2.0 at 1 and 1.4 at 32 requests. Tried at 1, to see a crossover: 3 %
accepted, no gain at any load. So 0 it is, and loads up to 64."""
REPEATS = 3
BUDGET = 8192
"""Tokens of a step: all prompts of the highest load."""
CLOSE = 0.30
"""Largest difference between the counted and the simulated crossover, as a share."""
FLAGS = (
    "--max-model-len",
    "1024",
    "--max-num-seqs",
    "96",
    "--max-num-batched-tokens",
    str(BUDGET),
    "--no-enable-prefix-caching",
)
SPEC = {"method": "ngram", "num_speculative_tokens": DRAFT, "prompt_lookup_max": 4, "prompt_lookup_min": 2}


class Pair(Record):
    """Two servers, asked in turn."""

    draft_length: int = DRAFT


class Load(Record):
    """So many requests at once on one of them."""

    name: Literal["plain", "drafted"]
    load: int
    """Requests at once."""
    draft_length: int = DRAFT
    output: int = OUTPUT


class Accepted(Record):
    """What the drafting server counts, over all loads."""

    name: Literal["acceptance"] = "acceptance"
    draft_length: int = DRAFT


def cases(scope: Scope) -> Iterator[Pair]:
    """One pair of servers."""
    del scope
    yield Pair()


# Prediction


def simulated(cost: StepCost, acceptance_rate: float, draft_length: int) -> dict[int, float]:
    """Mean latency by requests at once, from the event loop."""
    found = {}
    for batch in BATCHES:
        requests = Requests(np.zeros(batch), np.full(batch, PROMPT), np.full(batch, OUTPUT))
        engine = Engine(
            pages=100_000, draft_length=draft_length, acceptance_rate=acceptance_rate, token_budget=BUDGET
        )
        run = simulate(requests, engine, cost)
        found[batch] = float((run.finish - run.arrival).mean())
    return found


def per_token_rate(accepted_share: float, draft_length: int) -> float:
    """Chance that a token is accepted given those before it, from the share of drafted tokens accepted.

    The share is (a + a² + … + a^k)/k; it grows with a, so bisection finds it.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        share = sum(middle**i for i in range(1, draft_length + 1)) / draft_length
        low, high = (middle, high) if share < accepted_share else (low, middle)
    return (low + high) / 2


def crossover(speed_up: Mapping[int, float]) -> float | None:
    """Load at which the speed-up falls through one, interpolated on a log scale; None if it never does."""
    loads = sorted(speed_up)
    for before, after in pairwise(loads):
        high, low = speed_up[before], speed_up[after]
        if high >= 1 > low:
            share = (high - 1) / (high - low)
            return float(before * (after / before) ** share)
    return None


# The functions the harness calls


def check(case: Pair, bench: Bench) -> None:
    """With steps that cost the same whatever is in them, the loop gains exactly the tokens per pass."""
    del bench
    flat = StepCost(dense=np.concatenate([[0.0], np.ones(BUDGET)]))
    plain, drafted = simulated(flat, 0.0, 0), simulated(flat, 1.0, case.draft_length)
    steps = 1 + -(-(OUTPUT - 1) // (case.draft_length + 1))
    if not all(plain[b] == OUTPUT and drafted[b] == steps for b in BATCHES):
        raise WrongResult(
            f"{plain} and {drafted} steps where {OUTPUT} and {steps} are due",
            cause="the event loop's speculation is wrong",
            remedy="pytest tests/repro/sim",
        )


def measure(case: Pair, bench: Bench) -> Iterator[Measurement]:
    """Probe the plain server, then ask both in turn at every load."""
    if bench.endpoint:
        raise CannotRun(
            "speculation by load: not measured",
            cause="it needs two servers that differ in one option, and --endpoint gives one",
            remedy="leave --endpoint away: both are then started here",
        )
    spec = ("--speculative-config", json.dumps(SPEC))
    with serving(Setup(flags=FLAGS)) as plain, serving(Setup(flags=(*FLAGS, *spec))) as drafted:
        times = probe(plain, bench.rng(case, 1))
        before = read_counters(drafted.endpoint)
        taken: dict[tuple[str, int], list[float]] = {}
        for number in range(REPEATS):
            for batch in BATCHES:
                prompts = repeating(bench.rng(case, 100 * number + batch), batch)
                for name, server in (("plain", plain), ("drafted", drafted)):
                    taken.setdefault((name, batch), []).append(latency(server, prompts, number))
        passes = drafting(drafted, before, REPEATS * sum(BATCHES))
        yield from _records(bench, times, taken, passes)


def _records(
    bench: Bench, times: StepTimes, taken: Mapping[tuple[str, int], Sequence[float]], passes: Passes
) -> Iterator[Measurement]:
    cost = times.cost(BUDGET)
    length = max(1, round(passes.drafted))
    rate = per_token_rate((passes.tokens - 1) / length, length)
    said = {"plain": simulated(cost, 0.0, 0), "drafted": simulated(cost, rate, length)}
    yield clocked(bench, "acceptance_rate", Accepted(), [passes.accepted_share])
    yield clocked(bench, "tokens_per_pass", Accepted(), [passes.tokens])
    for name in ("plain", "drafted"):
        for batch in BATCHES:
            load = Load(name=name, load=batch)
            yield clocked(bench, "e2e_latency", load, taken[name, batch], expected=said[name][batch])


def repeating(rng: np.random.Generator, count: int) -> list[tuple[int, ...]]:
    """Prompts that each repeat a few tokens of their own."""
    return [tuple((draw_tokens(rng, PATTERN) * PROMPT)[:PROMPT]) for _ in range(count)]


def latency(server: Serving, prompts: Sequence[tuple[int, ...]], seed: int) -> float:
    """Mean seconds from the moment all were due to the last token of each."""
    asks = [Ask(0.0, prompt, OUTPUT) for prompt in prompts]
    extra = {"temperature": TEMPERATURE, "seed": seed}
    terms = Terms(deadline_s=120.0, most_open=len(asks), extra=extra)
    driven = need_clean(drive(server.endpoint, server.model, asks, terms), "speculation by load")
    return fmean(one.e2e_s for one in driven.sent)


class Passes(NamedTuple):
    """What the drafting server did per decode pass of one request."""

    tokens: float
    """Emitted."""
    drafted: float
    accepted_share: float
    """Of the drafted tokens."""


def drafting(server: Serving, before: Counters, requests: int) -> Passes:
    """Read the counters; a request's first token comes from its prefill.

    Raises:
        CannotRun: Nothing was drafted.
    """
    grown = read_counters(server.endpoint).since(before)
    decoded = grown.get("output_tokens", 0.0) - requests
    drafted, accepted = grown.get("drafted_tokens", 0.0), grown.get("accepted_tokens", 0.0)
    passes = decoded - accepted
    if not drafted or passes <= 0:
        raise CannotRun(
            "speculation by load: not measured",
            cause=f"the server that should draft counts {drafted:g} drafted tokens in {passes:g} passes",
            remedy="see that its version takes --speculative-config",
        )
    return Passes(decoded / passes, drafted / passes, accepted / drafted)


def speed_ups(taken: Sequence[Measurement]) -> tuple[dict[int, float], dict[int, float]]:
    """Speed-up by load, counted and simulated."""
    seen: dict[tuple[str, int], tuple[float, float]] = {}
    for one in taken:
        if one.metric == "e2e_latency":
            key = (str(one.case["name"]), int(one.case["load"]))
            seen[key] = (median(one.samples), one.expected or float("nan"))
    both = [b for b in BATCHES if ("plain", b) in seen and ("drafted", b) in seen]
    return tuple({b: seen["plain", b][i] / seen["drafted", b][i] for b in both} for i in (0, 1))  # type: ignore[return-value]


def decay(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The speed-up at the highest load lies below that at the lowest, pair by pair, as the event loop says too."""
    del claim
    counted, said = speed_ups(taken)
    if len(counted) < 2:  # noqa: PLR2004  a decay has two ends
        return Outcome.UNTESTED, "fewer than two loads", "不足两个负载"
    low, high = min(counted), max(counted)
    ends = [crossover(counted), crossover(said)]
    told = f"speed-up {counted[low]:.2f} at {low} and {counted[high]:.2f} at {high} requests at once (simulated {said[low]:.2f} and {said[high]:.2f})"
    zh = f"并发 {low} 时加速 {counted[low]:.2f}，{high} 时 {counted[high]:.2f}（模拟 {said[low]:.2f} 与 {said[high]:.2f}）"
    if ends[0] and ends[1]:
        off = ends[0] / ends[1] - 1
        near = "within" if abs(off) <= CLOSE else "outside"
        told += f"; it is gone at {ends[0]:.1f}, simulated {ends[1]:.1f}: {off:+.0%}, {near} 30 %"
        zh += f"；在 {ends[0]:.1f} 处消失，模拟为 {ends[1]:.1f}（{off:+.0%}）"
    else:
        why = ", ".join(f"{one.samples[0]:.2f}" for one in taken if one.metric == "tokens_per_pass")
        told += f"; with {why or 'so many'} tokens per pass no crossover can be compared: it is gone "
        told += " and ".join(
            f"{name} {f'nowhere up to {high}' if end is None else f'at {end:.1f}'}"
            for name, end in zip(("counted", "simulated"), ends, strict=True)
        )
        zh += "；两者之一在所测负载内没有交点"
    return (counted[high] < counted[low]), told, zh


judge = with_checks(decay=decay)


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Speed-up by load, counted and simulated."""
    counted, said = speed_ups(taken)
    if not counted:
        return ()
    lines = (
        (Text(zh="引擎", en="engine"), counted),
        (Text(zh="事件模拟", en="event loop"), said),
        (Text(zh="无加速", en="no gain"), dict.fromkeys(counted, 1.0)),
    )
    told = ", ".join(f"{batch}: {value:.2f} ({said[batch]:.2f})" for batch, value in counted.items())
    return (
        Figure(
            name="engine-speculation",
            repro="engine-spec",
            title=Text(
                zh="真实引擎的 n-gram 投机随负载失去加速",
                en="In a real engine n-gram speculation loses its gain with load",
            ),
            x=Text(zh="并发请求数", en="requests at once"),
            y=Text(zh="加速比", en="speed-up"),
            x_scale="log2",
            series=tuple(
                Series(label=label, points=tuple(Point(x=float(b), y=y) for b, y in sorted(values.items())))
                for label, values in lines
            ),
            alt=Text(zh=f"引擎（模拟）：{told}。", en=f"Engine (simulated): {told}."),
            topics=("inference/speculative",),
        ),
    )
