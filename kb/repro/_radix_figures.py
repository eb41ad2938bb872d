"""What `kb repro radixattention` draws, and the means it draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from kb.model import Figure, Measurement, Point, Series, Text

POOLS = (0.1, 0.25, 0.5, 1.0)
"""Pool sizes as shares of all distinct tokens."""
STATED = {256: 0.75, 512: 0.82, 1024: 0.88, 2048: 0.92}
"""Hit rate by prefix length as Spheron's post gives it, with 80 % of requests sharing."""


def mean_shares(taken: Iterable[Measurement], part: str) -> dict[tuple[str, str, float], float]:
    """Mean share of the best hit rate by program, order and pool."""
    return {
        (str(m.case["pattern"]), str(m.case.get("policy", "")), float(m.case.get("pool", 0))): fmean(
            m.samples
        )
        for m in taken
        if m.case.get("part") == part
    }


NAMES = {
    "lpm": Text(zh="最长前缀优先", en="longest prefix first"),
    "dfs": Text(zh="深度优先", en="depth first"),
    "random": Text(zh="随机", en="random"),
    "fcfs": Text(zh="先来先服务", en="first come, first served"),
}


def draw(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Share of the best hit rate by pool and order; a published table beside two readings of it."""
    return tuple(one for one in (_order_figure(mean_shares(taken, "order")), _table_figure(taken)) if one)


def _order_figure(means: Mapping[tuple[str, str, float], float]) -> Figure | None:
    if not means:
        return None
    lines = {
        policy: [
            Point(x=pool, y=fmean(v for (_, p, at), v in means.items() if (p, at) == (policy, pool)))
            for pool in POOLS
            if any((p, at) == (policy, pool) for _, p, at in means)
        ]
        for policy in NAMES
    }
    first = {policy: points[0].y for policy, points in lines.items() if points}
    return Figure(
        name="order-of-admission",
        repro="radixattention",
        title=Text(
            zh="池放不下全部前缀时，准入顺序决定命中率",
            en="When the pool cannot hold every prefix, the order of admission decides the hit rate",
        ),
        x=Text(zh="池大小 / 全部不同 token", en="pool size over all distinct tokens"),
        y=Text(zh="命中率 / 最优命中率", en="hit rate over the best possible"),
        x_scale="log2",
        series=tuple(Series(label=NAMES[p], points=tuple(points)) for p, points in lines.items() if points),
        alt=Text(
            zh=f"池为全部 token 的 {POOLS[0]:.0%} 时："
            + "；".join(f"{NAMES[p].zh} {y:.0%}" for p, y in first.items())
            + "。",
            en=f"In a pool of {POOLS[0]:.0%} of all tokens: "
            + "; ".join(f"{NAMES[p].en} {y:.0%}" for p, y in first.items())
            + " of the best.",
        ),
        topics=("inference",),
    )


def _table_figure(taken: Sequence[Measurement]) -> Figure | None:
    rows: dict[str, dict[float, float]] = {}
    for one in taken:
        if one.case.get("part") == "table":
            rows.setdefault(str(one.case["pattern"]), {})[float(one.case["prefix"])] = fmean(one.samples)
    if set(rows) != {"described", "all-share"}:
        return None
    labels = {
        "described": Text(zh="按所述：80% 共享，自有 17 token", en="as described: 80 % share, 17 own tokens"),
        "all-share": Text(
            zh="另一种负载：94.5% 共享，自有 70 token", en="another load: 94.5 % share, 70 own tokens"
        ),
    }
    stated = Series(
        label=Text(zh="原文所述", en="stated"),
        points=tuple(Point(x=float(p), y=y) for p, y in STATED.items()),
    )
    lines = [
        Series(label=labels[name], points=tuple(Point(x=p, y=y) for p, y in sorted(rows[name].items())))
        for name in labels
    ]
    gap = max(abs(rows["all-share"][float(p)] - y) for p, y in STATED.items())
    top = max(rows["described"].values())
    return Figure(
        name="hit-rate-by-prefix",
        repro="radixattention",
        title=Text(
            zh="该命中率表不符合所述负载，却符合另一种负载",
            en="The table of hit rates fits another load than the one described",
        ),
        x=Text(zh="共享前缀长度（token）", en="shared prefix (tokens)"),
        y=Text(zh="命中率", en="hit rate"),
        x_scale="log2",
        series=(stated, *lines),
        alt=Text(
            zh=f"按所述负载最高只到 {top:.0%}；几乎所有请求都共享时与四个数相差不超过 {gap:.1%}。",
            en=f"As described at most {top:.0%} hit; if nearly all requests share, all four figures are met within {gap:.1%}.",
        ),
        topics=("inference",),
    )
