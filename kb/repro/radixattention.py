"""RadixAttention, arxiv:2312.07104: how much of a prompt is found again, in which order, at what price?

Backs     sglang/hit-rate-range · fraction-of-optimal · dfs-optimal · tree-overhead · multiturn-long-no-gain ·
          spheron/apc-gap
Question  What share of prompt tokens do the paper's kinds of programs share; how much of it survives a pool too small
          for everything, by order of admission; what does the tree cost; what does a page of 16 tokens lose to one of 1?
Scale     A real radix tree under synthetic programs with our own lengths: `simulated`; time of the tree on this CPU:
          `proxy`; what a chat can gain, by a roofline: `derived`. Other throughput and latency need a model, production
          hit rates need production: `untested` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Literal

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Level, Measurement, Record, Verdict
from kb.repro._radix_figures import POOLS, draw, mean_shares
from kb.repro._radix_tables import Table, expected_hit_rate, hit_ceiling, replayed_hit_rate, table_cases
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.exact import explained
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.harness.timing import Candidate
from kb.repro.sim import prefix_workloads as programs
from kb.repro.sim.prefix_designs import hits_of_both, shared_prompts
from kb.repro.sim.prefix_overhead import nothing_shared, serve_all, unshared
from kb.repro.sim.prefix_replay import edge_tokens, longest_tokens, replay
from kb.repro.sim.prefix_turns import Chat, Device, gain
from kb.repro.sim.shapes import find_model

CLAIMS = (
    "sglang/hit-rate-range",
    "sglang/fraction-of-optimal",
    "sglang/dfs-optimal",
    "sglang/tree-overhead",
    "sglang/throughput-gain",
    "sglang/latency-gain",
    "sglang/arena-hit-llava-next",
    "sglang/arena-hit-vicuna",
    "sglang/arena-ttft",
    "sglang/multiturn-long-no-gain",
    "sglang/fsm-json",
    "sglang/multimodal-llava",
    "sglang/default-policy",
    "spheron/apc-gap",
    "spheron/hit-rate-prefix-256",
    "spheron/hit-rate-prefix-512",
    "spheron/hit-rate-prefix-1024",
    "spheron/hit-rate-prefix-2048",
    "spheron/hit-rate-overlap-20",
    "spheron/hit-rate-overlap-40",
    "spheron/hit-rate-overlap-60",
    "spheron/hit-rate-overlap-80",
    "spheron/hit-rate-overlap-95",
)
PARTS = {
    "sglang/hit-rate-range": "hits",
    "sglang/fraction-of-optimal": "order",
    "sglang/dfs-optimal": "theorem",
    "sglang/tree-overhead": "overhead",
    "sglang/multiturn-long-no-gain": "turns",
    "spheron/apc-gap": "page-size",
    **{claim: "table" for claim in CLAIMS if claim.startswith("spheron/hit-rate-")},
}
"""Which part of the measurements speaks to a claim; the other claims need a model or production."""
LEVELS = ("simulated", "derived", "proxy")
NEEDS = ()
DRAWS = 3
CLOSE = 0.005
"""Largest difference between a replay and its closed form."""
RUN_S = 74.3
"""Seconds the paper's run of 100 requests took, of which its tree took 0.2."""
SHAPES = ("mmlu", "hellaswag", "tree-of-thought", "chat-short", "rag")
"""Programs whose order is studied: one prefix per subject, two levels, a tree, sessions, popular documents."""
POLICIES = ("lpm", "dfs", "fcfs", "random")
CONSTRAINED = 0.25
"""Pools up to this share of all distinct tokens count as too small."""
GOOD, POOR = 0.92, 0.85
"""Mean share of the best hit rate from which longest-prefix order counts as near the best, and below which not."""
WIDTH = 4
"""Requests that run at once."""
A10G_ROOM, A10G_BANDWIDTH = 0.9 * 23_028 * 2**20, 0.8 * 600e9
"""Bytes an engine may use and bytes per second it reaches on the paper's GPU (24 GB, 600 GB/s by its data sheet)."""


# Parameters


class Hits(Record):
    """One program with room for everything, one request at a time."""

    part: Literal["hits"] = "hits"
    pattern: str


class Order(Record):
    """One program under one order of admission and one size of the pool, in shuffled arrival."""

    part: Literal["order"] = "order"
    pattern: str
    policy: str
    pool: float
    """Pool size as a share of all distinct tokens; never less than the requests that run at once need."""


class Theorem(Record):
    """Depth-first order with a pool that holds the longest request and nothing more."""

    part: Literal["theorem"] = "theorem"
    pattern: str


class Overhead(Record):
    """A hundred requests that share nothing, lengths like those of chat logs."""

    part: Literal["overhead"] = "overhead"
    requests: int = 100


class PageSize(Record):
    """Both designs on one trace: a tree with pages of 1 token, hashes of pages of 16."""

    part: Literal["page-size"] = "page-size"
    pattern: str
    prefix: int
    own: int = 112
    sharing: float = 0.8
    requests: int = 200


