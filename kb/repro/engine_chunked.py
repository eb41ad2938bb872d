"""Chunked prefill in a real vLLM: what a small token budget gives those who decode and takes from those who wait.

Backs     vllm/chunked-itl
Question  Four requests decode while three prompts of 960 tokens come in, on two servers that differ in their token budget, 128
          or 1,024, asked in turn. Longest gap between two tokens, TTFT of the long prompts, output tokens per second;
          beside them the event loop with step times probed on the same engine.
Shows not Budgets of 2,048 and 8,192 on a large GPU, which the claim names: on two CPU cores a step is compute-bound from a few
          tokens on, so the budgets are scaled down with it, and only the direction can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Literal

import numpy as np

from kb.errors import CannotRun, WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Point, Record, Series, Text
from kb.repro.engines.clocked import clocked
from kb.repro.engines.launch import Serving, Setup, serving
from kb.repro.engines.load import Ask, Terms, drive, need_clean
from kb.repro.engines.prompts import draw_tokens
from kb.repro.engines.step_times import probe
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.harness.stats import median_interval
from kb.repro.sim.loop import simulate
from kb.repro.sim.work import Engine, Requests, StepCost

CLAIMS = ("vllm/chunked-itl",)
LEVELS = ("proxy",)
NEEDS = ("engine",)
SMALL, LARGE = 128, 1024
"""Tokens of a step."""
DECODERS, SHORT, OUTPUT = 4, 32, 64
LONG, LONG_OUTPUT = 960, 2
LONG_AT_S = (1.0, 3.0, 5.0)
REPEATS = 4
FLAGS = ("--max-model-len", "1024", "--max-num-seqs", "32", "--no-enable-prefix-caching")
Seen = dict[str, float]
"""Metric → value of one go."""


class Pair(Record):
    """Two servers, asked in turn."""

    small: int = SMALL
    large: int = LARGE


class Budget(Record):
    """One of them."""

    name: Literal["small", "large"]
    budget: int


class Against(Record):
    """The large budget over the small one, pair by pair."""

    name: Literal["longest-gap", "ttft", "throughput"]
    budget: int = LARGE
    over: int = SMALL


def cases(scope: Scope) -> Iterator[Pair]:
    """One pair of servers."""
    del scope
    yield Pair()


# Prediction


def simulated(cost: StepCost, budget: int) -> Seen:
    """The same requests through the event loop."""
    count = len(LONG_AT_S)
    requests = Requests(
        arrival=np.array([0.0] * DECODERS + list(LONG_AT_S)),
        prompt=np.array([SHORT] * DECODERS + [LONG] * count),
        output=np.array([OUTPUT] * DECODERS + [LONG_OUTPUT] * count),
    )
    run = simulate(requests, Engine(pages=100_000, token_budget=budget, max_sequences=32), cost)
    return {
        "itl": float(run.worst_gap[:DECODERS].mean()),
        "ttft": float((run.first - run.arrival)[DECODERS:].mean()),
        "throughput": float(requests.output.sum() / run.end),
    }


# The functions the harness calls


def check(case: Pair, bench: Bench) -> None:
    """With steps of 50 ms and one per token the longest gap is a step as large as the budget allows."""
    del bench
    cost = StepCost(dense=np.concatenate([[0.0], 0.05 + 1e-3 * np.arange(1, LARGE + 1)]))
    for budget in (case.small, case.large):
        expected = 0.05 + 1e-3 * min(budget, LONG + DECODERS)
        if not abs(simulated(cost, budget)["itl"] - expected) <= 0.02 * expected:
            raise WrongResult(
                f"longest gap {simulated(cost, budget)['itl']:.4f} s where a step takes {expected:.4f} s",
                cause="the event loop's chunks are wrong",
                remedy="pytest tests/repro/sim",
            )


def measure(case: Pair, bench: Bench) -> Iterator[Measurement]:
    """Probe one server, then ask both in turn."""
    if bench.endpoint:
        raise CannotRun(
            "token budgets: not measured",
            cause="it needs two servers that differ in their token budget, and --endpoint gives one",
            remedy="leave --endpoint away: both are then started here",
        )

    def setup(budget: int) -> Setup:
        return Setup(flags=(*FLAGS, "--max-num-batched-tokens", str(budget)))

    with serving(setup(case.large)) as large, serving(setup(case.small)) as small:
        cost = probe(large, bench.rng(case, 1)).cost(LARGE)
        servers = {"small": small, "large": large}
        goes: dict[str, list[Seen]] = {"small": [], "large": []}
        for number in range(REPEATS):
            for name in ("small", "large") if number % 2 == 0 else ("large", "small"):
                goes[name].append(go(servers[name], bench.rng(case, 100 + number)))
    budgets = {"small": case.small, "large": case.large}
    said = {name: simulated(cost, budget) for name, budget in budgets.items()}
    for name, budget in budgets.items():
        for metric in ("itl", "ttft", "throughput"):
            samples = [one[metric] for one in goes[name]]
            place = Budget(name=name, budget=budget)
            yield clocked(bench, metric, place, samples, expected=said[name][metric])
    yield from _ratios(bench, goes, said)


def _ratios(
    bench: Bench, goes: Mapping[str, Sequence[Seen]], said: Mapping[str, Seen]
) -> Iterator[Measurement]:
    for metric, name in (("itl", "longest-gap"), ("ttft", "ttft"), ("throughput", "throughput")):
        pairs = zip(goes["large"], goes["small"], strict=True)
        samples = [one[metric] / other[metric] for one, other in pairs]
        expected = said["large"][metric] / said["small"][metric]
        yield clocked(bench, "factor", Against(name=name), samples, expected=expected)


def go(server: Serving, rng: np.random.Generator) -> Seen:
    """One go of the whole workload."""
    asks = [Ask(0.0, draw_tokens(rng, SHORT), OUTPUT, name="decodes") for _ in range(DECODERS)]
    asks += [Ask(at, draw_tokens(rng, LONG), LONG_OUTPUT, name="long") for at in LONG_AT_S]
    terms = Terms(deadline_s=120.0)
    driven = need_clean(drive(server.endpoint, server.model, asks, terms), "token budgets")
    decoding = [one for one in driven.sent if one.ask.name == "decodes"]
    long = [one for one in driven.sent if one.ask.name == "long"]
    return {
        "itl": fmean(max(one.itl_s) for one in decoding),
        "ttft": fmean(one.ttft_s for one in long),
        "throughput": sum(one.output_tokens or 0 for one in driven.sent)
        / max(one.end_s for one in driven.sent),
    }


def trade_off(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """A large budget lengthens the longest gap; in full only where its throughput is seen not to be lower either."""
    del claim
    ratios = {str(one.case["name"]): one for one in taken if one.metric == "factor"}
    if len(ratios) < 3:  # noqa: PLR2004  gap, TTFT, throughput
        return Outcome.UNTESTED, "not every ratio was taken", "比值不全"
    ends = {name: median_interval(one.samples) for name, one in ratios.items()}
    words = {"longest-gap": "longest gap", "ttft": "TTFT of long prompts", "throughput": "throughput"}
    told = "; ".join(
        f"{words[name]} {ends[name][1]:.2f} ({ends[name][0]:.2f}–{ends[name][2]:.2f}; simulated {ratios[name].expected or 0:.2f})"
        for name in words
    )
    told = f"a budget of {LARGE} tokens over one of {SMALL}: {told}"
    zh = f"预算 {LARGE} 相对 {SMALL}：最长间隔 ×{ends['longest-gap'][1]:.2f}，长 prompt 的 TTFT ×{ends['ttft'][1]:.2f}，吞吐 ×{ends['throughput'][1]:.2f}"
    longer = ends["longest-gap"][0] > 1
    if longer and ends["throughput"][0] >= 1:
        return True, told, zh
    if longer:
        return (
            Outcome.PARTLY,
            f"gaps as stated, a gain in throughput not shown: {told}",
            f"间隔如所述，吞吐增益未见：{zh}",
        )
    if ends["longest-gap"][2] < 1:
        return False, told, zh
    return None, told, zh


judge = with_checks(**{"trade-off": trade_off})


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """The three ratios, counted and simulated."""
    ratios = {str(one.case["name"]): one for one in taken if one.metric == "factor"}
    names = [name for name in ("longest-gap", "ttft", "throughput") if name in ratios]
    if not names:
        return ()
    counted = [median(ratios[name].samples) for name in names]
    said = [ratios[name].expected or 0.0 for name in names]
    told = ", ".join(f"{name} {a:.2f} ({b:.2f})" for name, a, b in zip(names, counted, said, strict=True))
    return (
        Figure(
            name="engine-token-budget",
            repro="engine-chunked",
            title=Text(
                zh=f"预算从 {SMALL} 增至 {LARGE} token：解码间隔变长，吞吐与 TTFT 受益有限",
                en=f"From a budget of {SMALL} to one of {LARGE} tokens: those who decode wait longer",
            ),
            x=Text(
                zh="1 最长间隔，2 长 prompt 的 TTFT，3 吞吐",
                en="1 longest gap, 2 TTFT of long prompts, 3 throughput",
            ),
            y=Text(zh="大预算 / 小预算", en="large over small budget"),
            series=tuple(
                Series(label=label, points=tuple(Point(x=float(i + 1), y=y) for i, y in enumerate(values)))
                for label, values in (
                    (Text(zh="引擎", en="engine"), counted),
                    (Text(zh="事件模拟", en="event loop"), said),
                )
            ),
            alt=Text(zh=f"引擎（模拟）：{told}。", en=f"Engine (simulated): {told}."),
            topics=("inference",),
        ),
    )
