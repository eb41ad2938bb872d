"""Three real vLLM 0.19 runs, replayed: the gate between a simulator and an opinion.

A run gives arrivals and lengths, which are its workload, and its measured times, which are only compared with. Step times
come from the tables its hardware was profiled with, as they are or through the additive roofline fitted to them. One
number is neither: the bandwidth of the link between the two GPUs of one run, which nobody profiled.

What decides the error: arrivals are the moments the engine queued a request (``queued_ts``, the anchor of the published
figures); one page of the pool is never used; steps are planned one ahead; prefix caching is on, so that a preempted
request finds again what was not evicted. Runs, profiles and the published errors: github.com/casys-kaist/LLMServingSim
(MIT), at the commit in ``kb/datasets/llmservingsim.toml``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kb.repro.sim.cost import Roofline, add_link, step_cost
from kb.repro.sim.csv_rows import unreadable
from kb.repro.sim.fit import fit_roofline
from kb.repro.sim.invariants import require
from kb.repro.sim.loop import simulate
from kb.repro.sim.profiles import LayerProfile, grid, with_link
from kb.repro.sim.queueing import Gate
from kb.repro.sim.request_files import build, json_lines
from kb.repro.sim.shapes import ModelShape, find_hardware, find_model
from kb.repro.sim.sizing import CONTEXT_BYTES
from kb.repro.sim.work import Cost, Engine, Floats, Ints, Requests

PAGE = 16
UTILIZATION = 0.9
"""Share of the memory vLLM 0.19 takes by default."""
LINK = 16e9
"""Bytes per second between two GPUs over PCIe: LLMServingSim's own default, taken as it is; fitted to nothing here."""
ROOFLINE_BAR = 0.10


@dataclass(frozen=True)
class RealRun:
    """One run of a real engine."""

    name: str
    folder: str
    """Below ``llmservingsim/`` in the data folder."""
    stem: str
    """First part of the names of the profile's tables."""
    gpu: str
    ttft_bar: float
    """Largest relative error of the mean TTFT with layer profiles."""
    published: tuple[float, float, float]
    """What LLMServingSim 2.0 states as its own error on mean TTFT, TPOT and E2E."""
    median_bar: float | None = None
    """Of the median TTFT."""


RUNS = (
    RealRun("RTX 4090, Llama-3.1-8B", "rtx4090_llama31-8b", "profile", "rtx-4090", 0.05, (0.006, 0.002, 0.005)),
    RealRun("RTX PRO 6000, Llama-3.1-8B", "rtxpro6000_llama31-8b", "profile", "rtx-pro-6000", 0.10,
            (-0.040, -0.010, -0.018), 0.15),
    RealRun("2 × RTX PRO 6000, Qwen3-32B", "rtxpro6000_qwen3-32b", "profile_tp2", "rtx-pro-6000", 0.05,
            (0.013, 0.008, 0.010)),
)  # fmt: skip
TPOT_BAR = E2E_BAR = 0.05


@dataclass(frozen=True)
class Observed:
    """Latencies of one run, real or simulated, ``[n]`` s each."""

    ttft: Floats
    tpot: Floats
    e2e: Floats

    @classmethod
    def of(cls, arrival: Floats, first: Floats, last: Floats, output: Ints) -> Observed:
        """From times and numbers of tokens."""
        several = output > 1
        return cls(first - arrival, ((last - first)[several] / (output[several] - 1)), last - arrival)


@dataclass(frozen=True)
class Loaded:
    """A run as it is replayed."""

    run: RealRun
    stem: Path
    model: ModelShape
    num_gpus: int
    requests: Requests
    engine: Engine
    real: Observed


def files(folder: Path) -> list[Path]:
    """The files a replay reads, below the data folder."""
    names = [(run, f"{run.stem}_{table}.csv") for run in RUNS
             for table in ("dense", "per_sequence", "attention", "skew")]  # fmt: skip
    names += [(run, name) for run in RUNS for name in ("meta.json", "requests.jsonl")]
    return [folder / "llmservingsim" / run.folder / name for run, name in names]


def load(run: RealRun, folder: Path) -> Loaded:
    """Read a run.

    Args:
        run: Which.
        folder: The data folder.

    Raises:
        BadInput: A file cannot be used.
    """
    home = folder / "llmservingsim" / run.folder
    settings, blocks = _settings(home / "meta.json")
    model = find_model(settings["model"].rpartition("/")[2])
    num_gpus = int(settings["tensor_parallel_size"])
    entries = [entry for _, entry in json_lines(home / "requests.jsonl")]
    try:
        times = np.array([[float(entry[name]) for name in ("queued_ts", "first_token_ts", "last_token_ts")]
                          for entry in entries])  # fmt: skip
        lengths = [(int(entry["input_toks"]), int(entry["output_toks"])) for entry in entries]
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(home / "requests.jsonl", f"a field is missing or no number: {error}") from error
    rows = [(queued, *pair) for (queued, _, _), pair in zip(times, lengths, strict=True)]
    requests = build(home / "requests.jsonl", rows)
    times = times[np.argsort(times[:, 0], kind="stable")] - times[:, 0].min()
    pages = blocks or _pages(run, model, num_gpus)
    engine = Engine(
        pages=pages - 1,
        page_tokens=PAGE,
        token_budget=int(settings["max_num_batched_tokens"]),
        max_sequences=int(settings["max_num_seqs"]),
        prefix_cache="hash",
        lag=1,
    )
    real = Observed.of(requests.arrival, times[:, 1], times[:, 2], requests.output)
    return Loaded(run, home / run.stem, model, num_gpus, _with_own_pages(requests), engine, real)


