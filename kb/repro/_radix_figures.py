"""What `kb repro radixattention` draws, and the means it draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro._radix_tables import table_figures

POOLS = (0.1, 0.25, 0.5, 1.0)
"""Pool sizes as shares of all distinct tokens."""


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
    order = _order_figure(mean_shares(taken, "order"))
    return (*((order,) if order else ()), *table_figures(taken))


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
            zh=f"池为全部 token 的 {POOLS[0]:.0%} 时，准入顺序使命中率从最优的 {min(first.values()):.0%} 到 {max(first.values()):.0%}",
            en=f"In a pool of {POOLS[0]:.0%} of all tokens the order of admission gives from {min(first.values()):.0%} to "
            f"{max(first.values()):.0%} of the best hit rate",
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
