"""RTP-LLM, arxiv:2605.29639: do its factors follow from its tables, and what can they not explain?

Backs     rtp-llm/load-speedup · ttft-p95-robot · ttft-p95-taobao · cache-reuse-robot · cache-reuse-taobao ·
          prefill-machines · pd-ttft · pd-throughput · sd-throughput · multimodal-throughput
Question  Each factor is recomputed from the printed times. The hit rates of the split deployment bound how much prefill
          work they can save.
Shows not The effects themselves: they need the cluster. The drafts list routing gains as gains over other engines.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, by_claim, cut, exact, explained, gain, no_figure

CLAIMS = (
    "rtp-llm/load-speedup",
    "rtp-llm/ttft-p95-robot",
    "rtp-llm/ttft-p95-taobao",
    "rtp-llm/cache-reuse-robot",
    "rtp-llm/cache-reuse-taobao",
    "rtp-llm/prefill-machines",
    "rtp-llm/pd-ttft",
    "rtp-llm/pd-throughput",
    "rtp-llm/sd-throughput",
    "rtp-llm/multimodal-throughput",
)
LEVELS = ("derived",)
NEEDS = ()


def ratio(old: float, new: float) -> float:
    """Old over new."""
    return old / new


def saved_prefill(hit: float, other_hit: float) -> float:
    """Uncached share of the other engine over ours: how much less prefill a higher hit rate leaves."""
    return (1 - other_hit) / (1 - hit)


QUANTITIES = (
    Quantity("rtp-llm/load-speedup", ratio, {"old": 174.3, "new": 37.1}, pattern="least"),
    Quantity("rtp-llm/load-speedup", ratio, {"old": 206.7, "new": 33.0}, pattern="greatest"),
    Quantity("rtp-llm/ttft-p95-robot", cut, {"old": 83.3, "new": 52.3}),
    Quantity("rtp-llm/ttft-p95-taobao", cut, {"old": 350, "new": 226}),
    Quantity("rtp-llm/cache-reuse-robot", gain, {"old": 26.6, "new": 83.8}),
    Quantity("rtp-llm/cache-reuse-taobao", gain, {"old": 833, "new": 840}),
    Quantity("rtp-llm/prefill-machines", cut, {"old": 80, "new": 20}),
    Quantity("rtp-llm/pd-ttft", saved_prefill, {"hit": 0.4509, "other_hit": 0.2870}, pattern="sglang"),
    Quantity("rtp-llm/pd-ttft", saved_prefill, {"hit": 0.4509, "other_hit": 0.1910}, pattern="vllm"),
    Quantity("rtp-llm/pd-throughput", ratio, {"old": 1081.7, "new": 1153.0}, pattern="sglang"),
    Quantity("rtp-llm/pd-throughput", ratio, {"old": 1081.7, "new": 1084.6}, pattern="vllm"),
    Quantity("rtp-llm/sd-throughput", ratio, {"old": 187.53, "new": 167.95}, pattern="vllm"),
    Quantity("rtp-llm/sd-throughput", ratio, {"old": 187.53, "new": 75.79}, pattern="sglang"),
    Quantity("rtp-llm/multimodal-throughput", ratio, {"old": 6288, "new": 3374}, pattern="sglang"),
    Quantity("rtp-llm/multimodal-throughput", ratio, {"old": 6288, "new": 2493}, pattern="vllm"),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"hit-rate-alone": explained("the higher hit rate alone", "仅命中率之差")})
figure = no_figure
