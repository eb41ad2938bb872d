"""The words of the base as data: metrics, units, tags, stages, and the synonyms that are not used.

`docs/glossary.md` is generated from this file. One word per thing: a metric has one name, a unit one spelling.
Source of the definitions: the serving literature as listed in the project's style guide; TTFT, TPOT and ITL as in
vLLM's and SGLang's metrics.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit a number may carry."""

    en: str
    zh: str
    scale: str = "linear"
    """``ratio`` for factors, which are compared on a log scale."""


@dataclass(frozen=True)
class Metric:
    """What a measurement or a claim is about."""

    unit: str
    """Key of `UNITS`."""
    zh: str
    en: str
    not_called: tuple[str, ...] = ()
    """Synonyms that are not used."""


UNITS: dict[str, Unit] = {
    "ratio": Unit("factor against the baseline; 1 = no effect", "相对基线的倍数，1 为无变化", "ratio"),
    "fraction": Unit("share, 0 to 1", "占比，0 到 1"),
    "s": Unit("seconds", "秒", "ratio"),
    "tok/s": Unit("tokens per second", "每秒 token 数", "ratio"),
    "req/s": Unit("requests per second", "每秒请求数", "ratio"),
    "bytes": Unit("bytes", "字节", "ratio"),
    "bytes/s": Unit("bytes per second", "每秒字节数", "ratio"),
    "bit": Unit("bits", "比特", "ratio"),
    "flop": Unit("floating point operations", "浮点运算次数", "ratio"),
    "flop/s": Unit("floating point operations per second", "每秒浮点运算次数", "ratio"),
    "count": Unit("a number of things", "个数", "ratio"),
    "tokens": Unit("tokens", "token 数", "ratio"),
    "usd": Unit("US dollars", "美元", "ratio"),
    "usd/h": Unit("US dollars per hour", "每小时美元", "ratio"),
    "score": Unit("points of a benchmark", "基准得分"),
    "correlation": Unit("correlation or R², −1 to 1", "相关系数或 R²，−1 到 1"),
    "month": Unit("months", "月", "ratio"),
    "": Unit("none: a claim that is no number", "无：不是数字的论断"),
}

