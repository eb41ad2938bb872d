"""Times that can be believed: fresh inputs per repeat, cold caches, poisoned outputs, baseline and candidate in turn.

    warm up every candidate, A B A B …, each repeat with new random inputs
    the cache is flushed outside the timed window, outputs are filled with NaN before and checked after
    the first, a middle and the last output are compared with the reference, so that a cached or skipped result shows
    no sample may lie under the roofline floor: nothing runs faster than its bytes and FLOPs allow
    the machine's speed is watched: clocks and throttling on a GPU, drift from first to last third everywhere

Source: the rules for all reproductions of the project and the failures collected in its design notes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kb.errors import CannotRun, WrongResult

if TYPE_CHECKING:
    from kb.repro.harness.nvml import Watch

MAX_CLOCK_GAP = 0.05
"""Largest share by which the wall clock may disagree with the monotonic one before a run is refused."""
MIN_GAP_S = 0.25
"""Disagreement that is always allowed: time services correct this much."""


@dataclass(frozen=True)
class Candidate:
    """One way to compute the same thing.

    ``prepare`` makes new random inputs, outside the timed window. ``run`` computes; whatever it returns is the output.
    ``verify`` compares an output with the reference for the same inputs and raises `WrongResult`.
    """

    prepare: Callable[[np.random.Generator], Any]
    run: Callable[[Any], Any]
    verify: Callable[[Any, Any], None]
    floor_s: float
    """Least time the bytes and FLOPs allow on this device, see `roofline_floor`; 0 says there is none to state."""
    poison: Callable[[Any], Sequence[Any]] = lambda _: ()
    """Preallocated output buffers among the inputs; they are filled with NaN before each repeat."""


@dataclass(frozen=True)
class Budget:
    """How long to measure."""

    warm_up: int = 10
    repeats: int = 50
    limit_s: float = 20.0
    """Stop after this, but not before ``least`` repeats."""
    least: int = 30


GLANCE = Budget(warm_up=1, repeats=5, limit_s=2.0, least=3)
"""For ``--quick``."""


class Stopwatch(Protocol):
    """Times one call on one device."""

    name: str

    def flush(self) -> None:
        """Empty the caches; not timed."""

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds of one call and what it returned, the device idle before and after."""


