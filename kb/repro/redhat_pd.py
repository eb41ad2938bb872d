"""Red Hat's deployment patterns: are its three sizing figures consistent, and what do FP8 caches weigh?

Backs     redhat-pd/ratio · fp8-kv-half · prefill-capacity
Question  With 30 req/s per prefill GPU and 150 sessions per decode GPU, Little's law makes decode : prefill = 0.2·W for W
          seconds a session holds its slot. Which W gives 3 to 5?
Shows not Cost savings: they need the simulator and prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kb.model import Claim, Figure, Measurement, Point, Series, Text
from kb.repro.harness.exact import Quantity, bounded, by_claim, exact

CLAIMS = ("redhat-pd/ratio", "redhat-pd/fp8-kv-half", "redhat-pd/prefill-capacity")
LEVELS = ("derived",)
NEEDS = ()
OUTPUT = 200
"""Mean output tokens in the article's example."""


def workers_ratio(prefill_rate: float, sessions: float, tpot_ms: float, output: float) -> float:
    """Decode workers per prefill worker.

    Args:
        prefill_rate: Requests per second one prefill worker covers.
        sessions: Concurrent sessions one decode worker covers.
        tpot_ms: Milliseconds per output token.
        output: Output tokens per request.
    """
    return output * tpot_ms / 1000 * prefill_rate / sessions


def workers_by_counting(prefill_rate: float, sessions: float, tpot_ms: float, output: float) -> float:
    """The same for an arrival rate of 3,000 req/s, by counting workers and sessions."""
    rate = 3000.0
    in_flight = rate * output * tpot_ms / 1000
    return (in_flight / sessions) / (rate / prefill_rate)


def half(fp8_bytes: float, bf16_bytes: float) -> float:
    """Bytes of an FP8 cache over a 16-bit one."""
    return np.zeros(int(fp8_bytes), np.uint8).nbytes / np.zeros(int(bf16_bytes) // 2, np.float16).nbytes


def prefill_bound(flops: float, active: float, tokens: float) -> float:
    """Requests per second at the peak FLOP rate."""
    return flops / (2 * active * tokens)


TPOTS = (25, 40, 75, 125)
QUANTITIES = (
    *(
        Quantity(
            "redhat-pd/ratio",
            workers_ratio,
            {"prefill_rate": 30, "sessions": 150, "tpot_ms": tpot, "output": OUTPUT},
            pattern=f"tpot-{tpot}-ms",
            by_hand=workers_by_counting,
        )
        for tpot in TPOTS
    ),
    Quantity("redhat-pd/fp8-kv-half", half, {"fp8_bytes": 131_072 / 2, "bf16_bytes": 131_072}),
    Quantity("redhat-pd/prefill-capacity", prefill_bound, {"flops": 989e12, "active": 3e9, "tokens": 800}),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"peak-flops": bounded(0.0, "the peak FLOP rate of an H100", "H100 峰值算力所允许的速率")})


def figure(taken: Sequence[Measurement], claims: Mapping[str, Claim]) -> tuple[Figure, ...]:
    """Decode workers per prefill worker by TPOT, with the band of the article."""
    ours = sorted(
        (one.case["inputs"]["tpot_ms"], one.samples[0])
        for one in taken
        if one.case["claim"] == "redhat-pd/ratio"
    )
    if not ours:
        return ()
    claim = claims["redhat-pd/ratio"]
    edges = (claim.low or 0.0, claim.high or 0.0)
    inside = [x for x, y in ours if edges[0] * 0.999 <= y <= edges[1] * 1.001]
    span = f"{inside[0]:g}–{inside[-1]:g} ms" if inside else "–"
    band = f"1:{edges[0]:g}–1:{edges[1]:g}"
    return (
        Figure(
            name="workers-by-tpot",
            repro="redhat-pd",
            title=Text(
                zh=f"在所算的各 TPOT 中，{band} 只对应 {span}",
                en=f"Of the TPOTs computed, {band} fits {span}",
            ),
            x=Text(zh="TPOT（ms）", en="TPOT (ms)"),
            y=Text(zh="每个 prefill worker 的 decode worker 数", en="decode workers per prefill worker"),
            series=(
                Series(
                    label=Text(zh="由文中三个数字推得", en="from the article's three figures"),
                    points=tuple(Point(x=x, y=y) for x, y in ours),
                ),
                *(
                    Series(
                        label=Text(zh=f"所述 1:{edge:g}", en=f"stated 1:{edge:g}"),
                        points=(Point(x=TPOTS[0], y=edge), Point(x=TPOTS[-1], y=edge)),
                        predicted=True,
                    )
                    for edge in edges
                ),
            ),
            alt=Text(
                zh="比例随 TPOT 线性增长：" + "；".join(f"{x:g} ms {y:g}" for x, y in ours),
                en="The ratio grows linearly with TPOT: " + "; ".join(f"{x:g} ms {y:g}" for x, y in ours),
            ),
            topics=("cloud-native/inference",),
        ),
    )
