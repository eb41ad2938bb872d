"""Figures of Tangram, from stored records alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.model import Figure, Measurement, Point, Series, Text

TOPICS = ("inference/kvcache",)
LABELS = {
    "fixed-splits": Text(zh="每个 head 切成同样多块", en="as many parts for every head"),
    "balanced": Text(zh="预先均分工作量", en="equal work dealt ahead of time"),
}


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Skew by batch, and what grouping gives back by law."""
    return (*_skew(taken), *_given_back(taken))


def _skew(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    lines: dict[str, list[Point]] = {}
    for one in taken:
        name, _, batch = str(one.case.get("pattern", "")).partition("-batch-")
        if one.case.get("claim") == "tangram/decode-skew" and name in LABELS:
            ends = {"low": min(one.samples), "high": max(one.samples)}
            lines.setdefault(name, []).append(Point(x=float(batch), y=float(np.median(one.samples)), **ends))
    if set(lines) != set(LABELS):
        return ()
    most, least = (max(point.y for point in lines[name]) for name in LABELS)
    return (
        Figure(
            name="decode-skew",
            repro="tangram",
            title=Text(
                zh=f"不等长的 head：按固定块数切分最多慢 {most:.2f} 倍，均分工作量时 {least:.2f} 倍",
                en=f"Unequal heads cost up to {most:.2f} times the work with a fixed cut, {least:.2f} with equal work",
            ),
            x=Text(zh="batch", en="batch size"),
            y=Text(
                zh="最忙处理器的工作量（相对等长 head）", en="work of the busiest processor over equal heads"
            ),
            x_scale="log2",
            series=tuple(
                Series(label=LABELS[name], points=tuple(sorted(points, key=lambda point: point.x)))
                for name, points in lines.items()
            ),
            alt=Text(
                zh=f"固定块数切分的比值为 {_range(lines['fixed-splits'])}，均分工作量为 {_range(lines['balanced'])}。",
                en=f"The ratio is {_range(lines['fixed-splits'])} with a fixed cut, {_range(lines['balanced'])} with equal work.",
            ),
            topics=TOPICS,
        ),
    )


def _range(points: Sequence[Point]) -> str:
    values = [point.y for point in points]
    return f"{min(values):.2f}–{max(values):.2f}"


LAWS = {
    "few-heads-keep": Text(zh="少数 head 保留", en="few heads keep"),
    "two-bumps": Text(zh="双峰", en="two bumps"),
    "one-bump": Text(zh="单峰", en="one bump"),
}


def _given_back(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Points of full KV that sorting gives back, by mean retention and law."""
    lines: dict[str, list[Point]] = {}
    for one in taken:
        if one.case.get("claim") == "tangram/cluster-reclaim":
            law = next(name for name in LAWS if str(one.case["pattern"]).startswith(name))
            values = [100 * sample for sample in one.samples]
            lines.setdefault(law, []).append(
                Point(
                    x=100 * one.case["inputs"]["mean"],
                    y=float(np.mean(values)),
                    low=min(values),
                    high=max(values),
                )
            )
    if set(lines) != set(LAWS):
        return ()
    sharp = [point.y for name in ("few-heads-keep", "two-bumps") for point in lines[name]]
    flat = [point.y for point in lines["one-bump"]]
    return (
        Figure(
            name="given-back",
            repro="tangram",
            title=Text(
                zh=f"按预算聚类：双峰保留率归还 {min(sharp):.0f}–{max(sharp):.0f} 个百分点，单峰仅 {min(flat):.0f}–{max(flat):.0f}",
                en=f"Grouping like heads gives back {min(sharp):.0f}–{max(sharp):.0f} points of full KV where heads split "
                f"sharply, {min(flat):.0f}–{max(flat):.0f} where they do not",
            ),
            x=Text(zh="平均保留率（%）", en="mean retention (%)"),
            y=Text(zh="归还的 KV（占全部的百分点）", en="KV given back (points of the full cache)"),
            series=tuple(
                Series(label=LAWS[name], points=tuple(sorted(points, key=lambda point: point.x)))
                for name, points in lines.items()
            ),
            alt=Text(
                zh="head 的保留率分成两群时归还得多，集中在均值附近时归还得少。",
                en="Much is given back where heads fall into two groups, little where all are near the mean.",
            ),
            topics=TOPICS,
        ),
    )
