"""vLLM under memory pressure: how often does a real engine preempt, by KV space, sequences and token budget?

Backs     vllm/preempt-recompute · vllm/preempt-knobs
Question  Ten requests of 96 prompt and 64 output tokens meet a pool of 24 or 32 pages, 6 or 8 sequences and a budget of
          128 or 1,024 tokens. The engine's own count of preemptions beside the event loop's for the same requests; where
          the KV cache of a preempted request could go.
Shows not Parallelism, which the claim names too: one CPU has none. What a preemption costs at the scale of a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Literal

import numpy as np

from kb.errors import CannotRun, WrongResult
from kb.model import Claim, Figure, Measurement, Point, Record, Series, Text
from kb.repro.engines.counters import read_counters
from kb.repro.engines.launch import Serving, Setup, serving
from kb.repro.engines.load import Ask, Terms, drive, need_clean
from kb.repro.engines.prompts import draw_tokens
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.sim.loop import simulate
from kb.repro.sim.work import Engine, Requests, Run, StepCost

CLAIMS = ("vllm/preempt-recompute", "vllm/preempt-knobs")
LEVELS = ("proxy",)
NEEDS = ("engine",)
PAGE = 32
"""Tokens per page: the CPU kernels want a multiple of this."""
PROMPT, OUTPUT, REQUESTS = 96, 64, 10
PLUG = 480
"""Tokens of a first prompt that keeps the engine busy while the ten arrive, so that they are admitted together."""
REPEATS = 3
FIXED_S, TOKEN_S = 0.03, 0.001
"""Seconds of a step and of a token, of the order seen on two CPU cores: they decide no more than that all have arrived."""


class Pool(Record):
    """One server: how much memory, how many sequences, how large a step."""

    knob: Literal["base", "memory", "sequences", "budget"]
    """What differs from the first case."""
    pages: int
    sequences: int
    budget: int


BASE = Pool(knob="base", pages=24, sequences=8, budget=1024)
POOLS = (
    BASE,
    BASE.model_copy(update={"knob": "memory", "pages": 32}),
    BASE.model_copy(update={"knob": "sequences", "sequences": 6}),
    BASE.model_copy(update={"knob": "budget", "budget": 128}),
)


def cases(scope: Scope) -> Iterator[Pool]:
    """A base and one knob turned at a time."""
    del scope
    yield from POOLS


# Reference


def simulated(case: Pool) -> Run:
    """The same requests through the event loop: the plug, then ten while it computes."""
    prompt = np.array([PLUG, *[PROMPT] * REQUESTS])
    output = np.array([1, *[OUTPUT] * REQUESTS])
    full = (prompt + output) // PAGE
    requests = Requests(
        arrival=np.array([0.0, *[1e-3 * (i + 1) for i in range(REQUESTS)]]),
        prompt=prompt,
        output=output,
        page_from=np.concatenate([[0], np.cumsum(full)]),
        page_ids=np.arange(int(full.sum())),
    )
    engine = Engine(
        pages=case.pages,
        page_tokens=PAGE,
        token_budget=case.budget,
        max_sequences=case.sequences,
        prefix_cache="hash",
    )
    dense = np.concatenate([[0.0], FIXED_S + TOKEN_S * np.arange(1, case.budget + 1)])
    return simulate(requests, engine, StepCost(dense=dense))


# The functions the harness calls


def check(case: Pool, bench: Bench) -> None:
    """The event loop loses no token, and with room for all it preempts nobody."""
    del bench
    run = simulated(case)
    whole = -(-(PROMPT + OUTPUT) // PAGE) * min(case.sequences, REQUESTS)
    kept = run.computed + run.reused - run.lost
    if not (kept[1:] == PROMPT + OUTPUT - 1).all() or (whole <= case.pages and run.preemptions.sum()):
        raise WrongResult(
            f"{int(run.preemptions.sum())} preemptions at {case}",
            cause="tokens are lost, or somebody was preempted though all fit",
            remedy="pytest tests/repro/sim",
        )


def measure(case: Pool, bench: Bench) -> Iterator[Measurement]:
    """Start the server, or ask the one that was given if it is like the case, and count."""
    flags = (
        "--block-size", str(PAGE), "--num-gpu-blocks-override", str(case.pages + 1), "--max-model-len", "512",
        "--max-num-seqs", str(case.sequences), "--max-num-batched-tokens", str(case.budget),
    )  # fmt: skip
    with serving(Setup(flags=flags), bench.endpoint) as server:
        settings = server.counters.settings
        found = (settings.get("block_size"), settings.get("num_gpu_blocks"))
        if found != (str(PAGE), str(case.pages + 1)):
            raise CannotRun(
                f"{case.pages} pages: not measured",
                cause=f"the server has {found[1]} pages of {found[0]} tokens, one of them for nobody",
                remedy=f"start it with {' '.join(flags)}",
            )
        runs = [counted(server, bench.rng(case, number)) for number in range(REPEATS)]
        expected = float(simulated(case).preemptions.sum())
        yield bench.record("count", case, runs, expected=expected)
        host = [settings.get(name, "None") for name in ("num_cpu_blocks", "kv_offloading_size")]
        if sum(runs) and set(host) <= {"None", "0"}:
            yield bench.record("tokens", case, [0.0])


def counted(server: Serving, rng: np.random.Generator) -> float:
    """Preemptions of one go."""
    before = read_counters(server.endpoint)
    asks = [Ask(0.0, draw_tokens(rng, PLUG), 1)]
    asks += [Ask(0.05 + 0.01 * i, draw_tokens(rng, PROMPT), OUTPUT) for i in range(REQUESTS)]
    need_clean(drive(server.endpoint, server.model, asks, Terms(deadline_s=240.0)), "preemptions")
    grown = read_counters(server.endpoint).since(before)
    if "preemptions" not in grown:
        raise CannotRun(
            f"{server.endpoint.url}: not measured",
            cause="its /metrics count no preemptions",
            remedy="give the address of a vLLM",
        )
    return grown["preemptions"]


def means(taken: Sequence[Measurement]) -> list[tuple[Pool, float, float]]:
    """Case, counted mean, simulated; in the order of the cases."""
    found = {}
    for one in taken:
        if one.metric == "count":
            found[Pool.model_validate(one.case)] = (fmean(one.samples), one.expected or 0.0)
    return [(pool, *found[pool]) for pool in POOLS if pool in found]


def knobs(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Each knob, turned as the claim says, lowers the count below the base's."""
    del claim
    rows = means(taken)
    base = next((count for pool, count, _ in rows if pool.knob == "base"), None)
    turned = {
        knob: [n for pool, n, _ in rows if pool.knob == knob] for knob in ("memory", "sequences", "budget")
    }
    if not base or not all(turned.values()):
        return (
            None,
            "not every knob was run, or nothing was preempted at the base",
            "并非每个参数都跑过，或基准处没有抢占",
        )
    told = ", ".join(f"{knob} {base:g} → {min(counts):g}" for knob, counts in turned.items())
    failing = [knob for knob, counts in turned.items() if min(counts) >= base]
    if not failing:
        return True, f"preemptions fall: {told}; parallelism was not run", f"抢占次数下降：{told}；未测并行"
    return (
        False,
        f"{', '.join(failing)} does not lower preemptions: {told}",
        f"{', '.join(failing)} 并未减少抢占：{told}",
    )