class Turns(Record):
    """A chat on the paper's GPU, by a cost model."""

    part: Literal["turns"] = "turns"
    pattern: str
    answer: int
    """Tokens the model adds per turn."""
    prefill_tflops: float
    """Effective rate of prefill: half of the two peak figures in print for this GPU."""
    turns: int = 4
    user: int = 384
    """Tokens the user adds per turn, the middle of 256 to 512."""


def cases(scope: Scope) -> Iterator[Record]:
    """Cheap ones first; the tables' figures are those of the claims."""
    yield Overhead()
    for prefix in (505, 511, 512):
        yield PageSize(pattern=f"prefix-{prefix}", prefix=prefix)
    yield from table_cases(scope)
    for answer in (256, 384, 512, 6):
        for tflops in (35.0, 62.5):
            pattern = "short-answers" if answer < 10 else "long-answers"  # noqa: PLR2004  4 to 8 tokens in the paper
            yield Turns(pattern=pattern, answer=answer, prefill_tflops=tflops)
    for name in programs.WORKLOADS:
        yield Hits(pattern=name)
    for name in SHAPES:
        yield Theorem(pattern=name)
        for pool in POOLS:
            for policy in POLICIES:
                yield Order(pattern=name, policy=policy, pool=pool)


# Reference: what should come out


