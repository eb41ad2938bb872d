"""KVQuant, arxiv:2401.18079: bits with outliers, do a million tokens fit, and what do channels and RoPE change?

Backs     kvquant/ratio-4bit · ratio-3bit · ratio-2bit · 1m · 10m · per-channel · pre-rope
Question  Outliers cost 1 % of (16 + 16) bits. Memory left beside 16-bit weights holds how many tokens at 6.9 times?
          Planted keys with outlier channels are quantised per token and per channel, before and after RoPE.
Shows not Perplexity: of the two ablations only the direction is checked, by squared error. The capacity figures hold
          only at a bare 8 times, for which no quality is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kb.model import Claim, Figure, Measurement, Outcome, Point, Series, Text
from kb.repro.harness.exact import Quantity, by_claim, exact
from kb.repro.harness.judge import Answer
from kb.repro.sim.quantisers import min_max, planted_keys, squared_error, with_rope
from kb.repro.sim.shapes import find_model

CLAIMS = (
    "kvquant/ratio-4bit",
    "kvquant/ratio-3bit",
    "kvquant/ratio-2bit",
    "kvquant/1m",
    "kvquant/10m",
    "kvquant/per-channel",
    "kvquant/pre-rope",
)
LEVELS = ("derived",)
NEEDS = ()
MODEL = find_model("llama-2-7b")  # the shape of LLaMA-7B
MEMORY = 80 * 2**30


def ratio(bits: float, outliers: float, index_bits: float) -> float:
    """16 bits over the bits a number takes with a share ``outliers`` kept at 16 bits plus an index."""
    return 16 / (bits + outliers * (16 + index_bits))


def ratio_by_counting(bits: float, outliers: float, index_bits: float) -> float:
    """The same over ten thousand numbers."""
    total = 0.0
    for number in range(10_000):
        total += bits + (16 + index_bits if number < outliers * 10_000 else 0)
    return 16 * 10_000 / total


def tokens_that_fit(gpus: float, compression: float, memory: float) -> float:
    """Tokens beside 16-bit weights that are split over the GPUs; activations take nothing."""
    room = gpus * memory - MODEL.weight_bytes("bf16")
    return room / (MODEL.kv_token_bytes("bf16") / compression)


def check_fits(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the stated context fits at each compression counted."""
    stated = claim.low or 0.0
    fits = {str(one.case["pattern"]): one.samples[0] for one in taken}
    good = [name for name, tokens in fits.items() if tokens >= stated]
    shown = ", ".join(f"{name} {tokens:,.0f}" for name, tokens in fits.items())
    outcome = (
        Outcome.CONTRADICTED if not good else Outcome.HOLDS if len(good) == len(fits) else Outcome.PARTLY
    )
    return (
        outcome,
        f"tokens that fit beside 16-bit weights: {shown}; stated {stated:,.0f}",
        f"16 bit 权重之外可容纳的 token：{shown}；所述 {stated:,.0f}",
    )


DRAWS, TOKENS, DIM = 6, 512, 128


def channels_gain(rng: np.random.Generator, bits: float, outlier: float, aside: float) -> list[float]:
    """Squared error of keys with a range per token over that with a range per channel, one per draw."""
    found = []
    for _ in range(DRAWS):
        keys = planted_keys(rng, TOKENS, DIM, outlier)
        token, channel = (squared_error(keys, min_max(keys, int(bits), axis, aside)) for axis in (1, 0))
        found.append(token / channel)
    return found


def before_rope_gain(rng: np.random.Generator, bits: float, outlier: float, aside: float) -> list[float]:
    """Squared error with a range per channel after RoPE over that before it, one per draw."""
    found = []
    for _ in range(DRAWS):
        keys = planted_keys(rng, TOKENS, DIM, outlier)
        turned = with_rope(keys)
        after, before = (squared_error(x, min_max(x, int(bits), 0, aside)) for x in (turned, keys))
        found.append(after / before)
    return found


