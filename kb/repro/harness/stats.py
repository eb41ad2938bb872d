"""Intervals from whole samples. 95 % everywhere; random resampling is seeded by the samples, so it repeats exactly.

mean, ratio, paired ratio    studentised bootstrap; Student's t for fewer than nine samples
median, percentile   order statistics, interpolated between ranks
percentile over runs  whole runs as clusters
counts that never vary   a point
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kb.files import digest

CONFIDENCE = 0.95
RESAMPLES = 2_000
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, 1.96 + 2.5 / degrees is within 0.001."""
FEW = 8
"""So few samples are not resampled: Student's t."""
Interval = tuple[float, float, float]
"""Low, centre, high."""
Floats = np.ndarray[Any, np.dtype[np.float64]]


def _generator(*samples: Floats) -> np.random.Generator:
    return np.random.default_rng(int(digest([list(map(float, part)) for part in samples])[:16], 16))


def mean_interval(samples: Sequence[float] | Floats) -> Interval:
    """Mean with its studentised bootstrap interval; a point where the samples never vary or there is one."""
    values = np.sort(np.asarray(samples, dtype=np.float64))  # so that the order of records changes nothing
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if values.size > 1 else 0.0
    if spread <= abs(mean) * 1e-12:
        return (mean, mean, mean)
    if values.size <= FEW:
        half = student(values.size - 1) * spread / math.sqrt(values.size)
        return (mean - half, mean, mean + half)
    drawn = values[_generator(values).integers(values.size, size=(RESAMPLES, values.size))]
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(values.size)
    error = spread / math.sqrt(values.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn.mean(axis=1) - mean) / errors
    return _studentised(mean, error, t)


