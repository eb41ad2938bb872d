"""TurboQuant, arxiv:2504.19874: how large is the error of an optimal scalar quantiser on a random sphere?

Backs     turboquant/mse-b1 … b4 · gap-2.7 · prod-b1 … b4 · bias-2-over-pi
Question  After a random rotation a coordinate of a unit vector has a known density. Lloyd and Max's quantiser for it is
          solved by quadrature at head dim 128 and drawn as a check.
Shows not Task quality, or speed. The stated recipe of 32 channels at 3 bits and 96 at 2 is 2.25 bits, not 2.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kb.errors import WrongResult
from kb.model import Figure, Measurement, Point, Series, Text
from kb.repro.harness.bench import Bench
from kb.repro.harness.exact import Point as Point_
from kb.repro.harness.exact import Quantity, by_claim, exact
from kb.repro.sim.quantisers import codebook

CLAIMS = (
    "turboquant/mse-b1",
    "turboquant/mse-b2",
    "turboquant/mse-b3",
    "turboquant/mse-b4",
    "turboquant/gap-2.7",
    "turboquant/prod-b1",
    "turboquant/prod-b2",
    "turboquant/prod-b3",
    "turboquant/prod-b4",
    "turboquant/bias-2-over-pi",
)
LEVELS = ("derived",)
NEEDS = ()
CLOSE = 0.01
"""Relative difference that the draws may show."""


def squared_error(bits: float, dim: float) -> float:
    """Mean squared error of a unit vector; 0 bits keep nothing."""
    return codebook(int(bits), int(dim))[1] if bits else 1.0


def drawn_error(bits: float, dim: float) -> float:
    """The same on 4,096 of random unit vectors, fixed seed."""
    rng = np.random.default_rng(20_250_428)
    vectors = rng.standard_normal((4096, int(dim)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    levels = np.array(codebook(int(bits), int(dim))[0])
    nearest = np.searchsorted((levels[1:] + levels[:-1]) / 2, vectors)
    return float(np.sum((vectors - levels[nearest]) ** 2) / len(vectors))


def gap(bits: float, dim: float) -> float:
    """Error over the information-theoretic bound ``4^-bits``."""
    return squared_error(bits, dim) * 4**bits


def product_error(bits: float, dim: float) -> float:
    """Inner-product error times d of the two-stage scheme: one bit goes to the sign sketch of the residual.

    ``(π/2) · MSE(bits - 1)``, for unit vectors; the exact variance subtracts a term of order 1/d.
    """
    return math.pi / 2 * squared_error(bits - 1, dim)


def shrinkage(dim: float) -> float:
    """Factor by which the one-bit quantiser that is best for squared error shrinks inner products."""
    level = codebook(1, int(dim))[0][1]
    return level * math.sqrt(dim) * math.sqrt(2 / math.pi) * _mean_size(dim)


def _mean_size(dim: float) -> float:
    """Mean of |x|·√d for a coordinate over its Gaussian limit √(2/π)."""
    log = math.lgamma(dim / 2) - math.lgamma((dim + 1) / 2)
    return math.exp(log) * math.sqrt(dim / math.pi) / math.sqrt(2 / math.pi)


DIM = 128
QUANTITIES = (
    *(
        Quantity(f"turboquant/mse-b{bits}", squared_error, {"bits": bits, "dim": DIM}, by_hand=None)
        for bits in (1, 2, 3, 4)
    ),
    *(
        Quantity("turboquant/gap-2.7", gap, {"bits": bits, "dim": DIM}, pattern=f"{bits}-bit")
        for bits in (1, 2, 3, 4, 6)
    ),
    *(
        Quantity(f"turboquant/prod-b{bits}", product_error, {"bits": bits, "dim": DIM})
        for bits in (1, 2, 3, 4)
    ),
    Quantity("turboquant/bias-2-over-pi", shrinkage, {"dim": DIM}),
)

cases, _, measure = exact(QUANTITIES)


def check(case: Point_, bench: Bench) -> None:
    """Compare the quadrature with 100,000 drawn coordinates."""
    del bench
    bits = case.inputs.get("bits", 1)
    if case.claim.startswith("turboquant/mse"):
        solved, drawn = squared_error(bits, DIM), drawn_error(bits, DIM)
        if not abs(solved - drawn) <= CLOSE * drawn:
            raise WrongResult(
                f"turboquant: {bits:g}-bit error {solved:.5f} is not the drawn {drawn:.5f}",
                cause="the quadrature or the codebook is wrong",
                remedy="read codebook() and drawn_error(); nothing was stored",
            )


judge = by_claim()


def figure(taken: Sequence[Measurement]) -> tuple[Figure, ...]:
    """Error by bits beside the bound and the listed figures."""
    ours = {
        int(one.case["inputs"]["bits"]): one.samples[0]
        for one in taken
        if str(one.case["claim"]).startswith("turboquant/mse")
    }
    if not ours:
        return ()
    bits = sorted(ours)
    bound = tuple(Point(x=b, y=4.0**-b) for b in bits)
    return (
        Figure(
            name="error-by-bits",
            repro="turboquant",
            title=Text(
                zh="最优标量量化的误差约为下界的 1.4 到 2.4 倍",
                en="The optimal scalar quantiser errs 1.4 to 2.4 times the bound",
            ),
            x=Text(zh="每坐标比特数", en="bits per coordinate"),
            y=Text(zh="单位向量的均方误差", en="mean squared error of a unit vector"),
            y_scale="log",
            series=(
                Series(
                    label=Text(zh="计算值，d = 128", en="computed, d = 128"),
                    points=tuple(Point(x=b, y=ours[b]) for b in bits),
                ),
                Series(label=Text(zh="信息论下界 4⁻ᵇ", en="bound 4⁻ᵇ"), points=bound, predicted=True),
            ),
            alt=Text(
                zh="误差随比特数指数下降，略高于信息论下界，且倍数随比特数缓慢增大。",
                en="The error falls exponentially with bits, a little above the bound, by a factor that grows slowly.",
            ),
            topics=("inference/kvcache",),
        ),
    )
