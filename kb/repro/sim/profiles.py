"""Seconds of a step from measured times of each layer: what an engine's profiler writes, looked up and interpolated.

Three tables, as LLMServingSim writes them: linear and pointwise layers by tokens, head and sampler by sequences,
attention by (prefill chunk, tokens before it, decoding sequences, KV tokens of each). Times are of one layer, µs.
Attention is looked up as measured, prefill and decode together: their sum would miss that a chunk of 16 tokens beside 64
decodes takes twice the time of the decodes alone.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kb.repro.sim.cost import link_seconds
from kb.repro.sim.csv_rows import read_rows, unreadable
from kb.repro.sim.shapes import ModelShape
from kb.repro.sim.work import Floats, StepWork

ONCE = ("embedding", "final_layernorm")
"""Dense layers a step passes once; all others once per transformer layer."""
TWICE = ("layernorm",)
"""Two in each transformer layer, measured once."""
DENSE = {"act_fn", "down_proj", "embedding", "final_layernorm", "gate_up_proj", "layernorm", "o_proj",
         "qkv_proj", "rotary_emb"}  # fmt: skip
PER_SEQUENCE = {"lm_head", "sampler"}
ATTENTION = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")
MICRO = 1e-6

Slice = tuple[list[int], list["Slice"]] | float
"""Values along one axis and what lies at each: the axes below may differ from value to value."""


def _curves(path: Path, count: str) -> dict[str, tuple[Floats, Floats]]:
    """Counts and µs by layer."""
    found: dict[str, dict[float, float]] = defaultdict(dict)
    for row in read_rows(path, (count, "time_us"), ("layer",)):
        found[row["layer"]][float(row[count])] = float(row["time_us"])
    curves = {}
    for layer, points in found.items():
        keys = sorted(points)
        curves[layer] = (np.array(keys), np.array([points[key] for key in keys]))
    return curves


def line(x: Floats, y: Floats, at: Floats) -> Floats:
    """Linear between points, level below the first, on along the last segment above."""
    out = np.interp(at, x, y)
    if len(x) > 1:
        slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
        out = np.where(at > x[-1], y[-1] + slope * (at - x[-1]), out)
    return np.asarray(out)


def _nest(points: Mapping[tuple[int, ...], float]) -> Slice:
    groups: dict[int, dict[tuple[int, ...], float]] = defaultdict(dict)
    for (head, *rest), value in points.items():
        groups[head][tuple(rest)] = value
    axis = sorted(groups)
    return axis, [_nest(groups[key]) if len(next(iter(groups[key]))) else groups[key][()] for key in axis]


def _look_up(part: Slice, at: Sequence[float]) -> float:
    """Linear along each axis in turn, on its own points; level below the first, on along the last segment above."""
    if isinstance(part, float):
        return part
    axis, below = part
    value, rest = at[0], at[1:]
    right = bisect_left(axis, value)
    if right < len(axis) and axis[right] == value:
        return _look_up(below[right], rest)
    if right == 0 or len(axis) == 1:
        return _look_up(below[0], rest)
    right = min(right, len(axis) - 1)
    low, high = axis[right - 1], axis[right]
    left_time, right_time = _look_up(below[right - 1], rest), _look_up(below[right], rest)
    return left_time + (right_time - left_time) * (value - low) / (high - low)


@dataclass(frozen=True)
class Skew:
    """What unequal KV lengths cost: the share of the way from the time at their mean to the time at the greatest.

    The share is ``base + slope × (longest - mean) / mean``, in times; both by number of decoding sequences.
    """

    decodes: Floats
    base: Floats
    slope: Floats

    def us(self, decodes: int, mean: float, longest: float) -> float:
        """Time of a step whose times at mean and greatest length are these, µs; never less than at the mean."""
        lever = (longest - mean) / mean
        share = np.interp(decodes, self.decodes, self.base) + lever * np.interp(
            decodes, self.decodes, self.slope
        )
        return mean + max(0.0, float(share)) * max(0.0, longest - mean)


def read_skew(path: Path) -> dict[bool, Skew]:
    """By whether a chunk runs beside the decodes: least squares on relative error for each number of sequences.

    Raises:
        BadInput: The table cannot be used.
    """
    found: dict[bool, dict[float, list[tuple[float, ...]]]] = {False: {}, True: {}}
    for row in read_rows(path, ("n", "pc", "t_mean_us", "t_max_us", "t_skew_us")):
        mean, longest, measured = (float(row[f"t_{name}_us"]) for name in ("mean", "max", "skew"))
        if not mean or not measured:
            raise unreadable(path, "a time is zero")
        room = max(longest - mean, 0.0)
        terms = (room / measured, room * room / mean / measured, (measured - mean) / measured)
        found[float(row["pc"]) > 0].setdefault(float(row["n"]), []).append(terms)
    curves = {}
    for mixed, by in found.items():
        tables = [np.array(by[count]) for count in sorted(by)]
        solved = [np.linalg.lstsq(table[:, :2], table[:, 2], rcond=None)[0] for table in tables]
        if solved:
            base, slope = np.array(solved).T
            curves[mixed] = Skew(np.array(sorted(by)), base, slope)
    return curves


@dataclass(frozen=True)
class LayerProfile:
    """Measured times of one model's layers on one GPU, at one tensor-parallel degree."""

    layers: int
    dense: Floats
    """All dense layers of a step by tokens, ``[most tokens + 1]`` s."""
    per_sequence: Floats
    """Head and sampler by sequences, ``[most sequences + 1]`` s."""
    attention: Slice
    """One layer, µs, where all decoding sequences are equally long."""
    skew: dict[bool, Skew] = field(default_factory=dict)
    """By whether a chunk runs beside them; empty where it was not measured."""

    @classmethod
    def read(
        cls, stem: Path, model: ModelShape, *, most_tokens: int = 8192, most_sequences: int = 1024
    ) -> LayerProfile:
        """Read ``<stem>_dense.csv``, ``_per_sequence.csv``, ``_attention.csv`` and, where it is there, ``_skew.csv``.

        Raises:
            BadInput: One is missing, is not such a table, or lacks a layer.
        """
        dense, once = _curves(Path(f"{stem}_dense.csv"), "tokens"), Path(f"{stem}_per_sequence.csv")
        heads = _curves(once, "sequences")
        for have, need, path in (
            (dense, DENSE, Path(f"{stem}_dense.csv")),
            (heads, PER_SEQUENCE, once),
        ):
            if absent := need - have.keys():
                raise unreadable(path, f"it has no {', '.join(sorted(absent))}")
        tokens, sequences = np.arange(most_tokens + 1.0), np.arange(most_sequences + 1.0)
        total = np.zeros(most_tokens + 1)
        for name, (x, y) in dense.items():
            times = 1 if name in ONCE else model.layers * (2 if name in TWICE else 1)
            total += times * line(x, y, tokens)
        head = sum((line(x, y, sequences) for x, y in heads.values()), np.zeros(most_sequences + 1))
        rows = read_rows(Path(f"{stem}_attention.csv"), (*ATTENTION, "time_us"))
        points = {tuple(int(row[name]) for name in ATTENTION): float(row["time_us"]) for row in rows}
        skew = Path(f"{stem}_skew.csv")
        return cls(
            model.layers,
            total * MICRO,
            head * MICRO,
            _nest(points),
            read_skew(skew) if skew.exists() else {},
        )

    def attention_us(self, work: StepWork) -> float:
        """Attention of one layer, µs.

        The table has one chunk per step. Chunks of several sequences count as equal ones with as many tokens and pairs
        in all, and share the fixed part of one launch; what decodes beside them add is read at one chunk of all tokens.
        """
        if not work.prefill_tokens:
            return self.decode_us(work, 0, 0)
        tokens, count = work.prefill_tokens, work.prefill_sequences
        chunk = tokens / count
        before = max(work.pairs / tokens - (chunk + 1) / 2, 0)
        launch = _look_up(self.attention, (1, 0, 0, 0))
        alone = count * _look_up(self.attention, (chunk, before, 0, 0)) - (count - 1) * launch
        if not work.decodes:
            return alone
        merged = max(work.pairs / tokens - (tokens + 1) / 2, 0)
        return alone + self.decode_us(work, tokens, merged) - _look_up(self.attention, (tokens, merged, 0, 0))

    def decode_us(self, work: StepWork, chunk: int, before: float) -> float:
        """Attention of one layer, µs: the step's decoding sequences beside one chunk, with the cost of unequal lengths."""
        mean = work.kv_tokens / work.decodes
        equal = _look_up(self.attention, (chunk, before, work.decodes, mean))
        skew = self.skew.get(chunk > 0)
        if skew is None or work.longest_kv <= mean:
            return equal
        longest = _look_up(self.attention, (chunk, before, work.decodes, work.longest_kv))
        return skew.us(work.decodes, equal, longest)

    def seconds(self, work: StepWork) -> float:
        """Seconds of one step."""
        sequences = work.decodes + work.prefill_sequences
        total = float(self.dense[work.tokens]) + float(self.per_sequence[sequences])
        return total + self.layers * self.attention_us(work) * MICRO


