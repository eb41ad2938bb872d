"""What `kb repro real-drafting` draws."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro.harness.stats import mean_interval, median_interval

NAMES = {
    "lookup": Text(zh="查找前文（n-gram）", en="look-up (n-gram)"),
    "4-bit": Text(zh="自身的 4 bit 版本", en="itself at 4 bits"),
    "3-bit": Text(zh="自身的 3 bit 版本", en="itself at 3 bits"),
    "25-layers": Text(zh="只算前 25 层", en="its first 25 layers"),
}


def draw(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Both figures, where there are records for them."""
    return (*_tokens(taken), *_steps(taken))


def _tokens(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    passes = [m for m in taken if m.metric == "tokens_per_pass"]
    if not passes:
        return ()
    lines, formulas, rates = [], [], {}
    for name, label in NAMES.items():
        mine = [m for m in passes if m.case["pattern"] == name]
        lengths = sorted({int(m.case["size"]) for m in mine})
        points, dashed = [], []
        for length in lengths:
            here = [m for m in mine if m.case["size"] == length]
            ends = [mean_interval(m.samples) for m in here]
            low, high = min(e[0] for e in ends), max(e[2] for e in ends)
            points.append(Point(x=length, y=fmean(e[1] for e in ends), low=low, high=high))
            wanted = [m.expected for m in here if m.expected is not None]
            if wanted:
                dashed.append(Point(x=length, y=fmean(wanted)))
        if points:
            lines.append(Series(label=label, points=tuple(points)))
            rates[name] = (points[-1].x, points[-1].y)
        if dashed:
            formula = Text(zh=f"{label.zh}，公式", en=f"{label.en}, formula")
            formulas.append(Series(label=formula, points=tuple(dashed), predicted=True))
    best, worst = max(rates.values(), key=lambda r: r[1]), min(rates.values(), key=lambda r: r[1])
    shown = {name: f"{y:.2f}" for name, (_, y) in rates.items()}
    return (
        Figure(
            name="tokens-per-pass",
            repro="real-drafting",
            title=Text(
                zh=f"小模型实测：草稿长度 {best[0]:.0f} 时每次前向产出 {worst[1]:.1f} 到 {best[1]:.1f} 个 token，取决于草稿来源",
                en=f"Small model, measured: at draft length {best[0]:.0f} a pass yields {worst[1]:.1f} to {best[1]:.1f} tokens, "
                "depending on the drafter",
            ),
            x=Text(zh="草稿长度 k（token）", en="draft length k (tokens)"),
            y=Text(zh="每次前向产出的 token", en="tokens per pass"),
            series=(*lines, *formulas),
            alt=Text(
                zh="SmolLM2-135M 贪心续写三段文本，最长草稿时每次前向的 token："
                + "、".join(f"{NAMES[name].zh} {y}" for name, y in shown.items())
                + "。",
                en="SmolLM2-135M continuing three texts greedily, tokens per pass at the longest drafts: "
                + ", ".join(f"{NAMES[name].en} {y}" for name, y in shown.items())
                + ".",
            ),
            topics=("inference/speculative",),
        ),
    )


def _steps(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    timed = {
        tuple(int(part) for part in str(m.case["timed"]).split("x")): m.samples
        for m in taken
        if m.metric == "duration" and m.case.get("part") == "steps"
    }
    if (1, 1) not in timed:
        return ()
    layers = next(m.case["layers"] for m in taken if m.case.get("part") == "steps")
    base = median(timed[1, 1])
    most = max(timed, key=lambda at: at[0] * at[1])
    factor = median(timed[most]) / base
    series = []
    for tokens in sorted({at[1] for at in timed}):
        points = []
        for (batch, each), samples in sorted(timed.items()):
            if each == tokens:
                low, middle, high = (end / base for end in median_interval(samples))
                points.append(Point(x=batch * each, y=middle, low=low, high=high))
        label = Text(zh=f"每请求 {tokens} 个 token", en=f"{tokens} tokens per request")
        series.append(Series(label=label, points=tuple(points)))
    return (
        Figure(
            name="step-cost",
            repro="real-drafting",
            title=Text(
                zh=f"CPU 上 {layers} 层的一步：{most[0]} 个请求各验证 {most[1]} 个 token，耗时为单请求单 token 的 {factor:.1f} 倍",
                en=f"A step of {layers} layers on a CPU: {most[0]} requests of {most[1]} tokens take {factor:.1f} times as long as "
                "one of one",
            ),
            x=Text(zh="一步中的 token：batch × (k + 1)", en="tokens in the step: batch × (k + 1)"),
            y=Text(zh="耗时 / 单请求单 token", en="time over that of one request, one token"),
            x_scale="log2",
            y_scale="log",
            series=tuple(series),
            alt=Text(
                zh="耗时之比："
                + "、".join(f"{b}×{t} 为 {median(s) / base:.1f}" for (b, t), s in sorted(timed.items()))
                + "。未在 GPU 上运行。",
                en="Ratios of time: "
                + ", ".join(f"{median(s) / base:.1f} at {b}×{t}" for (b, t), s in sorted(timed.items()))
                + ". Not run on a GPU.",
            ),
            topics=("inference/speculative",),
        ),
    )