def expected_hit(pattern: str, requests: Sequence[programs.Request]) -> float:
    """Closed form where the program has one; else one minus distinct tokens over all, counted by sorting."""
    known = programs.EXPECTED.get(pattern)
    if known is not None:
        return known
    prompts = [programs.Request(one.prompt, b"") for one in requests]
    return 1 - edge_tokens(prompts) / (sum(len(one.prompt) for one in requests) // 4)


# Implementation: what a cache does


def requests_of(pattern: str, rng: np.random.Generator) -> list[programs.Request]:
    """One draw of a program."""
    return programs.WORKLOADS[pattern](programs.Text(rng), rng)


def ample(requests: Sequence[programs.Request]) -> float:
    """Hit rate with room for everything."""
    return replay(
        requests, range(len(requests)), policy="fcfs", pool_tokens=edge_tokens(requests) + 4096
    ).hit_rate


def share_of_best(case: Order, rng: np.random.Generator) -> float:
    """Hit rate of one order over that of an ample pool."""
    requests = requests_of(case.pattern, rng)
    arrival = rng.permutation(len(requests)).tolist()
    pool = max(round(case.pool * edge_tokens(requests)), WIDTH * longest_tokens(requests))
    got = replay(
        requests, arrival, policy=case.policy, pool_tokens=pool, width=WIDTH, seed=int(rng.integers(2**31))
    )
    return got.hit_rate / ample(requests)


def ttft_cut(case: PageSize, rng: np.random.Generator) -> float:
    """Most that the finer page can take off TTFT: the share of uncached tokens it saves, all time being prefill."""
    prompts = shared_prompts(case.prefix, case.own, case.sharing, case.requests, rng)
    total = sum(len(key) for key in prompts) // 4
    by_tree, by_hash = hits_of_both(prompts)
    return 1 - (total - by_tree) / (total - by_hash)


def chat_gain(case: Turns, rng: np.random.Generator) -> float:
    """Throughput with over without a cache that finds what the tree finds."""
    chat = Chat(case.turns, case.user, case.answer)
    text = programs.Text(rng)
    sessions = programs.chat(text, sessions=4, turns=case.turns, system=0, user=case.user, answer=case.answer)
    device = Device(A10G_ROOM, A10G_BANDWIDTH, case.prefill_tflops * 1e12)
    return gain(chat, find_model("llama-2-7b"), device, ample(sessions))


# The functions the harness calls


def check(case: Record, bench: Bench) -> None:
    """Replays with room for everything meet their closed forms."""
    if isinstance(case, Hits | Theorem):
        requests = requests_of(case.pattern, bench.rng(case))
        _compare(case, ample(requests), expected_hit(case.pattern, requests))
    elif isinstance(case, Table):
        _compare(case, replayed_hit_rate(case, bench.rng(case)), expected_hit_rate(case))


def _compare(case: Record, counted: float, expected: float) -> None:
    if not abs(counted - expected) <= CLOSE:
        raise WrongResult(
            f"hit rate {counted:.4f} where the closed form gives {expected:.4f} at {case}",
            cause="the tree or the closed form is wrong",
            remedy="pytest tests/repro/sim tests/repro/test_radixattention.py",
        )


def measure(case: Record, bench: Bench) -> Iterator[Measurement]:
    """Count hits, each draw with its own tokens; time the tree."""
    rngs = [bench.rng(case, number) for number in range(1 if bench.quick else DRAWS)]
    if isinstance(case, Hits):
        drawn = [requests_of(case.pattern, rng) for rng in rngs]
        expected = expected_hit(case.pattern, drawn[0])
        yield bench.record("hit_rate", case, [ample(requests) for requests in drawn], expected=expected)
    elif isinstance(case, Theorem):
        rates = []
        for rng in rngs:
            requests = requests_of(case.pattern, rng)
            arrival, pool = rng.permutation(len(requests)).tolist(), longest_tokens(requests)
            got = replay(requests, arrival, policy="dfs", pool_tokens=pool)
            rates.append(got.hit_rate / ample(requests))
        yield bench.record("share", case, rates, expected=1.0)
    elif isinstance(case, Order):
        yield bench.record("share", case, [share_of_best(case, rng) for rng in rngs])
    elif isinstance(case, PageSize):
        yield bench.record("ttft_reduction", case, [ttft_cut(case, rng) for rng in rngs])
    elif isinstance(case, Table):
        rates = [replayed_hit_rate(case, rng) for rng in rngs]
        yield bench.record("hit_rate", case, rates, expected=expected_hit_rate(case))
    elif isinstance(case, Turns):
        gains = [chat_gain(case, rng) for rng in rngs]
        yield bench.record("throughput_ratio", case, gains, level=Level.DERIVED)
    elif isinstance(case, Overhead):
        tree = Candidate(lambda rng: unshared(rng, case.requests), serve_all, nothing_shared, floor_s=0.0)
        yield from bench.alternate(case, {"tree": tree}, level=Level.PROXY)


def near_optimal(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Longest prefix first against the best, and against arrival order, wherever the pool is too small."""
    del claim
    means = mean_shares(taken, "order")
    tight = {key: value for key, value in means.items() if key[2] <= CONSTRAINED}
    lpm = {key: value for key, value in tight.items() if key[1] == "lpm"}
    if {key[0] for key in lpm} != set(SHAPES):
        return None, "not every program was replayed", "并非所有负载都已回放"
    behind = [key for key, value in lpm.items() if value < tight[key[0], "fcfs", key[2]] - CLOSE]
    mean, worst = fmean(lpm.values()), min(lpm.values())
    fcfs = min(value for key, value in tight.items() if key[1] == "fcfs")
    shown = (
        f"longest prefix first reaches {mean:.1%} of the best hit rate on average over {len(SHAPES)} programs in pools "
        f"of at most {CONSTRAINED:.0%} of all tokens (worst {worst:.1%}); arrival order falls to {fcfs:.1%}"
    )
    shown_zh = (
        f"池不超过全部 token 的 {CONSTRAINED:.0%} 时，最长前缀优先在 {len(SHAPES)} 种负载上平均达到最优命中率的 {mean:.1%}"
        f"（最差 {worst:.1%}）；先来先服务最低只有 {fcfs:.1%}"
    )
    if mean >= GOOD and not behind:
        return True, shown, shown_zh
    return (False if mean < POOR else None), shown, shown_zh


def attains(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Depth-first order in the smallest pool the theorem allows loses nothing."""
    del claim
    shares = mean_shares(taken, "theorem")
    if not shares:
        return None, "nothing was replayed", "尚未回放"
    worst = min(shares.values())
    shown = (
        f"depth-first order in a pool of the longest request's size reaches at least {worst:.2%} of the best hit "
        f"rate on {len(shares)} programs"
    )
    shown_zh = f"池恰为最长请求大小时，深度优先在 {len(shares)} 种负载上至少达到最优命中率的 {worst:.2%}"
    return worst >= 1 - CLOSE, shown, shown_zh


def tree_share(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Seconds of our tree per hundred requests over the seconds of the paper's run."""
    times = [sample for m in taken if m.case.get("part") == "overhead" for sample in m.samples]
    if not times or claim.high is None:
        return None, "nothing was timed", "尚未计时"
    share = median(times) / RUN_S
    shown = (
        f"a tree in pure Python takes {median(times) * 1e3:.2g} ms per 100 requests, {share:.1e} of the paper's {RUN_S} s; "
        f"at most {claim.high:.1%} is stated"
    )
    shown_zh = (
        f"纯 Python 的树每 100 个请求耗时 {median(times) * 1e3:.2g} ms，为论文 {RUN_S} s 的 {share:.1e}；"
        f"所述上限 {claim.high:.1%}"
    )
    return share <= claim.high, shown, shown_zh


by_rule = with_checks(
    **{
        "near-optimal": near_optimal,
        "attains-optimum": attains,
        "tree-share": tree_share,
        "hit-ceiling": hit_ceiling,
        "page-size": explained(
            "the finer page alone, all time being prefill,", "仅由更细的页（设 TTFT 全为 prefill）"
        ),
    }
)


def judge(claims: Sequence[Claim], taken: Sequence[Measurement]) -> list[Verdict]:
    """Each claim by its rule, over the part that speaks to it: a metric alone does not make a number comparable."""
    verdicts = []
    for claim in claims:
        mine = [one for one in taken if one.case.get("part") == PARTS.get(claim.id, "nothing")]
        verdicts += by_rule([claim], mine)
    return verdicts


figure = draw
