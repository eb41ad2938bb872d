"""What `kb repro sd-latency` draws."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro._sd_checks import load_curve, speed_ups
from kb.repro.sim.sd_law import break_even, engine_ratios, speed_up


def draw(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Speed-up by load, simulated and by the law; the cost that grows with load by draft length."""
    loads = load_curve(taken, "drafted") and load_curve(taken, "plain")
    return (*(_speed_up(taken) if loads else ()), *_load_cost(taken))


def _speed_up(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    c1_ratio, c2_ratio = engine_ratios()
    points = speed_ups(taken)
    (first, most), (last, least) = points[0], points[-1]
    fades = least < 1 < most
    gone = float(np.interp(-1.0, [-seen for _, seen in points], [load for load, _ in points]))
    star = break_even(c1_ratio, c2_ratio)
    grid = [0.02 * step for step in range(1, 31)]
    return (
        Figure(
            name="speed-up-by-load",
            repro="sd-latency",
            title=Text(
                zh=f"投机解码的加速比从负载 {first:.2f} 的 {most:.2f} 到 {last:.2f} 的 {least:.2f}"
                + (f"，在负载 {gone:.2f} 处消失（公式 {star:.2f}）" if fades else ""),
                en=f"The speed-up of speculation goes from {most:.2f} at load {first:.2f} to {least:.2f} at {last:.2f}"
                + (f" and is gone at load {gone:.2f}; the law says {star:.2f}" if fades else ""),
            ),
            x=Text(zh="相对负载 r = 到达率 × C2", en="relative load r = arrival rate × C2"),
            y=Text(zh="加速比（平均端到端延迟之比）", en="speed-up (ratio of mean E2E latency)"),
            series=(
                Series(
                    label=Text(zh="模拟", en="simulated"),
                    points=tuple(Point(x=load, y=seen) for load, seen in points),
                ),
                Series(
                    label=Text(zh="公式", en="law"),
                    points=tuple(Point(x=r, y=speed_up(r, c1_ratio, c2_ratio)) for r in grid),
                    predicted=True,
                ),
                Series(
                    label=Text(zh="无收益", en="no gain"),
                    points=(Point(x=grid[0], y=1), Point(x=grid[-1], y=1)),
                    predicted=True,
                ),
            ),
            alt=Text(
                zh="按负载的加速比："
                + "、".join(f"{load:.2f} 时 {seen:.2f}" for load, seen in points)
                + "。",
                en="Speed-up by load: "
                + ", ".join(f"{seen:.2f} at {load:.2f}" for load, seen in points)
                + ".",
            ),
            topics=("inference/speculative",),
        ),
    )


def _load_cost(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """C2R by draft length, one line per acceptance rate."""
    lines: dict[float, dict[int, float]] = {}
    for one in taken:
        if one.case.get("part") == "ratios" and str(one.case["name"]).startswith("c2"):
            rate, length = float(one.case["acceptance_rate"]), int(one.case["draft_length"])
            lines.setdefault(rate, {})[length] = one.samples[0]
    if not lines:
        return ()
    best = {rate: min(line, key=line.__getitem__) for rate, line in lines.items()}
    over = sum(value > 1 for line in lines.values() for value in line.values())
    total = sum(len(line) for line in lines.values())
    ends = (min(best.values()), max(best.values()))
    return (
        Figure(
            name="load-cost-by-draft-length",
            repro="sd-latency",
            title=Text(
                zh=f"随负载增长的开销之比 C2R：{total} 个点中 {over} 个超过 1；最省的草稿长度为 {ends[0]} 到 {ends[1]}",
                en=f"Ratio of the cost that grows with load, C2R: above 1 at {over} of {total} points; least at draft lengths "
                f"{ends[0]} to {ends[1]}",
            ),
            x=Text(zh="草稿长度 k（token）", en="draft length k (tokens)"),
            y=Text(zh="C2R（投机 / 不投机）", en="C2R (with over without speculation)"),
            series=tuple(
                Series(
                    label=Text(zh=f"接受率 {rate}", en=f"acceptance {rate}"),
                    points=tuple(Point(x=length, y=value) for length, value in sorted(line.items())),
                    predicted=True,
                )
                for rate, line in sorted(lines.items())
            ),
            alt=Text(
                zh="C2R 最小处的草稿长度："
                + "、".join(f"接受率 {rate} 为 {length}" for rate, length in sorted(best.items()))
                + "。",
                en="Draft length of the least C2R: "
                + ", ".join(f"{length} at acceptance {rate}" for rate, length in sorted(best.items()))
                + ".",
            ),
            topics=("inference/speculative",),
        ),
    )