class WallClock:
    """For the CPU: the performance counter, caches emptied by walking through a buffer larger than any."""

    name = "wall"

    def __init__(self, tick: Callable[[], float] = time.perf_counter, flush_bytes: int = 64 << 20) -> None:
        self._tick = tick
        self._buffer = np.zeros(flush_bytes // 8)

    def flush(self) -> None:
        """Walk through the buffer."""
        self._buffer += 1.0

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds of one call."""
        began = self._tick()
        output = call()
        return self._tick() - began, output


class CudaClock:
    """For a GPU: events on its stream; the buffer that empties the L2 cache is written before the first event."""

    name = "cuda"

    def __init__(self, flush_bytes: int = 256 << 20) -> None:
        import torch

        self._torch = torch
        self._buffer = torch.empty(flush_bytes // 4, dtype=torch.int32, device="cuda")

    def flush(self) -> None:
        """Overwrite the buffer and wait, so that no part of it falls into the timed window."""
        self._buffer.zero_()
        self._torch.cuda.synchronize()

    def time(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds between two events around one call."""
        began = self._torch.cuda.Event(enable_timing=True)
        ended = self._torch.cuda.Event(enable_timing=True)
        began.record()
        output = call()
        ended.record()
        ended.synchronize()
        return began.elapsed_time(ended) / 1e3, output


@dataclass
class Timed:
    """Whole samples of several candidates that were taken in turn, and what was seen of the machine meanwhile."""

    samples: dict[str, list[float]]
    """Seconds, in the order they were taken; the n-th of each candidate belong together."""
    facts: dict[str, Any] = field(default_factory=dict)


def alternate(
    candidates: Mapping[str, Candidate],
    stopwatch: Stopwatch,
    rng: Callable[[int], np.random.Generator],
    budget: Budget,
    watch: Watch | None = None,
) -> Timed:
    """Time candidates in turn, A B A B, each repeat with new inputs that all of them get.

    Args:
        candidates: By name; they take the same inputs, made by the first one's ``prepare``.
        stopwatch: For the device at hand.
        rng: Random numbers of a repeat by its number.
        budget: How long.
        watch: Samples the GPU's clocks meanwhile.

    Raises:
        WrongResult: Constant inputs, a wrong, unwritten or cached output, or a time under the floor.
        CannotRun: The clock was moved while it ran.
    """
    prepare = next(iter(candidates.values())).prepare
    for number in range(budget.warm_up):
        inputs = prepare(rng(-1 - number))
        outputs = {id(buffer) for one in candidates.values() for buffer in one.poison(inputs)}
        _refuse_constant([array for array in _arrays(inputs) if id(array) not in outputs])
        for one in candidates.values():
            one.run(inputs)
    timed = Timed({name: [] for name in candidates})
    wall, steady = time.time(), time.monotonic()
    for number in range(budget.repeats):
        inputs = prepare(rng(number))
        is_last = number == budget.repeats - 1 or (
            number + 1 >= budget.least and time.monotonic() - steady >= budget.limit_s
        )
        must_verify = is_last or number in {0, budget.least // 2}
        for name, one in candidates.items():
            seconds = _one_repeat(name, one, inputs, stopwatch, must_verify=must_verify)
            timed.samples[name].append(seconds)
        if is_last:
            break
    _refuse_moved_clock(time.time() - wall, time.monotonic() - steady)
    timed.facts = {"clock": stopwatch.name, "drift": drift(timed.samples)}
    if watch is not None:
        timed.facts |= watch.seen()
    return timed


def _one_repeat(name: str, one: Candidate, inputs: Any, stopwatch: Stopwatch, *, must_verify: bool) -> float:
    buffers = list(one.poison(inputs))
    for buffer in buffers:
        _fill(buffer, float("nan"))
    stopwatch.flush()
    seconds, output = stopwatch.time(lambda: one.run(inputs))
    if not seconds > 0 or seconds < one.floor_s:
        raise WrongResult(
            f"{name}: {seconds:.3e} s is no possible time",
            cause=f"its bytes and FLOPs need at least {one.floor_s:.3e} s on this device"
            if seconds > 0
            else "the clock stood still or went backwards",
            remedy="the work was skipped or cached, the floor is wrong, or the clock is",
        )
    for buffer in [*buffers, *_arrays(output)]:
        if _has_nan(buffer):
            raise WrongResult(
                f"{name}: its output holds NaN",
                cause="part of the poisoned output was never written, or the result is not finite",
                remedy="check the masks and the tail of the kernel",
            )
    if must_verify:
        one.verify(inputs, output)
    return seconds


def _arrays(value: Any) -> list[Any]:
    """Arrays and tensors in an input or output, at any depth of tuples, lists and dicts."""
    if isinstance(value, dict):
        return [array for part in value.values() for array in _arrays(part)]
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in _arrays(part)]
    return [value] if hasattr(value, "dtype") and hasattr(value, "shape") else []


def _is_float(array: Any) -> bool:
    return "float" in str(array.dtype)


def _fill(array: Any, value: float) -> None:
    if _is_float(array):
        array.fill_(value) if hasattr(array, "fill_") else array.fill(value)


def _has_nan(array: Any) -> bool:
    return _is_float(array) and bool((array != array).any())  # noqa: PLR0124  NaN differs from itself, in numpy and torch


def _refuse_constant(arrays: Sequence[Any]) -> None:
    """Refuse inputs without variety: zeros draw less power and compress, so their times are not times."""
    for array in arrays:
        size = int(np.prod(tuple(array.shape)))
        if _is_float(array) and size > 1 and not bool((array != array.reshape(-1)[0]).any()):
            raise WrongResult(
                "the inputs are constant",
                cause=f"an input of shape {tuple(array.shape)} holds one value only",
                remedy="draw it from a normal distribution; preallocated outputs belong in poison",
            )


def _refuse_moved_clock(wall_s: float, steady_s: float) -> None:
    gap = abs(wall_s - steady_s)
    if gap > max(MIN_GAP_S, MAX_CLOCK_GAP * steady_s):
        raise CannotRun(
            "the measurement was dropped",
            cause=f"the clock was moved while it ran: {wall_s:.2f} s passed by the wall clock, {steady_s:.2f} s by the "
            "monotonic one",
            remedy="run it again when the clock is steady",
        )


def drift(samples: Mapping[str, Sequence[float]]) -> float:
    """How much slower the last third was than the first, as a factor: the largest of all candidates, 1 for steady."""
    factors = []
    for values in samples.values():
        third = max(1, len(values) // 3)
        first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
        factors.append(max(first, last) / min(first, last))
    return round(max(factors, default=1.0), 4)


def roofline_floor(num_bytes: float, flops: float, peaks: tuple[float, float]) -> float:
    """Least seconds for some bytes and FLOPs.

    Args:
        num_bytes: Bytes that must move at least once between memory and the device.
        flops: Floating point operations.
        peaks: Bytes per second and FLOP per second that the device cannot exceed.
    """
    bandwidth, compute = peaks
    return max(num_bytes / bandwidth, flops / compute)
