"""The serving simulator's speed: requests per second of one core, on the shape of Azure's conversations.

Llama-3-8B on one H100 at nine tenths of the rate at which it saturates. Lengths come from the Azure 2023 conversation
trace where the data folder has it (`kb data fetch azure-2023`), else the benchmark cannot run (exit 5). The cost model
is a roofline with stated efficiencies: it decides how many steps a request takes, not how fast a step is simulated.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from kb.repro.sim import arrivals, compiled, invariants
from kb.repro.sim.cost import Roofline, step_cost
from kb.repro.sim.request_files import azure
from kb.repro.sim.shapes import find_hardware, find_model
from kb.repro.sim.work import Engine, Requests, StepCost

ROOT = Path(__file__).resolve().parent.parent
TRACE = "azure-2023/AzureLLMInferenceTrace_conv.csv"
LOAD, ROUNDS, PAGE, SMALL = 0.9, 5, 16, 10_000
KV_SHARE = 0.9
"""Of the GPU's memory for weights and cache."""
BARS = {"plain": 150_000, "prefix cache, preemption, speculation": 50_000, "whole command, 200,000": 50_000}
PEERS = (
    (
        "Dynamo 1.6.1 offline replay (PyPI ai-dynamo)",
        14_777,
        "quoted, one core, no GPU: Rust",
    ),
    ("Vidur, Sarathi, A100, metrics on", 715, "quoted, one core: Python"),
)


def cannot_run(cause: str, remedy: str) -> None:
    """Say why and leave with the exit code for that."""
    print(f"the simulator's benchmark: cannot run\n  cause:  {cause}\n  remedy: {remedy}", file=sys.stderr)
    raise SystemExit(5)


def trace() -> Requests:
    """Lengths to draw from."""
    folders = [os.environ.get("KB_DATA_DIR", ""), str(ROOT.parent / "shared" / "traces")]
    for folder in filter(None, folders):
        if (Path(folder) / TRACE).is_file():
            return azure(Path(folder) / TRACE)
    cannot_run(
        f"{TRACE} is in none of: {', '.join(filter(None, folders))}",
        "kb data fetch azure-2023, or KB_DATA_DIR",
    )
    raise AssertionError


def parts() -> tuple[Engine, StepCost]:
    """The engine and its cost."""
    model, gpu = find_model("llama-3-8b"), find_hardware("h100")
    room = gpu.memory_bytes * KV_SHARE - model.weight_bytes("bf16")
    engine = Engine(pages=int(room // (model.kv_token_bytes() * PAGE)), page_tokens=PAGE)
    return engine, step_cost(
        Roofline(t0=0.002, mfu=0.6, mbu=0.8), model, gpu, most_tokens=engine.token_budget
    )


def draw(lengths: Requests, rate: float, count: int, *, shared: bool = False) -> Requests:
    """Poisson arrivals with lengths of the trace; ``shared``: half of each prompt is that of one of fifty groups."""
    rng = np.random.default_rng(0)
    picked = rng.integers(0, len(lengths), count)
    prompt, output = lengths.prompt[picked], lengths.output[picked]
    out = Requests(arrivals.poisson(rng, rate, count), prompt, output)
    if not shared:
        return out
    return arrivals.with_shared_prefix(out, rng.integers(0, 50, count), prompt // 2, PAGE)


def measure(name: str, requests: Requests, engine: Engine, cost: StepCost) -> None:
    """Print the best of some rounds: requests and steps per second, wall and CPU."""
    best = (float("inf"), float("inf"))
    for _ in range(ROUNDS if len(requests) <= SMALL else 1):
        wall, cpu = time.perf_counter(), time.process_time()
        run = compiled.simulate(requests, engine, cost)
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    invariants.require(run, requests, engine)
    count, peak = len(requests), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    verdict = ""
    if name in BARS and count == SMALL:
        verdict = f"bar {BARS[name]:,}: {'holds' if count / best[0] >= BARS[name] else 'DOES NOT HOLD'}"
    print(
        f"{name:<40}{count:>10,}{count / best[0]:>12,.0f}{count / best[1]:>12,.0f}{run.steps / best[0]:>12,.0f}"
        f"{run.preemptions.sum():>8,}{run.hits.sum() / requests.prompt.sum():>7.0%}{peak:>7} MB  {verdict}"
    )


def whole() -> None:
    """What `whole command` times: load, draw, simulate, check, 200,000 requests."""
    (engine, cost), lengths = parts(), trace()
    requests = draw(lengths, float(sys.argv[2]), 200_000)
    invariants.require(compiled.simulate(requests, engine, cost), requests, engine)


def main() -> None:
    if not compiled.has_compiler():
        cannot_run("numba is not installed", "pip install 'kb[sim]'")
    (engine, cost), lengths = parts(), trace()
    everything = draw(lengths, 1.0, 3000)
    rush = compiled.simulate(replace(everything, arrival=np.zeros(3000)), engine, cost)
    rate = LOAD * 3000 / rush.end
    print(
        f"Llama-3-8B, one H100, {rate:.1f} requests/s = {LOAD} of saturation; {engine.pages:,} pages of {PAGE}\n"
    )
    print(
        f"{'':<40}{'requests':>10}{'req/s wall':>12}{'req/s CPU':>12}{'steps/s':>12}{'preempt':>8}{'hits':>7}{'peak':>10}"
    )
    for count in (SMALL, 100_000, 1_000_000) if "--long" in sys.argv else (SMALL, 100_000):
        measure("plain", draw(lengths, rate, count), engine, cost)
    requests = draw(lengths, rate, SMALL, shared=True)
    measure("prefix cache", requests, replace(engine, prefix_cache="hash"), cost)
    measure("speculation, 3 drafts", requests, replace(engine, draft_length=3, acceptance_rate=0.7), cost)
    tight = replace(engine, prefix_cache="hash", draft_length=3, acceptance_rate=0.7, pages=3_500)
    measure("prefix cache, preemption, speculation", requests, tight, cost)
    begun = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--whole", str(rate)], check=True, cwd=ROOT)
    speed = 200_000 / (time.perf_counter() - begun)
    name, bar = "whole command, 200,000", BARS["whole command, 200,000"]
    print(
        f"{name:<40}{200_000:>10,}{speed:>12,.0f}{'':>44}bar {bar:,}: {'holds' if speed >= bar else 'DOES NOT HOLD'}"
    )
    for name, speed, note in PEERS:
        print(f"{name:<40}{SMALL:>10,}{speed:>12,}  {note}; which features were on is not stated")


if __name__ == "__main__":
    whole() if "--whole" in sys.argv else main()
