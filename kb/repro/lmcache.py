"""LMCache, arxiv:2510.09665: how much faster is loading a prefix than computing it?

Backs     lmcache/3-10x · 15x
Question  Seconds to move a prefix's KV over a link against seconds to prefill it, by model and length.
Shows not Throughput under load: 15 times on an 8B model would need a baseline that collapses.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro.harness.exact import Quantity, by_claim, exact, explained
from kb.repro.sim.bounds import prefill_seconds
from kb.repro.sim.shapes import models

CLAIMS = ("lmcache/3-10x", "lmcache/15x")
LEVELS = ("derived",)
NEEDS = ()
LENGTHS = (1000, 10_000, 30_000)
LINK, FLOPS = 25e9, 400e12
"""PCIe 4 x16 as achieved, and effective FLOP/s of an H100-class GPU."""
NAMES = ("llama-3-8b", "llama-2-7b")


def reload_gain(
    tokens: float, parameters: float, kv_token: float, layers: float, width: float, link: float, flops: float
) -> float:
    """Seconds of prefill over seconds to load the same prefix.

    Args:
        tokens: Prefix length.
        parameters: Of the model.
        kv_token: KV bytes per token.
        layers: Layers.
        width: Query heads × head dim.
        link: Bytes per second.
        flops: Effective FLOP/s.
    """
    return prefill_seconds(parameters, tokens, flops, layers, width) / (tokens * kv_token / link)


def inputs(name: str, tokens: float) -> dict[str, float]:
    """Shape of a model and the machine."""
    model = models()[name]
    return {
        "tokens": tokens,
        "parameters": model.parameters,
        "kv_token": model.kv_token_bytes("bf16"),
        "layers": model.layers,
        "width": model.query_heads * model.head_dim,
        "link": LINK,
        "flops": FLOPS,
    }


QUANTITIES = (
    *(
        Quantity("lmcache/3-10x", reload_gain, inputs("llama-3-8b", tokens), pattern=f"llama-3-8b-{tokens}")
        for tokens in LENGTHS[:2]
    ),
    Quantity("lmcache/3-10x", reload_gain, inputs("llama-2-7b", 10_000), pattern="llama-2-7b-10000"),
    Quantity("lmcache/15x", reload_gain, inputs("llama-3-8b", 30_000), pattern="llama-3-8b-30000"),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {
        "time-bound": explained(
            "loading instead of computing a 30K prefix of an 8B model over PCIe 4",
            "8B 模型、30K 前缀经 PCIe 4 以加载代替计算",
        ),
    }
)


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Gain by prefix length for a model with grouped heads and one without."""
    if not taken:
        return ()
    grid = (500, 1000, 2000, 5000, 10_000, 20_000, 30_000)
    labels = {
        "llama-3-8b": Text(zh="Llama-3-8B（GQA）", en="Llama-3-8B (grouped heads)"),
        "llama-2-7b": Text(zh="Llama-2-7B（MHA）", en="Llama-2-7B (no grouping)"),
    }
    lines = [
        Series(
            label=labels[name],
            points=tuple(Point(x=n, y=reload_gain(**inputs(name, n))) for n in grid),
            predicted=True,
        )
        for name in NAMES
    ]
    return (
        Figure(
            name="reload-gain",
            repro="lmcache",
            title=Text(
                zh="经 PCIe 4 加载前缀：GQA 的 8B 模型快 8–11 倍，MHA 不到 3 倍",
                en="Over PCIe 4, loading a prefix gains 8–11 times with grouped heads and less than 3 without",
            ),
            x=Text(zh="前缀长度（token）", en="prefix length (tokens)"),
            y=Text(zh="prefill 时间 / 加载时间", en="prefill time / load time"),
            x_scale="log",
            series=tuple(lines),
            alt=Text(
                zh="两条曲线随前缀变长缓慢上升，GQA 模型约为 MHA 模型的四倍多。",
                en="Both curves rise slowly with length; grouped heads gain more than four times as much.",
            ),
            topics=("inference/kvcache",),
        ),
    )
