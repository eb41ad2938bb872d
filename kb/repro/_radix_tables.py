"""Spheron's two tables of hit rates: what the described workload allows, and which other workloads give the figures.

A share f of N requests begins with P common tokens, u are each request's own; replayed, the same prompts come R times:
``hit = ((f·N − 1)·P + (R − 1)·N·(P + u − 1)) / (R·N·(P + u))``. As described R is 1, and one own token is the case most
favourable to the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Literal

import numpy as np

from kb.model import Claim, Figure, Measurement, Point, Record, Series, Text
from kb.repro.harness.judge import Answer
from kb.repro.sim.prefix_designs import hits_of_both, shared_prompts

PREFIXES, OVERLAPS = (256, 512, 1024, 2048), (20, 40, 60, 80, 95)
TABLE_CLAIMS = (
    *(f"spheron/hit-rate-prefix-{prefix}" for prefix in PREFIXES),
    *(f"spheron/hit-rate-overlap-{share}" for share in OVERLAPS),
)
SLACK, MET = 0.02, 0.015
"""Share of the ceiling granted to rounding; largest difference at which another workload counts as giving a figure."""


class Table(Record):
    """One reading of one figure."""

    part: Literal["table"] = "table"
    claim: str
    stated: float
    """The source's figure, as the claim holds it."""
    pattern: str
    """``described``; ``all-share``: nearly all requests have the prefix; ``replayed-R``: the prompts come R times."""
    prefix: int
    own: int
    sharing: float
    replays: float = 1.0
    requests: int = 200


def table_cases(claims: Mapping[str, Claim]) -> Iterator[Table]:
    """Both tables as described, the first with nearly all sharing, the second replayed."""
    for prefix in PREFIXES:
        claim = claims[f"spheron/hit-rate-prefix-{prefix}"]
        one = Table(
            claim=claim.id, stated=claim.low or 0.0, pattern="described", prefix=prefix, own=1, sharing=0.8
        )
        yield one
        yield one.model_copy(update={"pattern": "all-share", "own": 70, "sharing": 0.945})
    for share in OVERLAPS:
        claim = claims[f"spheron/hit-rate-overlap-{share}"]
        sharing = share / 100
        one = Table(
            claim=claim.id, stated=claim.low or 0.0, pattern="described", prefix=512, own=1, sharing=sharing
        )
        yield one
        for replays in (1.25, 1.5, 2.0):
            update = {"pattern": f"replayed-{replays:g}", "own": 112, "replays": replays}
            yield one.model_copy(update=update)


def expected_hit_rate(case: Table) -> float:
    """Closed form, the first request of the prefix and the last token of a repeated prompt never found."""
    size, count = case.prefix + case.own, case.requests
    again = round((case.replays - 1) * count)
    found = (round(case.sharing * count) - 1) * case.prefix + again * (size - 1)
    return found / ((count + again) * size)


def replayed_hit_rate(case: Table, rng: np.random.Generator) -> float:
    """The same counted in a radix tree with room for everything."""
    prompts = shared_prompts(case.prefix, case.own, case.sharing, case.requests, rng)
    prompts += prompts[: round((case.replays - 1) * case.requests)]
    return hits_of_both(prompts)[0] * 4 / sum(len(key) for key in prompts)