METRICS: dict[str, Metric] = {
    "ttft": Metric("s", "首 token 时间：请求发出到首个 token，含排队", "request sent to first token, queueing included",
                   ("prefill time", "first-token latency", "time to first byte")),
    "tpot": Metric("s", "每请求 (结束 − 首 token) / (输出 token 数 − 1)", "per request: (end − first token) / (output tokens − 1)",
                   ("per-token latency",)),
    "itl": Metric("s", "相邻两个 token 的间隔", "one gap between consecutive tokens", ("TBT", "inter-token delay")),
    "e2e_latency": Metric("s", "请求发出到最后一个 token", "request sent to last token", ("response time",)),
    "throughput": Metric("tok/s", "整个系统每秒输出 token 数，须注明负载", "output tokens per second of the whole system, load stated", ("TPS",)),
    "goodput": Metric("req/s", "每秒满足 SLO 的请求数，SLO 写在条件里", "requests per second that meet the stated SLO", ("effective throughput",)),
    "speed_up": Metric("ratio", "加速比：基线时间 / 时间", "baseline time / time; more than 1 is better", ("x faster", "improvement")),
    "slowdown": Metric("ratio", "减速比：时间 / 基线时间", "time / baseline time; more than 1 is worse"),
    "hit_rate": Metric("fraction", "命中率：命中的 prompt token / 全部 prompt token", "prompt tokens found in the prefix cache / all prompt tokens"),
    "freed_fraction": Metric("fraction", "归还的页占比：完全空出的页 / 原有页", "pages given back / pages held before eviction",
                             ("reclaimed", "released")),
    "compacted_fraction": Metric("fraction", "压实后归还的页占比", "pages given back after compaction / pages held before"),
    "copied_tokens": Metric("tokens", "保序压实时搬动的 token 数", "tokens moved by compaction that keeps the order"),
    "filled_tokens": Metric("tokens", "填洞压实时搬动的 token 数", "tokens moved by compaction that fills holes"),
    "oom_tokens": Metric("tokens", "显存耗尽时的 context 长度", "context at which memory runs out"),
    "retention": Metric("fraction", "保留率：留下的 token 占比", "share of tokens kept", ("compression ratio",)),
    "acceptance_rate": Metric("fraction", "接受率：接受的草稿 token / 草稿 token", "accepted / drafted tokens"),
    "tokens_per_pass": Metric("tokens", "每次目标模型前向产出的 token 数，含奖励 token", "tokens emitted per target pass, bonus included", ("accepted length",)),
    "accuracy": Metric("score", "任务得分", "score of a task benchmark"),
    "error": Metric("ratio", "相对误差", "relative error against the reference"),
    "kv_bytes": Metric("bytes", "KV cache 大小", "size of the KV cache"),
    "memory_bytes": Metric("bytes", "显存或内存占用", "memory held"),
    "bandwidth": Metric("bytes/s", "带宽", "bytes moved per second"),
    "batch_size": Metric("count", "一步中的请求数", "requests in one step", ("concurrency",)),
    "capacity": Metric("count", "同时容纳的请求或 context 数", "requests or contexts that fit at once"),
    "load_time": Metric("s", "模型加载时间", "time to load a model"),
    "cost": Metric("usd", "费用", "price"),
    "ttft_reduction": Metric("fraction", "TTFT 降幅：1 − 新/旧", "1 − new TTFT / old TTFT"),
    "ttlt_reduction": Metric("fraction", "末 token 时间降幅", "1 − new / old time to the last token"),
    "tpot_reduction": Metric("fraction", "TPOT 降幅", "1 − new TPOT / old TPOT"),
    "latency_reduction": Metric("fraction", "延迟降幅", "1 − new latency / old latency"),
    "cost_reduction": Metric("fraction", "费用降幅", "1 − new cost / old cost"),
    "ttft_ratio": Metric("ratio", "TTFT 倍数：旧/新", "old TTFT / new TTFT"),
    "tpot_ratio": Metric("ratio", "TPOT 倍数：旧/新", "old TPOT / new TPOT"),
    "latency_ratio": Metric("ratio", "延迟倍数：慢/快", "slower latency / faster latency"),
    "throughput_ratio": Metric("ratio", "吞吐倍数：新/旧", "new throughput / old throughput"),
    "throughput_gain": Metric("fraction", "吞吐增幅：新/旧 − 1", "new throughput / old throughput − 1"),
    "throughput_requests": Metric("req/s", "每秒完成请求数", "requests finished per second"),
    "goodput_ratio": Metric("ratio", "goodput 倍数", "goodput / baseline goodput"),
    "speed_gain": Metric("fraction", "提速幅度：旧/新 − 1", "old time / new time − 1"),
    "cost_ratio": Metric("ratio", "费用倍数", "cost / baseline cost"),
    "kv_ratio": Metric("ratio", "KV 缩小倍数：旧字节/新字节", "old KV bytes / new KV bytes"),
    "kv_fraction": Metric("fraction", "KV 占比或节省占比", "share of the KV cache kept or saved, as the statement says"),
    "capacity_ratio": Metric("ratio", "容量倍数", "capacity / baseline capacity"),
    "capacity_fraction": Metric("fraction", "容量占比", "share of the capacity"),
    "bytes_per_token": Metric("bytes", "每 token 搬运字节", "bytes moved per generated token"),
    "bits_per_value": Metric("bit", "每值比特数，含比例因子", "bits per stored number, scales included"),
    "accuracy_fraction": Metric("fraction", "任务得分占比", "score of a task benchmark as a share"),
    "accuracy_ratio": Metric("ratio", "相对得分", "score / baseline score"),
    "perplexity": Metric("score", "困惑度或其差", "perplexity or a difference of it"),
    "error_fraction": Metric("fraction", "误差占比", "error as a share of the true value"),
    "fit_r2": Metric("correlation", "拟合优度 R²", "goodness of fit, R²"),
    "correlation": Metric("correlation", "相关系数", "correlation"),
    "share": Metric("fraction", "占比，对象见论断", "a share; of what, the statement says"),
    "factor": Metric("ratio", "倍数，对象见论断", "a factor; of what, the statement says"),
    "duration": Metric("s", "时长，对象见论断", "a time; of what, the statement says"),
    "duration_months": Metric("month", "月数", "a time in months"),
    "tokens": Metric("tokens", "token 数", "a number of tokens"),
    "count": Metric("count", "个数", "a number of things"),
    "statement": Metric("", "不是数字的论断", "a claim that is no number"),
}  # fmt: skip

STAGES = ("inbox", "review", "published", "dropped")
"""Folders a draft can be in; the furthest of inbox, review, published is an item's stage."""

RELAY_MATCHES = {
    "matches": "same number, bound, unit and comparator",
    "bound-dropped": "a qualifier such as “up to” was lost",
    "different-value": "another number",
    "different-unit": "another unit",
    "different-comparator": "compared with something else",
    "misattributed": "credited to another source or cause",
    "not-in-source": "the source does not say it",
    "unchecked": "not compared yet",
}
"""How a second-hand quotation relates to its source."""

SOURCE_STATUS = (
    "ok", "not-modified", "no-news", "partial", "truncated", "not-a-feed", "empty-body", "rate-limited",
    "blocked-private-address", "too-large", "too-slow", "gone", "moved", "refused", "unreachable",
    "server-order-violated", "stale-batch", "unsupported", "no-main-text", "not-found", "bad-request",
    "mass-id-change", "withdrawn",
)  # fmt: skip
"""What a source ended with; *nothing new* and *broken* never look alike."""

FINE_STATUS = frozenset({"ok", "not-modified", "no-news"})
"""Statuses of a source that answered as it should."""

BANNED = {
    "block table": "page table",
    "prompt phase": "prefill",
    "generation phase": "decode",
    "compression ratio": "retention",
    "accepted length": "tokens per pass",
}
"""Words that must not stand in text of our own, with what to write instead."""