def student(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t."""
    return STUDENT[degrees - 1] if degrees <= len(STUDENT) else 1.96 + 2.5 / degrees


def _studentised(centre: float, error: float, t: Floats) -> Interval:
    usable = t[np.isfinite(t)]
    low, high = np.quantile(usable, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return (centre - float(high) * error, centre, centre - float(low) * error)


def ratio_interval(numerator: Sequence[float] | Floats, denominator: Sequence[float] | Floats) -> Interval:
    """Ratio of the means of two independent sets of samples, with its studentised bootstrap interval.

    Taken on the logarithm, so that exchanging the two inverts the interval. Both means must be positive; where they are
    not, or nothing varies, the interval is a point.
    """
    top, bottom = (np.sort(np.asarray(part, dtype=np.float64)) for part in (numerator, denominator))
    ratio = float(top.mean() / bottom.mean())
    error = math.hypot(_relative_error(top), _relative_error(bottom))
    if ratio <= 0 or error <= 1e-12:  # noqa: PLR2004  rounding of equal samples
        return (ratio, ratio, ratio)
    fewest = min(part.size for part in (top, bottom) if part.size > 1)
    if fewest <= FEW:
        reach = math.exp(student(fewest - 1) * error)
        return (ratio / reach, ratio, ratio * reach)
    random = _generator(top, bottom)
    drawn = [part[random.integers(part.size, size=(RESAMPLES, part.size))] for part in (top, bottom)]
    means = [part.mean(axis=1) for part in drawn]
    spreads = [part.std(axis=1, ddof=min(1, part.shape[1] - 1)) / math.sqrt(part.shape[1]) for part in drawn]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.hypot(spreads[0] / means[0], spreads[1] / means[1])
        t = (np.log(means[0] / means[1]) - math.log(ratio)) / errors
    low, _, high = _studentised(math.log(ratio), error, t)
    return (math.exp(low), ratio, math.exp(high))


def _relative_error(values: Floats) -> float:
    """Standard error of the mean over the mean."""
    if values.size < 2:  # noqa: PLR2004  one sample has no spread
        return 0.0
    return float(values.std(ddof=1)) / math.sqrt(values.size) / abs(float(values.mean()))


def paired_interval(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> Interval:
    """Ratio first / second of samples taken in turn (A B A B): the mean of the paired log ratios, back from the log.

    What drifts over a run hits both of a pair and cancels.

    Raises:
        ValueError: The two differ in length.
    """
    top, bottom = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if top.shape != bottom.shape:
        raise ValueError(f"{top.size} and {bottom.size} samples are no pairs")
    low, centre, high = mean_interval(np.log(top / bottom))
    return (math.exp(low), math.exp(centre), math.exp(high))


def difference_interval(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> Interval:
    """Mean of first − second, pair by pair: the same requests under two policies, or the same seed.

    Raises:
        ValueError: The two differ in length.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise ValueError(f"{one.size} and {other.size} samples are no pairs")
    return mean_interval(one - other)


def pooled_interval(seeds: Sequence[Sequence[float] | Floats], share: float) -> Interval:
    """A percentile over several independent runs whose samples are correlated within a run, as latencies are.

    The centre pools all samples. Runs, never single samples, tell the spread: from the share of each run that lies below
    the centre follows, with Student's t, how far the true share may be off; these two shares are looked up in the pool
    (Woodruff's interval with runs as clusters).

    Args:
        seeds: Samples of each run; ten or more runs, warm-up already dropped.
        share: Percentile as a share, 0..1.

    Raises:
        ValueError: Fewer than two runs.
    """
    runs = [np.asarray(run, dtype=np.float64) for run in seeds]
    if len(runs) < 2:  # noqa: PLR2004  one run has no spread between runs
        raise ValueError("one run says nothing of the spread between runs")
    pool = np.sort(np.concatenate(runs))
    centre = float(np.quantile(pool, share))
    weights = np.array([run.size for run in runs]) / pool.size * len(runs)
    below = np.sort([float(np.mean(run <= centre)) for run in runs] * weights)
    half = student(len(runs) - 1) * float(np.std(below, ddof=1)) / math.sqrt(len(runs))
    ends = np.quantile(pool, [max(0.0, share - half), min(1.0, share + half)])
    return (min(float(ends[0]), centre), centre, max(float(ends[1]), centre))


def median_interval(samples: Sequence[float] | Floats) -> Interval:
    """Median with its order-statistic interval."""
    return percentile_interval(samples, 0.5)


def percentile_interval(samples: Sequence[float] | Floats, share: float) -> Interval:
    """A percentile with its order-statistic interval: which ranks enclose it follows from the binomial law alone.

    Between two ranks it is interpolated so that the stated confidence is met rather than exceeded. With too few
    samples for 95 % the ends are the least and the greatest sample.

    Args:
        samples: Independent samples.
        share: Percentile as a share, 0..1: 0.99 for P99.
    """
    values = np.sort(np.asarray(samples, dtype=np.float64))
    centre = float(np.quantile(values, share))
    below = _binomial_cdf(values.size, share)
    tail = (1 - CONFIDENCE) / 2
    low = _rank_value(values, below, tail)
    high = _rank_value(values, below, 1 - tail)
    return (min(low, centre), centre, max(high, centre))


def _binomial_cdf(n: int, share: float) -> Floats:
    """P(at most k of n samples lie below the percentile), k = 0..n−1."""
    k = np.arange(n, dtype=np.float64)
    log_pick = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n)])
    mass = np.exp(log_pick + k * math.log(share) + (n - k) * math.log1p(-share))
    capped: Floats = np.minimum(np.cumsum(mass), 1.0)
    return capped


def _rank_value(values: Floats, below: Floats, level: float) -> float:
    """Value at the (fractional) rank whose binomial probability is ``level``."""
    rank = float(np.interp(level, below, np.arange(values.size)))
    return float(np.interp(rank, np.arange(values.size), values))


def more_runs(low: float, value: float, high: float, border: float, n: int) -> int | None:
    """How many more samples would pull the interval off a border, if the centre stays where it is.

    The width shrinks with the root of n. None where no number of runs would: the centre is on the border.
    """
    distance = abs(value - border)
    half = max(value - low, high - value)
    if distance == 0 or half == 0:
        return None
    needed = math.ceil(n * (half / distance) ** 2) + 1
    return max(1, needed - n) if needed < 10**7 else None
