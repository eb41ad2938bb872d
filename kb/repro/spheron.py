"""Spheron's benchmark posts: rooflines, KV budget and the ceiling of a hit rate.

Backs     spheron/hit-rate-prefix-* · hit-rate-overlap-* · unique-throughput-* · paged-concurrency · cost-formula ·
          unique-edge · ttft-p50-c50 · ttft-p95-c50 · ttft-cut-* · prefix-heavy-effective · spheron-b/throughput-* ·
          runinfra/prefix-gain
Question  If a share f of requests has a common prefix of P tokens and u of its own, no more than f·P/(P + u) of prompt
          tokens can hit. A decode step reads the weights once. 8 GB hold how many contexts?
Shows not What workload gave the tables: replayed prompts, or hit rates of sharing requests alone, would lift the ceiling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.model import Claim, Figure, Measurement, Point, Series, Text
from kb.repro.harness.exact import Quantity, bounded, by_claim, cut, exact, gain, ratio
from kb.repro.sim.bounds import token_rate
from kb.repro.sim.shapes import find_hardware, find_model

CLAIMS = (
    "spheron/hit-rate-prefix-256",
    "spheron/hit-rate-prefix-512",
    "spheron/hit-rate-prefix-1024",
    "spheron/hit-rate-prefix-2048",
    "spheron/hit-rate-overlap-20",
    "spheron/hit-rate-overlap-40",
    "spheron/hit-rate-overlap-60",
    "spheron/hit-rate-overlap-80",
    "spheron/hit-rate-overlap-95",
    "spheron/unique-throughput-c1-vllm",
    "spheron/unique-throughput-c1-sglang",
    "spheron/unique-throughput-c10-vllm",
    "spheron/unique-throughput-c10-sglang",
    "spheron/unique-throughput-c50-vllm",
    "spheron/unique-throughput-c50-sglang",
    "spheron/unique-throughput-c100-vllm",
    "spheron/unique-throughput-c100-sglang",
    "spheron/paged-concurrency",
    "spheron/cost-formula",
    "spheron/unique-edge",
    "spheron/ttft-p50-c50",
    "spheron/ttft-p95-c50",
    "spheron/prefix-heavy-effective",
    "spheron/ttft-cut-overlap-20",
    "spheron/ttft-cut-overlap-40",
    "spheron/ttft-cut-overlap-60",
    "spheron/ttft-cut-overlap-80",
    "spheron/ttft-cut-overlap-95",
    "spheron/ttft-cut-prefix-256",
    "spheron/ttft-cut-prefix-512",
    "spheron/ttft-cut-prefix-1024",
    "spheron/ttft-cut-prefix-2048",
    "spheron-b/throughput-c1",
    "spheron-b/throughput-c10",
    "spheron-b/throughput-c50",
    "spheron-b/throughput-c100",
    "runinfra/prefix-gain",
)
LEVELS = ("derived",)
NEEDS = ()
MODEL, GPU = find_model("llama-3.3-70b"), find_hardware("h100")
PREFIXES, OVERLAPS, LOADS = (256, 512, 1024, 2048), (20, 40, 60, 80, 95), (1, 10, 50, 100)


def hit_ceiling(prefix: float, own: float, sharing: float) -> float:
    """Largest share of prompt tokens that can hit: those of the common prefix in requests that have it."""
    return sharing * prefix / (prefix + own)


def hit_by_counting(prefix: float, own: float, sharing: float) -> float:
    """The same over ten thousand requests, the first of which fills the cache for free."""
    requests = 10_000
    hits = sum(prefix for number in range(requests) if number < sharing * requests)
    return hits / (requests * (prefix + own))


def batch_rate(concurrency: float, bandwidth: float, usable: float, context: float, kv_bits: float) -> float:
    """Most tokens per second: weights are read once per step by as many requests as the memory holds.

    Args:
        concurrency: Clients.
        bandwidth: Peak bytes per second.
        usable: Share of the memory the engine takes.
        context: Mean tokens held per request.
        kv_bits: Per number of KV.
    """
    weights = MODEL.weight_bytes("fp8")
    room = GPU.memory_bytes * usable - weights
    held = room / (context * MODEL.kv_token_bytes("bf16") * kv_bits / 16)
    return token_rate(weights, bandwidth, min(concurrency, held))


def contexts_that_fit(room: float, tokens: float, kv_bits: float) -> float:
    """Contexts of ``tokens`` that ``room`` bytes hold."""
    return room / (tokens * MODEL.kv_token_bytes("bf16") * kv_bits / 16)


def dollars_per_million(rate: float, hourly: float) -> float:
    """Price of a million tokens at ``rate`` tokens per second."""
    return hourly / 3600 / rate * 1e6


def prefill_gain(hit: float) -> float:
    """Throughput gain if prefill were everything and hits were free: the most a hit rate can bring."""
    return 1 / (1 - hit)


def rate_inputs(clients: float) -> dict[str, float]:
    """The most favourable reading: 92 % of the memory, FP8 KV, 640 tokens per request."""
    return {"concurrency": clients, "bandwidth": GPU.bandwidth, "usable": 0.92, "context": 640, "kv_bits": 8}


UNIQUE = ((312, 318), (890, 902), (1850, 1920), (2010, 2050))
QUANTITIES = (
    *(
        Quantity(
            f"spheron/{figure}-prefix-{prefix}",
            hit_ceiling,
            {"prefix": prefix, "own": 1, "sharing": 0.8},
            by_hand=hit_by_counting,
        )
        for figure in ("hit-rate", "ttft-cut")
        for prefix in PREFIXES
    ),
    *(
        Quantity(
            f"spheron/{figure}-overlap-{share}",
            hit_ceiling,
            {"prefix": 512, "own": 1, "sharing": share / 100},
            by_hand=hit_by_counting,
        )
        for figure in ("hit-rate", "ttft-cut")
        for share in OVERLAPS
    ),
    *(
        Quantity(f"spheron/unique-throughput-c{clients}-{engine}", batch_rate, rate_inputs(clients))
        for clients in LOADS
        for engine in ("vllm", "sglang")
    ),
    *(Quantity(f"spheron-b/throughput-c{clients}", batch_rate, rate_inputs(clients)) for clients in LOADS),
    Quantity(
        "spheron/paged-concurrency", contexts_that_fit, {"room": 8e9, "tokens": 4096, "kv_bits": 16}, "8-gb"
    ),
    Quantity(
        "spheron/paged-concurrency", contexts_that_fit, {"room": 10e9, "tokens": 4096, "kv_bits": 16}, "10-gb"
    ),
    Quantity(
        "spheron/paged-concurrency",
        contexts_that_fit,
        {"room": 10e9, "tokens": 4096, "kv_bits": 8},
        "10-gb-fp8",
    ),
    Quantity("spheron/cost-formula", dollars_per_million, {"rate": 1850, "hourly": 4.06}),
    *(
        Quantity("spheron/unique-edge", gain, {"new": sglang, "old": vllm}, pattern=f"{clients}-clients")
        for clients, (vllm, sglang) in zip(LOADS, UNIQUE, strict=True)
    ),
    Quantity("spheron/ttft-p50-c50", cut, {"new": 195, "old": 310}),
    Quantity("spheron/ttft-p95-c50", cut, {"new": 340, "old": 580}),
    Quantity("spheron/prefix-heavy-effective", ratio, {"new": 2550, "old": 1850}),
    Quantity("runinfra/prefix-gain", prefill_gain, {"hit": 0.9}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "hit-ceiling": bounded(
            0.02,
            "the ceiling of the stated workload, sharing × prefix / (prefix + own) with one own token",
            "所述负载的上限（共享比例 × 前缀 /（前缀 + 自有），自有取 1）",
        ),
        "ttft-ceiling": bounded(
            0.02,
            "what hits as described could save if all of TTFT were prefill and nobody queued",
            "按所述命中、TTFT 全为 prefill 且无排队时所能节省的上限",
        ),
        "weight-streaming": bounded(
            0.05,
            "what reading 70B FP8 weights once per step allows at this concurrency, FP8 KV assumed",
            "该并发下每步读一遍 70B FP8 权重所允许的上界（假设 FP8 KV）",
        ),
        "prefill-only": bounded(
            0.0, "what 90 % hits could bring if prefill were all", "假设全是 prefill 时 90 % 命中的上界"
        ),
    }
)


def figure(taken: Sequence[Measurement], claims: Mapping[str, Claim]) -> tuple[Figure, ...]:
    """Stated hit rates beside the ceiling, by share of requests that have the prefix."""
    ceilings = {
        round(100 * one.case["inputs"]["sharing"]): one.samples[0]
        for one in taken
        if str(one.case["claim"]).startswith("spheron/hit-rate-overlap")
    }
    if not ceilings:
        return ()
    stated = {f: 100 * (claims[f"spheron/hit-rate-overlap-{f}"].high or 0.0) for f in sorted(ceilings)}
    above = [f for f, y in stated.items() if y > 100 * ceilings[f]]
    listed = ", ".join(f"{f}%" for f in above) or "0"
    return (
        Figure(
            name="hit-rate-ceiling",
            repro="spheron",
            title=Text(
                zh=f"{len(stated)} 个所述命中率中 {len(above)} 个高于该负载可能的上限",
                en=f"{len(above)} of {len(stated)} stated hit rates exceed what the stated workload can give",
            ),
            x=Text(zh="共享前缀的请求占比（%）", en="requests that share the prefix (%)"),
            y=Text(zh="命中率（%）", en="hit rate (%)"),
            series=(
                Series(
                    label=Text(zh="上限，前缀 512 token", en="ceiling, prefix of 512 tokens"),
                    points=tuple(Point(x=f, y=100 * y) for f, y in sorted(ceilings.items())),
                    predicted=True,
                ),
                Series(
                    label=Text(zh="原文所述", en="stated"),
                    points=tuple(Point(x=f, y=y) for f, y in stated.items()),
                ),
            ),
            alt=Text(
                zh=f"共享 {listed} 时所述命中率高于上限。",
                en=f"At {listed} sharing the stated rate lies above the ceiling.",
            ),
            topics=("inference",),
        ),
    )