def direction(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the squared error moves the way the stated perplexity does; how far perplexity moves it cannot say."""
    del claim
    spans = {str(one.case["pattern"]): (min(one.samples), max(one.samples)) for one in taken}
    good = [name for name, (least, _) in spans.items() if least > 1]
    shown = ", ".join(f"{name} {least:.2f}–{most:.2f}" for name, (least, most) in spans.items())
    return (
        Outcome.PARTLY if good else Outcome.CONTRADICTED,
        f"squared error falls in every draw of {len(good)} of {len(spans)} cases (times: {shown}); perplexity needs the model",
        f"{len(spans)} 种情形中 {len(good)} 种的均方误差每次都下降（倍数：{shown}）；困惑度须有模型才能检验",
    )


WITHOUT_FIGURE = "only the direction is checked: the stated figure is in perplexity, which needs the model"
QUANTITIES = (
    *(
        Quantity(
            claim,
            compute,
            {"outlier": outlier, "aside": aside, "bits": 3},
            pattern=f"channels-at-{outlier}-{round(100 * aside)}-percent-aside",
            insensitive=WITHOUT_FIGURE,
        )
        for claim, compute in (
            ("kvquant/per-channel", channels_gain),
            ("kvquant/pre-rope", before_rope_gain),
        )
        for outlier in (0, 10, 30)
        for aside in (0, 0.01)
    ),
    *(
        Quantity(
            f"kvquant/ratio-{bits}bit",
            ratio,
            {"bits": bits, "outliers": 0.01, "index_bits": 16},
            by_hand=ratio_by_counting,
        )
        for bits in (4, 3, 2)
    ),
    *(
        Quantity(
            claim,
            tokens_that_fit,
            {"gpus": gpus, "compression": compression, "memory": MEMORY},
            pattern=pattern,
        )
        for claim, gpus in (("kvquant/1m", 1), ("kvquant/10m", 8))
        for compression, pattern in ((6.9, "2-bit-with-outliers"), (8.0, "bare-2-bit"))
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"fits": check_fits, "direction": direction})


def figure(taken: Sequence[Measurement], claims: Mapping[str, Claim]) -> tuple[Figure, ...]:
    """Tokens that fit on one GPU by compression, with what the claim states."""
    stated = claims["kvquant/1m"].low or 0.0
    if not taken:
        return ()
    needed = stated / tokens_that_fit(1, 1, MEMORY)
    grid = [4 + 0.5 * step for step in range(11)]
    fits = tuple(Point(x=c, y=tokens_that_fit(1, c, MEMORY)) for c in grid)
    counted = tuple(
        Point(x=one.case["inputs"]["compression"], y=one.samples[0])
        for one in taken
        if one.case["claim"] == "kvquant/1m"
    )
    return (
        Figure(
            name="tokens-by-compression",
            repro="kvquant",
            title=Text(
                zh=f"一张 80 GB GPU 要放下 {stated:,.0f} token，压缩须达到 {needed:.1f} 倍以上",
                en=f"{stated:,.0f} tokens fit one 80 GB GPU only above {needed:.1f}-fold compression",
            ),
            x=Text(zh="KV 压缩倍数", en="compression of the KV cache (times)"),
            y=Text(zh="可容纳的 token", en="tokens that fit"),
            series=(
                Series(
                    label=Text(
                        zh="2 bit：含离群值 6.9 倍，不含 8 倍", en="2 bits: 6.9 with outliers, 8 without"
                    ),
                    points=counted,
                ),
                Series(label=Text(zh="容量公式", en="capacity formula"), points=fits, predicted=True),
                Series(
                    label=Text(zh=f"所述的 {stated:,.0f}", en=f"the stated {stated:,.0f}"),
                    points=(Point(x=grid[0], y=stated), Point(x=grid[-1], y=stated)),
                    predicted=True,
                ),
            ),
            alt=Text(
                zh="可容纳的 token 随压缩倍数线性增长："
                + "；".join(f"{p.x:g} 倍 {p.y:,.0f}" for p in counted),
                en="Tokens grow in proportion to compression: "
                + "; ".join(f"{p.x:g}-fold {p.y:,.0f}" for p in counted),
            ),
            topics=("inference/kvcache",),
        ),
    )