def _settings(path: Path) -> tuple[dict[str, Any], int]:
    """The engine's settings, and its number of pages, 0 where that was not recorded."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        settings = dict(meta["engine_kwargs"])
        blocks = int(meta.get("kv_cache", {}).get("num_gpu_blocks") or 0)
        for name in ("tensor_parallel_size", "max_num_batched_tokens", "max_num_seqs"):
            settings[name] = int(settings[name])
        settings["model"] = str(settings["model"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(path, f"{type(error).__name__}: {error}") from error
    return settings, blocks


def _pages(run: RealRun, model: ModelShape, num_gpus: int) -> int:
    """Pages beside the weights, where the run did not record them; far more than it needed."""
    room = find_hardware(run.gpu).memory_bytes * UTILIZATION - CONTEXT_BYTES
    room -= model.weight_bytes("bf16") / num_gpus
    return int(room * num_gpus / (model.kv_token_bytes() * PAGE))


def _with_own_pages(requests: Requests) -> Requests:
    """No two requests share tokens; each finds its own again."""
    page_from = np.concatenate([[0], np.cumsum((requests.prompt + requests.output) // PAGE)])
    return replace(requests, page_from=page_from, page_ids=np.arange(page_from[-1]))


# Cost models


def by_profile(loaded: Loaded) -> Cost:
    """The profile's tables, looked up."""
    seconds = LayerProfile.read(loaded.stem, loaded.model).seconds
    return with_link(seconds, loaded.model, LINK) if loaded.num_gpus > 1 else seconds


def fitted(loaded: Loaded) -> Roofline:
    """The additive roofline, fitted to steps of the profile."""
    profile, gpu = LayerProfile.read(loaded.stem, loaded.model), find_hardware(loaded.run.gpu)
    engine = loaded.engine
    works = list(grid(engine.token_budget, engine.max_sequences, engine.pages * engine.page_tokens))
    seconds = np.array([profile.seconds(work) for work in works])
    return fit_roofline(works, seconds, loaded.model, gpu, num_gpus=loaded.num_gpus)


def by_roofline(loaded: Loaded) -> Cost:
    """That roofline as a step's cost."""
    gpu = find_hardware(loaded.run.gpu)
    cost = step_cost(fitted(loaded), loaded.model, gpu, num_gpus=loaded.num_gpus)
    return add_link(cost, loaded.model, LINK) if loaded.num_gpus > 1 else cost


COSTS: dict[str, Callable[[Loaded], Cost]] = {"layer profiles": by_profile, "additive roofline": by_roofline}


# Gates


@dataclass(frozen=True)
class ReplayGate(Gate):
    """One figure of one run, beside what the published simulator says of itself."""

    published: float | None = None


def replayed(loaded: Loaded, cost: Cost) -> Observed:
    """Simulate a run; it must account for every token, page and request.

    Raises:
        WrongResult: It does not.
    """
    done = require(simulate(loaded.requests, loaded.engine, cost), loaded.requests, loaded.engine)
    return Observed.of(done.arrival, done.first, done.finish, done.output)


def compare(loaded: Loaded, simulated: Observed, model: str) -> Iterator[ReplayGate]:
    """Yield the gates of one run under one cost model, key of `COSTS`."""
    run, real = loaded.run, loaded.real
    bars = (run.ttft_bar, TPOT_BAR, E2E_BAR) if model == "layer profiles" else (ROOFLINE_BAR,) * 3
    for metric, bar, published in zip(("ttft", "tpot", "e2e"), bars, run.published, strict=True):
        ours, theirs = (float(getattr(one, metric).mean()) for one in (simulated, real))
        yield ReplayGate(
            f"{run.name}: mean {metric.upper()}, {model}", ours, theirs, bar, published=published
        )
    if run.median_bar is not None and model == "layer profiles":
        ours, theirs = (float(np.median(one.ttft)) for one in (simulated, real))
        yield ReplayGate(f"{run.name}: median TTFT, {model}", ours, theirs, run.median_bar)


def gates(folder: Path) -> Iterator[ReplayGate]:
    """Yield all gates, run by run.

    Args:
        folder: The data folder.

    Raises:
        BadInput: A file is missing or cannot be used.
        WrongResult: A simulation loses count.
    """
    for run in RUNS:
        loaded = load(run, folder)
        for model, cost in COSTS.items():
            yield from compare(loaded, replayed(loaded, cost(loaded)), model)
