"""Evicting nine tokens in ten from a paged KV cache: how much memory comes back?

Backs     eai/evict-14400 · eai/rkv-contiguous · eai/hole-filling · eai/compaction-interval · eai/oom · eai/needs-scores
Question  A page goes back to the pool only when every KV head has dropped every token in it. Which share of the pages
          comes back, by the shape of what survives; what does compaction move; when does a 24 GB device run out; what do
          the scores cost that a fused attention kernel does not give? Survivors of a real model: `kb repro real-survivors`.
Scale     Exact counts on a real page allocator and arithmetic: `derived`. Time is not claimed here.

Every count stands beside its closed form (`kb.repro.sim.survivors`); R8 to R11 of the project's plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Record
from kb.repro import _paged_figures
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.sim.pages import PagedCache, PagePool
from kb.repro.sim.survivors import PATTERNS, draw, expected_freed, is_random, num_heads

CLAIMS = (
    "eai/evict-14400",
    "eai/rkv-contiguous",
    "eai/hole-filling",
    "eai/compaction-interval",
    "eai/oom",
    "eai/needs-scores",
    "eai/block-16",
)
LEVELS = ("derived",)
NEEDS = ()
POINT = "eai/evict-14400"
"""Claim whose conditions state the point the sweeps go through: context, evicted tokens, tokens per page."""
DRAWS = 8
DEAR = 0.10
"""Share of prefill attention from which computing scores again counts as needing them from the kernel."""
PAGE_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128)
EVICTED = (0.5, 0.6, 0.7, 0.8, 0.85, 0.875, 0.925, 0.95, 0.97, 0.99)
CONTEXTS = (4_000, 32_000)


# Parameters


class Eviction(Record):
    """One request, one layer, one eviction."""

    part: Literal["eviction"] = "eviction"
    pattern: str
    """Shape of the survivors, see `kb.repro.sim.survivors`."""
    page_tokens: int = 16
    context: int = 16_000
    """Tokens before the eviction."""
    evicted: int = 14_400
    """Tokens dropped per head."""


class Repack(Record):
    """Copies of compaction after evicting random tokens from one head."""

    part: Literal["repack"] = "repack"
    name: str
    context: int
    evicted: int


class Periodic(Record):
    """Compaction once in ``every`` decode steps, which brings a request back to its budget."""

    part: Literal["periodic"] = "periodic"
    name: Literal["keep-order", "fill-holes"]
    budget: int = 2_048
    """Tokens a request keeps."""
    every: int = 128
    """Decode steps between two compactions."""
    kv_bytes: int = 131_072
    """Per token: Llama-3.1-8B, 32 layers, 8 KV heads, head dim 128, 16 bit."""
    weight_bytes: float = 16.06e9
    """Read once per step for the whole batch."""
    batch: int = 64
    """Requests that share the reading of the weights."""


class Device(Record):
    """A model with 4-bit weights on one device, all memory left over given to KV."""

    part: Literal["device"] = "device"
    name: str
    group: int
    """Weights per 16-bit scale and 4-bit zero point."""
    context_gib: float
    """Memory the runtime itself takes, GiB."""
    device_gib: float = 24.0


class Scores(Record):
    """Scores of one prompt, computed again beside a fused kernel."""

    part: Literal["scores"] = "scores"
    name: str
    queries: int
    """Last queries whose scores the method needs."""
    context: int = 16_384
    heads: int = 32
    """Query heads of a layer, as in Llama-3.1-8B."""


Case = Eviction | Repack | Periodic | Device | Scores
QUERIES = {"h2o": 16_384, "snapkv": 32, "r-kv": 8, "triattention": 0, "streamingllm": 0}
"""Method → queries of a prompt of 16,384 tokens whose scores it needs."""
REPACKS = (
    Repack(name="evict-6-percent", context=2_176, evicted=128),
    Repack(name="evict-50-percent", context=16_000, evicted=8_000),
    Repack(name="evict-90-percent", context=16_000, evicted=14_400),
)


def cases(scope: Scope) -> Iterator[Record]:
    """The stated point in every shape, then one sweep each over page size, share evicted and context."""
    stated = {name: int(text) for name, text in scope[POINT].conditions.items() if text.isdigit()}
    point = Eviction(pattern="uniform", **stated)
    for pattern in PATTERNS:
        here = point.model_copy(update={"pattern": pattern})
        yield here
        for size in PAGE_TOKENS:
            if size != here.page_tokens:
                yield here.model_copy(update={"page_tokens": size})
        for share in EVICTED:
            yield here.model_copy(update={"evicted": round(share * here.context)})
        for context in CONTEXTS:
            evicted = round(here.evicted / here.context * context)
            yield here.model_copy(update={"context": context, "evicted": evicted})
    yield from REPACKS
    yield Periodic(name="keep-order")
    yield Periodic(name="fill-holes")
    for group in (128, 64, 32):
        for context_gib in (0.5, 1.0):
            yield Device(name=f"group-{group}", group=group, context_gib=context_gib)
    for name, queries in QUERIES.items():
        yield Scores(name=name, queries=queries)


# Reference: what should come out

QWEN3_32B = {
    "params": 32.76e9,
    "vocabulary": 151_936,
    "hidden": 5_120,
    "layers": 64,
    "kv_heads": 8,
    "head_dim": 128,
}
"""Qwen3-32B as its public configuration states it; embedding and output matrices are separate and stay 16 bit."""


def expected_copies(case: Repack, *, keep_order: bool) -> float:
    """Mean number of survivors that move.

    Hole filling: those beyond slot K, hypergeometric mean K·(N−K)/N. Keeping order: all behind the first hole, whose mean
    position is K/(N−K+1).
    """
    kept = case.context - case.evicted
    if keep_order:
        return kept - kept / (case.evicted + 1)
    return kept * case.evicted / case.context


def traffic_share(case: Periodic, copies: float) -> float:
    """Bytes that compaction reads and writes, over the bytes the decode steps between two compactions read."""
    mean_tokens = case.budget + case.every / 2
    step = case.weight_bytes / case.batch + mean_tokens * case.kv_bytes
    return 2 * copies * case.kv_bytes / (case.every * step)


def tokens_until_full(case: Device) -> float:
    """Tokens of KV cache that fit beside the weights: (device − runtime − weights) / bytes per token."""
    model = QWEN3_32B
    embeddings = 2 * model["vocabulary"] * model["hidden"]
    per_weight = 0.5 + 2.5 / case.group
    weights = (model["params"] - embeddings) * per_weight + embeddings * 2
    per_token = 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * 2
    return ((case.device_gib - case.context_gib) * 2**30 - weights) / per_token


def recomputed_share(case: Scores) -> float:
    """Query × key products of the scores over those of causal prefill attention, which multiplies keys and values.

    ``(w·n − w(w − 1)/2) / (n(n + 1))`` for the last w of n queries.
    """
    n, w = case.context, case.queries
    return (w * n - w * (w - 1) / 2) / (n * (n + 1))


# Implementation: what a paged cache does


def evict_once(case: Eviction, rng: np.random.Generator) -> tuple[float, float]:
    """Share of the request's pages in the pool after eviction, and after eviction and compaction."""
    heads = num_heads(case.pattern)
    pool = PagePool(-(-case.context // case.page_tokens))
    cache = PagedCache.fill(pool, case.context, heads, case.page_tokens)
    cache.evict(draw(case.pattern, case.context, case.context - case.evicted, rng))
    after_eviction = pool.num_free / pool.num_pages
    cache.compact(keep_order=True)
    return after_eviction, pool.num_free / pool.num_pages


def repack_once(case: Repack | Periodic, rng: np.random.Generator) -> tuple[int, int]:
    """Copies of the order-preserving and of the hole-filling compaction for the same survivors."""
    context = case.context if isinstance(case, Repack) else case.budget + case.every
    kept = context - case.evicted if isinstance(case, Repack) else case.budget
    cache = PagedCache.fill(PagePool(context), context, 1, 1)
    cache.evict(draw("uniform", context, kept, rng))
    return cache.copies(keep_order=True), cache.copies(keep_order=False)


# The functions the harness calls


def check(case: Record, bench: Bench) -> None:
    """Count one draw by listing the pages of all survivors and compare with the allocator."""
    if not isinstance(case, Eviction):
        return
    rng = bench.rng(case)
    kept = draw(case.pattern, case.context, case.context - case.evicted, rng)
    if not np.all(kept.sum(axis=1) == case.context - case.evicted):
        raise WrongResult(
            f"{case.pattern}: a head keeps another number of tokens than asked for",
            cause=f"{sorted(set(kept.sum(axis=1).tolist()))} instead of {case.context - case.evicted}",
            remedy="see kb/repro/sim/survivors.py",
        )
    pages_used = np.unique(np.nonzero(kept)[1] // case.page_tokens)
    num_pages = math.ceil(case.context / case.page_tokens)
    counted = 1 - len(pages_used) / num_pages
    freed, _ = evict_once(case, bench.rng(case))
    if not math.isclose(freed, counted, abs_tol=1e-12):
        raise WrongResult(
            f"the allocator frees {freed:.6f} of the pages where {counted:.6f} are empty at {case}",
            cause="a page is given back too early, too late or twice",
            remedy="pytest tests/repro/sim/test_pages.py",
        )


def measure(case: Record, bench: Bench) -> Iterator[Measurement]:
    """Count, each draw with its own survivors."""
    if isinstance(case, Eviction):
        draws = DRAWS if is_random(case.pattern) else 1
        taken = [evict_once(case, bench.rng(case, number)) for number in range(draws)]
        kept = case.context - case.evicted
        num_pages = -(-case.context // case.page_tokens)
        freed = expected_freed(case.pattern, case.context, kept, case.page_tokens)
        yield bench.record("freed_fraction", case, [f for f, _ in taken], expected=freed)
        compacted = 1 - -(-kept // case.page_tokens) / num_pages
        yield bench.record("compacted_fraction", case, [c for _, c in taken], expected=compacted)
    elif isinstance(case, Repack):
        pairs = [repack_once(case, bench.rng(case, number)) for number in range(DRAWS)]
        means = [expected_copies(case, keep_order=order) for order in (True, False)]
        yield bench.record("copied_tokens", case, [o for o, _ in pairs], expected=means[0])
        yield bench.record("filled_tokens", case, [h for _, h in pairs], expected=means[1])
        yield bench.record("factor", case, [o / h for o, h in pairs], expected=means[0] / means[1])
    elif isinstance(case, Periodic):
        place = 0 if case.name == "keep-order" else 1
        shares = [traffic_share(case, repack_once(case, bench.rng(case, n))[place]) for n in range(DRAWS)]
        same = Repack(name=case.name, context=case.budget + case.every, evicted=case.every)
        copies = expected_copies(same, keep_order=case.name == "keep-order")
        yield bench.record("share", case, shares, expected=traffic_share(case, copies))
    elif isinstance(case, Scores):
        n, w = case.context, case.queries
        counted = sum(range(n - w + 1, n + 1)) / (2 * sum(range(1, n + 1)))
        yield bench.record("share", case, [counted], expected=recomputed_share(case))
        held = case.heads * w * n * 2
        yield bench.record("memory_bytes", case, [held], expected=held)
    elif isinstance(case, Device):
        yield bench.record("oom_tokens", case, [tokens_until_full(case)])


def recompute(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether every method that looks at scores needs them from the kernel, or gets them back for next to nothing."""
    del claim
    shares = {str(m.case["name"]): m.samples[0] for m in taken if m.metric == "share"}
    held = {str(m.case["name"]): m.samples[0] for m in taken if m.metric == "memory_bytes"}
    looking = {name: share for name, share in shares.items() if share > 0}
    if not looking:
        return None, "no method that looks at scores was counted", "尚未计数任何需要分数的方法"
    dear = [name for name, share in looking.items() if share >= DEAR]
    outcome = Outcome.HOLDS if len(dear) == len(looking) else Outcome.PARTLY if dear else Outcome.CONTRADICTED
    rows = ", ".join(f"{name} {share:.2%} ({held[name] / 1e6:,.0f} MB)" for name, share in looking.items())
    none = ", ".join(name for name, share in shares.items() if not share)
    return (
        outcome,
        (
            f"scores recomputed beside a fused kernel, as a share of a 16K prompt's attention (and held in 16 bit per layer): "
            f"{rows}; none: {none}. Only those of {DEAR:.0%} or more need the kernel itself"
        ),
        (
            f"在融合 kernel 之外重算分数，占 16K prompt 注意力计算的比例（及每层 16 bit 存放）：{rows}；不需要：{none}。"
            f"只有达到 {DEAR:.0%} 的才离不开 kernel 本身"
        ),
    )


def affordable(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Say what the interval costs; that an engine uses it, only the engine can show."""
    del claim
    worst = max(float(np.mean(one.samples)) for one in taken)
    every, budget = taken[0].case["every"], taken[0].case["budget"]
    return (
        Outcome.UNTESTED,
        f"not observed in an engine; counted: at {budget:,} tokens it moves {worst:.2%} of what {every} steps read",
        f"尚未在引擎中观察；计数：每 {every} 步压实到 {budget:,} 个 token，搬动的字节至多为这些步所读的 {worst:.2%}",
    )


judge = with_checks(affordable=affordable, recompute=recompute)


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Freed share by page size and by share evicted, one line per shape, closed forms dashed."""
    return _paged_figures.draw(taken)