def recomputes(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """It preempts though it has no host memory that a cache could be swapped to."""
    del claim
    where = [one.case for one in taken if one.metric == "tokens"]
    if not where:
        return (
            None,
            "nothing was preempted, or the engine has host memory for it",
            "没有抢占，或引擎有主机内存可换出",
        )
    return (
        True,
        f"in {len(where)} set-ups it preempts and has no host memory for KV: what is given up can only be computed again",
        f"{len(where)} 种配置下发生抢占而引擎没有存放 KV 的主机内存：只能重算",
    )


judge = with_checks(knobs=knobs, recomputes=recomputes)


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Counted and simulated preemptions by case."""
    rows = means(taken)
    if not rows:
        return ()
    named = [f"{pool.pages}/{pool.sequences}/{pool.budget}" for pool, _, _ in rows]
    lines = (
        (Text(zh="引擎计数", en="engine"), [count for _, count, _ in rows]),
        (Text(zh="模拟", en="simulated"), [count for _, _, count in rows]),
    )
    told = "; ".join(
        f"{name}: {count:g} ({sim:g})" for name, (_, count, sim) in zip(named, rows, strict=True)
    )
    return (
        Figure(
            name="engine-preemptions",
            repro="engine-preempt",
            title=Text(
                zh="显存多、序列少或预算小，真实 vLLM 就少抢占，与事件模拟一致",
                en="More memory, fewer sequences or a smaller budget: a real vLLM preempts less, as the event loop says",
            ),
            x=Text(zh="配置序号（页/序列/预算）", en="set-up (pages/sequences/budget)"),
            y=Text(zh="抢占次数", en="preemptions"),
            series=tuple(
                Series(label=label, points=tuple(Point(x=float(i + 1), y=y) for i, y in enumerate(values)))
                for label, values in lines
            ),
            alt=Text(zh=f"引擎（模拟）：{told}。", en=f"Engine (simulated): {told}."),
            topics=("inference",),
        ),
    )