def with_link(
    seconds: Callable[[StepWork], float], model: ModelShape, link: float
) -> Callable[[StepWork], float]:
    """Add what two GPUs say to each other at ``link`` bytes per second; see `kb.repro.sim.cost.link_seconds`."""
    per_token = link_seconds(model, link)
    return lambda work: seconds(work) + per_token * work.tokens


def grid(most_tokens: int, most_sequences: int, most_kv: int) -> Iterator[StepWork]:
    """Steps that span what an engine can do: what a fit to a profile is made on.

    Every mixture that fits of a chunk (none, 16, 32 … ``most_tokens``), tokens before it (none, or as many again),
    decoding sequences (none, 1, 2 … ``most_sequences``) and KV tokens of each (128, 256 … 4096).

    Args:
        most_tokens: The engine's token budget.
        most_sequences: Its most sequences in a step.
        most_kv: KV tokens its memory holds.
    """
    chunks = [0, *(2**k for k in range(4, most_tokens.bit_length()))]
    counts = [0, *(2**k for k in range(most_sequences.bit_length()))]
    for chunk, decodes, kv, again in itertools.product(chunks, counts, (2**k for k in range(7, 13)), (0, 1)):
        tokens, before = chunk + decodes, again * chunk
        repeated = (not decodes and kv > 128) or (again and not chunk)  # noqa: PLR2004  the first of them stands for all
        if not repeated and 0 < tokens <= most_tokens and decodes * kv + chunk + before <= most_kv:
            pairs = chunk * before + chunk * (chunk + 1) // 2
            yield StepWork(tokens, chunk, int(chunk > 0), pairs, decodes, decodes * kv)