def hit_ceiling(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Contradicted where the described workload cannot reach the figure; other workloads that give it are named."""
    rows = {str(m.case["pattern"]): fmean(m.samples) for m in taken if m.case.get("claim") == claim.id}
    stated = claim.low or 0.0
    if "described" not in rows:
        return None, "the described workload was not replayed", "所述负载尚未回放"
    ceiling = rows.pop("described")
    met = {name: rate for name, rate in rows.items() if abs(rate - stated) <= MET}
    shown = ", ".join(f"{name} {rate:.1%}" for name, rate in rows.items())
    by = (
        f"given within {MET * 100:g} points by: {', '.join(met)}"
        if met
        else "given by none of the other loads tried"
    )
    by_zh = f"相差 {MET * 100:g} 个百分点以内的负载：{'、'.join(met)}" if met else "所试的其他负载都不符"
    text = f"as described at most {ceiling:.1%} of prompt tokens hit, with one own token; stated {stated:.1%}; {by} ({shown})"
    text_zh = f"按所述负载、自有 token 取 1，最多命中 {ceiling:.1%}；所述 {stated:.1%}；{by_zh}（{shown}）"
    return (False if stated > ceiling * (1 + SLACK) else None), text, text_zh


def table_figures(taken: Sequence[Measurement]) -> Iterator[Figure]:
    """Stated figures beside the ceiling and the other loads, one figure per table."""
    tables = [m for m in taken if m.case.get("part") == "table"]
    yield from _one(
        [m for m in tables if "hit-rate-prefix" in m.case["claim"]],
        "prefix",
        "hit-rate-by-prefix",
        Text(zh="共享前缀长度（token）", en="shared prefix (tokens)"),
    )
    yield from _one(
        [m for m in tables if "hit-rate-overlap" in m.case["claim"]],
        "sharing",
        "hit-rate-by-overlap",
        Text(zh="共享前缀的请求占比", en="share of requests with the prefix"),
    )


def _label(pattern: str, case: Mapping[str, object]) -> Text:
    if pattern == "described":
        return Text(zh="按所述负载的上限（自有 1 token）", en="ceiling as described (1 own token)")
    if pattern == "all-share":
        return Text(
            zh=f"{case['sharing']:.1%} 共享，自有 {case['own']} token",
            en=f"{case['sharing']:.1%} share, {case['own']} own tokens",
        )
    return Text(zh=f"prompt 重放 {case['replays']:g} 次", en=f"prompts played {case['replays']:g} times")


def _one(taken: Sequence[Measurement], x: str, name: str, axis: Text) -> Iterator[Figure]:
    lines: dict[str, dict[float, float]] = {}
    labels: dict[str, Text] = {}
    stated: dict[float, float] = {}
    for one in taken:
        at, pattern = float(one.case[x]), str(one.case["pattern"])
        lines.setdefault(pattern, {})[at] = fmean(one.samples)
        labels[pattern] = _label(pattern, one.case)
        stated[at] = float(one.case["stated"])
    if "described" not in lines:
        return
    ceiling = lines["described"]
    over = sum(figure > ceiling[at] * (1 + SLACK) for at, figure in stated.items())
    gaps = {
        pattern: max(abs(line[at] - figure) for at, figure in stated.items() if at in line)
        for pattern, line in lines.items()
        if pattern != "described"
    }
    nearest = min(gaps, key=gaps.__getitem__, default="described")
    yield Figure(
        name=name,
        repro="radixattention",
        title=Text(
            zh=f"{len(stated)} 个所述命中率中有 {over} 个高于所述负载的上限",
            en=f"{over} of {len(stated)} stated hit rates lie above what the described workload allows",
        ),
        x=axis,
        y=Text(zh="命中率", en="hit rate"),
        x_scale="log2" if x == "prefix" else "linear",
        series=(
            Series(label=Text(zh="原文所述", en="stated"), points=_points(stated)),
            *(
                Series(label=labels[pattern], points=_points(line), predicted=pattern == "described")
                for pattern, line in lines.items()
            ),
        ),
        alt=Text(
            zh=f"上限为 {min(ceiling.values()):.0%} 到 {max(ceiling.values()):.0%}；最接近的其他负载是"
            f"“{labels[nearest].zh}”，最多相差 {gaps.get(nearest, 0):.1%}。",
            en=f"The ceiling runs from {min(ceiling.values()):.0%} to {max(ceiling.values()):.0%}; the nearest other load is "
            f"“{labels[nearest].en}”, off by at most {gaps.get(nearest, 0):.1%}.",
        ),
        topics=("inference",),
    )


def _points(line: Mapping[float, float]) -> tuple[Point, ...]:
    return tuple(Point(x=at, y=rate) for at, rate in sorted(line.items()))
