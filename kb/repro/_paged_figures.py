"""What `kb repro paged-eviction` draws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kb.model import Figure, Measurement, Point, Series, Text


class _At(NamedTuple):
    """The point of a record, see `kb.repro.paged_eviction.Eviction`."""

    pattern: str
    page_tokens: int
    context: int
    evicted: int


def _at(one: Measurement) -> _At:
    return _At(*(one.case[name] for name in _At._fields))


def draw(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Freed share by page size and by share evicted, one line per shape, closed forms dashed."""
    freed = [(_at(m), m) for m in taken if m.metric == "freed_fraction"]
    if not freed:
        return ()
    point = freed[0][0]
    by_size = [(c, m) for c, m in freed if (c.context, c.evicted) == (point.context, point.evicted)]
    by_share = [(c, m) for c, m in freed if (c.context, c.page_tokens) == (point.context, point.page_tokens)]
    ends = sorted(_means(by_size, point).values()) or [0.0]
    least, most = f"{ends[0]:.0%}", f"{ends[-1]:.0%}"
    return (
        Figure(
            name="freed-by-page-size",
            repro="paged-eviction",
            title=Text(
                zh=f"逐出 {point.evicted:,} / {point.context:,} 个 token 后，按幸存 token 的形状归还 {least} 到 {most} 的页",
                en=f"After evicting {point.evicted:,} of {point.context:,} tokens {least} to {most} of the pages come back, by "
                "the shape of the survivors",
            ),
            x=Text(zh="每页 token 数", en="tokens per page"),
            y=Text(zh="归还的页占比", en="pages given back, share"),
            x_scale="log2",
            series=tuple(_lines(by_size, "page_tokens")),
            alt=_alt(by_size, point),
            topics=("inference/kvcache",),
        ),
        Figure(
            name="freed-by-eviction",
            repro="paged-eviction",
            title=Text(
                zh=f"每页 {point.page_tokens} 个 token：逐出 {point.evicted / point.context:.0%} 时归还 {least} 到 {most} 的页",
                en=f"Pages of {point.page_tokens} tokens: with {point.evicted / point.context:.0%} evicted {least} to {most} of the "
                "pages come back",
            ),
            x=Text(zh="逐出的 token 占比", en="tokens evicted, share"),
            y=Text(zh="归还的页占比", en="pages given back, share"),
            series=tuple(_lines(by_share, "evicted_fraction")),
            alt=_alt(by_share, point),
            topics=("inference/kvcache",),
        ),
    )


SHOWN = {
    "contiguous": Text(zh="只留最近的连续 token", en="the most recent tokens"),
    "runs-7": Text(zh="连续 7 个一段", en="runs of 7"),
    "runs-4": Text(zh="连续 4 个一段", en="runs of 4"),
    "uniform": Text(zh="随机，各 head 相同", en="random, one set for all heads"),
    "per-head-8": Text(zh="8 个 KV head 各自随机", en="random for each of 8 KV heads"),
}
"""Shapes a figure shows, from most to least freed."""


def _lines(freed: Iterable[tuple[_At, Measurement]], x: str) -> Iterator[Series]:
    for pattern, label in SHOWN.items():
        points: dict[float, tuple[list[float], float]] = {}
        for case, one in freed:
            if case.pattern == pattern:
                at = case.page_tokens if x == "page_tokens" else case.evicted / case.context
                samples, _ = points.setdefault(float(at), ([], one.expected or 0.0))
                samples.extend(one.samples)
        if points:
            ordered = sorted(points.items())
            counted = tuple(
                Point(x=at, y=float(np.mean(ys)), low=min(ys), high=max(ys)) for at, (ys, _) in ordered
            )
            theory = tuple(Point(x=at, y=expected) for at, (_, expected) in ordered)
            yield Series(label=label, points=counted)
            yield Series(
                label=Text(zh=f"{label.zh}，闭式", en=f"{label.en}, closed form"),
                points=theory,
                predicted=True,
            )


def _means(freed: Iterable[tuple[_At, Measurement]], point: _At) -> dict[str, float]:
    """Mean share freed at the stated point, by shape."""
    means: dict[str, list[float]] = {}
    for case, one in freed:
        if (case.page_tokens, case.evicted) == (point.page_tokens, point.evicted) and case.pattern in SHOWN:
            means.setdefault(case.pattern, []).extend(one.samples)
    return {name: float(np.mean(values)) for name, values in means.items()}


def _alt(freed: Iterable[tuple[_At, Measurement]], point: _At) -> Text:
    parts = _means(freed, point)
    zh = "；".join(f"{SHOWN[name].zh} {value:.1%}" for name, value in parts.items())
    en = "; ".join(f"{SHOWN[name].en} {value:.1%}" for name, value in parts.items())
    return Text(
        zh=f"每页 {point.page_tokens} 个 token、逐出 {point.evicted:,} / {point.context:,} 时归还的页：{zh}。",
        en=f"Pages given back with {point.page_tokens} tokens per page, {point.evicted:,} of {point.context:,} tokens "
        f"evicted: {en}.",
    )
