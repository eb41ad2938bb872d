"""Reasons of verdicts: one sentence in English and one in Chinese that a reader can check against the records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kb.model import Claim, Interval, Outcome
from kb.repro.harness.rules import Band, Bands, metric_of

Pair = tuple[str, str]
"""English, Chinese."""


def number(value: float) -> str:
    """Four significant digits, no trailing zeros, never rounded to a different integer part."""
    if value == 0:
        return "0"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if abs(value) >= 1000:  # noqa: PLR2004  thousands are read by their commas
        return f"{value:,.0f}"
    return f"{value:.4g}"


def band(ends: Band) -> str:
    """``0–0.05``; an open end as ≥ or ≤."""
    low, high = ends
    if math.isinf(high):
        return f"≥ {number(low)}"
    if math.isinf(low):
        return f"≤ {number(high)}"
    return f"{number(low)}–{number(high)}"


def span(interval: Interval) -> str:
    """Centre, with the ends where they differ."""
    if interval.low == interval.high:
        return number(interval.value)
    return f"{number(interval.value)} ({number(interval.low)}–{number(interval.high)})"


def untested(claim: Claim) -> Pair:
    """Nothing was measured."""
    plan = f"; planned: {claim.planned}" if claim.planned else ""
    plan_zh = f"；计划：{claim.planned}" if claim.planned else ""
    return f"no measurement of {metric_of(claim) or 'it'} yet{plan}", f"尚无对应的测量{plan_zh}"


def missing(names: Sequence[str]) -> Pair:
    """Some cases of the rule were not measured."""
    listed = ", ".join(names)
    return f"not measured: {listed}; the rule asks for every one", f"规则要求的情形尚未测量：{listed}"


def no_check(name: str) -> Pair:
    """The function a rule names does not exist."""
    return f"its rule names the check {name}, which no reproduction has", f"规则所指的检查 {name} 不存在"


def unfit(claim: Claim, within: Bands) -> Pair:
    """The band does not contain the stated figure."""
    says = band((claim.low or 0.0, claim.high or 0.0)) if claim.low != claim.high else number(claim.low or 0)
    return (
        f"the declared band {band(within.holds)} does not contain the stated {says}: mend the rule, then run",
        f"声明的接受区间 {band(within.holds)} 不含原文数值 {says}：先改规则再运行",
    )


def over(within: Bands, cases: Mapping[str, Interval], outcome: Outcome, more: int | None) -> Pair:
    """Which cases lie in the band and which do not."""
    inside = [n for n, i in cases.items() if within.holds[0] <= i.low and i.high <= within.holds[1]]
    outside = [n for n in cases if n not in inside]
    yes = ", ".join(f"{name} {span(cases[name])}" for name in inside) or "none"
    no = ", ".join(f"{name} {span(cases[name])}" for name in outside)
    ends = band(within.holds)
    lie = "lies" if len(inside) == 1 else "lie"
    text = f"{len(inside)} of {len(cases)} cases {lie} within {ends}: {yes}"
    text_zh = f"{len(cases)} 种情形中 {len(inside)} 种落在 {ends}：{yes if inside else '无'}"
    if outside:
        text += f"; outside: {no}"
        text_zh += f"；之外：{no}"
    return _with_open(text, text_zh, outcome, more)


def grid(
    claim: Claim, within: Bands, whole: Interval, outcome: Outcome, more: int | None, median: Interval | None
) -> Pair:
    """Where the figure lies."""
    where, where_zh = {
        Outcome.HOLDS: ("inside", "落在"),
        Outcome.PARTLY: ("outside", "不在"),
        Outcome.CONTRADICTED: ("outside", "不在"),
        Outcome.INCONCLUSIVE: ("across a border of", "跨越边界"),
    }[outcome]
    ends = band(within.holds)
    metric = metric_of(claim)
    text = f"{metric} {span(whole)} lies {where} {ends}"
    text_zh = f"{metric} {span(whole)} {where_zh} {ends}"
    if outcome is Outcome.PARTLY:
        text += f" but inside {band(within.partly)}"
        text_zh += f"，但在 {band(within.partly)} 内"
    if median is not None:
        text += f"; median of the grid {number(median.value)}"
        text_zh += f"；网格中位数 {number(median.value)}"
    return _with_open(text, text_zh, outcome, more)


def _with_open(text: str, text_zh: str, outcome: Outcome, more: int | None) -> Pair:
    if outcome is not Outcome.INCONCLUSIVE:
        return text, text_zh
    if more is None:
        return f"{text}; more runs would not settle it", f"{text_zh}；再多运行也无法定论"
    return f"{text}; about {more} more samples would settle it", f"{text_zh}；约需再取 {more} 个样本才能定论"


def other_scale(claim: Claim, reason: str, reason_zh: str) -> Pair:
    """A proxy may not contradict."""
    scale = ", ".join(f"{name} {text}" for name, text in claim.conditions.items() if text) or "its scale"
    return (
        f"{reason}; taken on another scale than stated ({scale})",
        f"{reason_zh}；测量规模与原文不同（{scale}）",
    )


def one_session(reason: str, reason_zh: str) -> Pair:
    """A clock needs a second session to contradict."""
    return f"{reason}; one more session would settle it", f"{reason_zh}；需要再一次独立运行才能定论"


def rule_edited(claim: str, changes: str, repro: str) -> Pair:
    """The rule changed after the samples were taken."""
    return (
        f"the rule of {claim} was edited after the samples were taken ({changes}): run kb repro {repro}",
        f"取样之后 {claim} 的规则被修改（{changes}）：请重新运行 kb repro {repro}",
    )


def drifted(factor: float, reason: str, reason_zh: str) -> Pair:
    """The machine's speed moved."""
    return (
        f"{reason}; but the machine's speed changed by a factor of {number(factor)} during the run: run it again",
        f"{reason_zh}；但运行期间机器速度变化了 {number(factor)} 倍：请重新运行",
    )


def throttled(causes: Sequence[str], reason: str, reason_zh: str) -> Pair:
    """The GPU held its clocks back."""
    listed = ", ".join(causes)
    return f"{reason}; the GPU throttled meanwhile ({listed})", f"{reason_zh}；期间 GPU 降频（{listed}）"


def not_vouched(reason: str, reason_zh: str) -> Pair:
    """Only an imported run without its digest speaks to it."""
    return (
        f"{reason}; from an imported run that no digest vouches for",
        f"{reason_zh}；数据来自未经摘要核对的导入运行",
    )


def not_overruled(who: str, to: str) -> Pair:
    """A person's decision that cannot be applied."""
    return (
        f"the decision of {who} for {to!r} was not applied: no such outcome, or no number carries it",
        f"{who} 的改判 {to!r} 未采用：没有这一结论，或没有数据支撑",
    )


def blocked(cause: str) -> Pair:
    """It could not run."""
    return f"could not run: {cause}", f"无法运行：{cause}"
