"""What `kb repro real-survivors` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro.harness.stats import mean_interval
from kb.repro.sim.survivors import expected_freed

NAMES = {
    "streamingllm": Text(zh="StreamingLLM（开头与最近）", en="StreamingLLM (sinks and recent)"),
    "snapkv": Text(zh="SnapKV（最后一窗，平滑）", en="SnapKV (last window, pooled)"),
    "h2o": Text(zh="H2O（累计注意力，一半最近）", en="H2O (accumulated, half recent)"),
    "r-kv": Text(zh="R-KV（重要性减冗余）", en="R-KV (importance less redundancy)"),
    "triattention": Text(zh="TriAttention（RoPE 前三角级数）", en="TriAttention (series before RoPE)"),
}
"""Scorers in the order of the legend."""
PAGES = {
    "per-head": Text(zh="每个 KV head 各有自己的页", en="each KV head has its own pages"),
    "shared-page": Text(zh="三个 KV head 共用一页、各自选择", en="three KV heads share a page, each chooses"),
}
TEXTS = {
    "zh": Text(zh="中文", en="Chinese prose"),
    "en": Text(zh="英文", en="English prose"),
    "code": Text(zh="代码", en="code"),
}
Found = Mapping[tuple[str, str, int], tuple[float, float, float]]
"""(scorer, text, tokens per page) → low, mean, high."""


def draw(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """One figure per way of sharing pages that was measured."""
    found = {pages: _found(taken, pages) for pages in PAGES}
    return tuple(_one(pages, group, taken) for pages, group in found.items() if group)


def _found(
    taken: Sequence[Measurement], pages: str
) -> dict[tuple[str, str, int], tuple[float, float, float]]:
    return {
        (str(m.case["pattern"]), str(m.case["text"]), int(m.case["page_tokens"])): mean_interval(m.samples)
        for m in taken
        if m.metric == "freed_fraction" and m.case.get("pages") == pages
    }


def _one(pages: str, found: Found, taken: Sequence[Measurement]) -> Figure:
    case = next(m.case for m in taken if m.case.get("pages") == pages)
    tokens, kept = int(case["tokens"]), int(case["tokens"]) - int(case["dropped"])
    sizes = sorted({size for _, _, size in found})
    middle = sizes[len(sizes) // 2]
    means = {name: _span(found, name, middle) for name in NAMES}
    chosen = {name: ends for name, ends in means.items() if name != "streamingllm" and ends}
    low, high = min(e[0] for e in chosen.values()), max(e[1] for e in chosen.values())
    bounds = {name: expected_freed(name, tokens, kept, middle) for name in ("uniform", "contiguous")}
    return Figure(
        name=f"real-survivors-{pages}",
        repro="real-survivors",
        title=Text(
            zh=f"{PAGES[pages].zh}：按真实注意力选出的幸存者归还 {low:.0%}–{high:.0%} 的页，"
            f"随机一套为 {bounds['uniform']:.0%}，连续为 {bounds['contiguous']:.0%}",
            en=f"{PAGES[pages].en.capitalize()}: survivors chosen by real attention give back {low:.0%}–{high:.0%} of the "
            f"pages; one random set {bounds['uniform']:.0%}, one stretch {bounds['contiguous']:.0%}",
        ),
        x=Text(zh="每页 token 数", en="tokens per page"),
        y=Text(zh="归还的页占比", en="pages given back, share"),
        x_scale="log2",
        series=(*_lines(found, sizes), *_closed(tokens, kept, sizes)),
        alt=_alt(found, middle, case),
        topics=("inference/kvcache",),
    )


def _span(found: Found, scorer: str, size: int) -> tuple[float, float] | None:
    """Least and greatest mean over the texts."""
    here = [mean for (name, _, at), (_, mean, _) in found.items() if (name, at) == (scorer, size)]
    return (min(here), max(here)) if here else None


def _lines(found: Found, sizes: Sequence[int]) -> list[Series]:
    """Mean over the texts, whiskers from the lowest to the highest interval of a text."""
    lines = []
    for scorer, label in NAMES.items():
        points = []
        for size in sizes:
            here = [ends for (name, _, at), ends in found.items() if (name, at) == (scorer, size)]
            if here:
                middle = sum(mean for _, mean, _ in here) / len(here)
                low, high = min(e[0] for e in here), max(e[2] for e in here)
                points.append(Point(x=size, y=middle, low=low, high=high))
        lines.append(Series(label=label, points=tuple(points)))
    return lines


def _closed(tokens: int, kept: int, sizes: Sequence[int]) -> list[Series]:
    shown = {
        "contiguous": Text(zh="连续，闭式", en="one stretch, closed form"),
        "uniform": Text(zh="随机一套，闭式", en="one random set, closed form"),
    }
    return [
        Series(
            label=label,
            points=tuple(Point(x=size, y=expected_freed(name, tokens, kept, size)) for size in sizes),
            predicted=True,
        )
        for name, label in shown.items()
    ]


def _alt(found: Found, size: int, case: Mapping[str, object]) -> Text:
    parts = {
        text: {name: found[name, text, size] for name in NAMES if (name, text, size) in found}
        for text in TEXTS
    }
    zh = "；".join(
        f"{TEXTS[text].zh} " + "、".join(f"{name} {mean:.0%}" for name, (_, mean, _) in group.items())
        for text, group in parts.items()
    )
    en = "; ".join(
        f"{TEXTS[text].en} " + ", ".join(f"{name} {mean:.0%}" for name, (_, mean, _) in group.items())
        for text, group in parts.items()
    )
    return Text(
        zh=f"SmolLM2-135M，{case['tokens']} 个 token 逐出 {case['dropped']} 个，每页 {size} 个 token 时归还的页：{zh}。",
        en=f"SmolLM2-135M, {case['dropped']} of {case['tokens']} tokens evicted, pages of {size} tokens, given back: {en}.",
    )
