"""Mixture of experts: how many experts does a batch of tokens touch?

Backs     sd-latency/moe-coverage
Question  Each of T tokens is routed to m of M experts. Is the expected share of experts used 1 − (1 − m/M)^T?
Scale     Counts over random routing: `derived`. Real routers are not independent and load fewer experts.

The worked example of ``docs/add-a-reproduction.md``: everything a reproduction needs, in one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Figure, Measurement, Point, Record, Series, Text
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks

CLAIMS = ("sd-latency/moe-coverage",)
LEVELS = ("derived",)
NEEDS = ()
DRAWS = 200
MAX_ERRORS = 5.0
"""Standard errors the mean of the draws may lie from the formula."""


class Case(Record):
    tokens: int
    """T: tokens routed in one step."""
    chosen: int = 8
    """m: experts per token."""
    experts: int = 128
    """M: experts of a layer."""


def cases(_: Scope) -> Iterator[Case]:
    """Batches of 1 to 256 tokens, for many small experts and for few large ones."""
    for tokens in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        yield Case(tokens=tokens)
        yield Case(tokens=tokens, chosen=2, experts=8)


# Reference


def expected_share(case: Case) -> float:
    """The claim's formula. Source: equation 4 of the paper."""
    return float(1 - (1 - case.chosen / case.experts) ** case.tokens)


# Implementation


def used_share(case: Case, rng: np.random.Generator) -> float:
    """Share of experts that at least one token was routed to; each token chooses ``chosen`` different ones."""
    scores = rng.random((case.tokens, case.experts))
    routed = np.argpartition(scores, case.chosen - 1, axis=1)[:, : case.chosen]
    return len(np.unique(routed)) / case.experts


# The functions the harness calls


def check(case: Case, bench: Bench) -> None:
    """One token uses exactly its own experts; no batch uses more than all or than it asks for."""
    share = used_share(case, bench.rng(case))
    least, most = case.chosen / case.experts, min(1.0, case.tokens * case.chosen / case.experts)
    if not least <= share <= most:
        raise WrongResult(
            f"{case.tokens} tokens use a share of {share:.4f} of the experts",
            cause=f"it must lie between {least:.4f} and {most:.4f}",
            remedy="see used_share in kb/repro/moe_coverage.py",
        )


def measure(case: Case, bench: Bench) -> Iterator[Measurement]:
    """Count each draw, beside the formula."""
    drawn = [used_share(case, bench.rng(case, number)) for number in range(DRAWS)]
    yield bench.record("share", case, drawn, expected=expected_share(case))


def agrees(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether every case agrees with the formula within `MAX_ERRORS` standard errors of its draws."""
    del claim
    worst = 0.0
    for one in taken:
        step = 1 / (
            one.case["experts"] * len(one.samples)
        )  # one expert in one draw: the mean cannot be finer
        error = max(float(np.std(one.samples, ddof=1)) / len(one.samples) ** 0.5, step)
        worst = max(worst, abs(float(np.mean(one.samples)) - (one.expected or 0.0)) / error)
    return (
        worst <= MAX_ERRORS,
        f"{len(taken)} cases of {DRAWS} draws lie within {worst:.1f} standard errors of the formula",
        f"{len(taken)} 种情形、每种 {DRAWS} 次抽样，与公式相差不超过 {worst:.1f} 个标准误",
    )


judge = with_checks(agrees=agrees)


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Share of experts used by tokens in the batch, counted and by the formula."""
    series = []
    for experts in sorted({one.case["experts"] for one in taken}):
        here = sorted(
            (one for one in taken if one.case["experts"] == experts), key=lambda m: m.case["tokens"]
        )
        name = Text(zh=f"{experts} 个专家", en=f"{experts} experts")
        counted = tuple(Point(x=one.case["tokens"], y=float(np.mean(one.samples))) for one in here)
        formula = tuple(Point(x=one.case["tokens"], y=one.expected or 0.0) for one in here)
        series.append(Series(label=name, points=counted))
        series.append(
            Series(
                label=Text(zh=f"{name.zh}，公式", en=f"{name.en}, formula"), points=formula, predicted=True
            )
        )
    return (
        Figure(
            name="experts-used",
            repro="moe-coverage",
            title=Text(zh="几十个 token 就用到几乎全部专家", en="A few dozen tokens use almost every expert"),
            x=Text(zh="一步中的 token 数", en="tokens in one step"),
            y=Text(zh="用到的专家占比", en="experts used, share"),
            x_scale="log2",
            series=tuple(series),
            alt=Text(
                zh="用到的专家占比随 token 数上升，抽样与公式重合。",
                en="The share of experts used grows with the tokens; the draws lie on the formula.",
            ),
            topics=("inference/speculative",),
        ),
    )
