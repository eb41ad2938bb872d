"""Prefix caches side by side: ours against SGLang's Rust-core cache and its allocator, interleaved rounds.

`make bench-radix` needs `../shared/bench/radix_driver.py` (exit 5 without it) and the peers, which
`python benchmarks/radix.py --setup` puts under `build/peers`. Only ratios of the same round count: a shared
machine is two to five times slower in one minute than in the next.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT.parent / "shared" / "bench" / "radix_driver.py"
PEERS = Path(os.environ.get("PEERS", ROOT / "build" / "peers"))
ADAPTERS = Path(__file__).with_name("radix_adapters.py")
PEER = "sglang_unified_rust"
OURS = {"TokenSlots": {"w1": 5.0, "w2": 4.0, "w3": 3.0}, "PageTables": {"w1": 10.0, "w2": 8.0, "w3": 8.0}}
"""Least ratio of requests per second to the peer's, by interface and workload."""
STEP_US, STORM_MS, LEAVES_RATIO = 10.0, 1.0, 1.5
W4_RUNS = 5
"""Runs of w4 per round, few and many leaves in turn."""
WHEELS = ("sglang==0.5.23",)
IMPORTED = """orjson psutil pybase64 msgspec pyzmq tqdm ipython aiohttp transformers fastapi dill apache-tvm-ffi
sentencepiece openai partial-json-parser""".split()
"""What importing SGLang's cache imports along the way."""


def cannot_run(what: str, cause: str, remedy: str) -> None:
    """Print cause and remedy, leave with the exit code for "cannot run here"."""
    print(f"{what}\n  cause:  {cause}\n  remedy: {remedy}", file=sys.stderr)
    raise SystemExit(5)


def setup() -> None:
    """Unpack the peers without their dependencies and make an environment that can import them."""
    PEERS.mkdir(parents=True, exist_ok=True)
    for wheel in WHEELS:
        name = wheel.partition("=")[0]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", PEERS / name, wheel],
            check=True,
        )
    subprocess.run([sys.executable, "-m", "venv", PEERS / "venv"], check=True)
    own = next((PEERS / "venv" / "lib").glob("python3*/site-packages"))
    shared = next(path for path in sys.path if path.endswith("site-packages"))
    (own / "shared.pth").write_text(shared + "\n")  # torch and numpy, not a second time
    subprocess.run([PEERS / "venv" / "bin" / "pip", "install", "-q", *IMPORTED], check=True)


def load(path: Path, name: str) -> ModuleType:
    """A module from a file that is not on the path."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def touch_storm(adapter: Any, leaves: int = 50_000, tokens: int = 64) -> float:
    """Fill a pool with leaves, match every one again, and time one eviction; in ms."""
    rng = load_random()
    cache = adapter(16, leaves * tokens)
    keys = [cache.prepare([rng.randrange(1 << 30) for _ in range(tokens)]) for _ in range(leaves)]
    for key in keys:
        n, handle, prefix = cache.match(key)
        cache.insert(key, handle, n, prefix, cache.alloc(tokens - n))
    for key in keys:
        cache.match(key)
    gc.collect()
    began = time.perf_counter()
    evicted = cache.evict(tokens)
    took = (time.perf_counter() - began) * 1e3
    assert evicted == tokens
    return took


def steps_by_leaves(driver: ModuleType, adapter: Any) -> dict[str, float]:
    """Median step in µs at few and at many leaves, in turn.

    A run of 300 steps lasts a millisecond or two, and one neighbour on the machine doubles it: a single pair of runs gave
    ratios from 0.6 to 2.4 where the median of many is near 1.1.
    """
    taken: dict[str, list[float]] = {"5000": [], "50000": []}
    for _ in range(W4_RUNS):
        for leaves, steps in taken.items():
            steps.append(driver.run_w4(adapter, 16, int(leaves))["step_p50_us"])
    return {leaves: statistics.median(steps) for leaves, steps in taken.items()}


def load_random() -> Any:
    """The same numbers in every process."""
    import random

    return random.Random(5)


def one_round(who: str, out: Path, *, peer_w4: bool, cpu_time: bool) -> None:
    """Run in a process of its own: all workloads once, as JSON."""
    driver = load(DRIVER, "radix_driver")
    if cpu_time:
        driver.pc = time.process_time
    ours = who in OURS
    adapter = getattr(load(ADAPTERS, "radix_adapters"), who) if ours else driver.ADAPTERS[who]
    conversations = driver.gen_w2()
    size = 500 * (64 + 200 * 20)
    record: dict[str, Any] = {
        "w1": driver.run_w12(adapter, 16, driver.gen_w1(), 1024 + 170 * 10_000 + 65_536),
        "w2": driver.run_w12(adapter, 16, conversations, size + 65_536 + 20 * 16 * 500 * 2),
        "w3": driver.run_w3(adapter, 16, driver.gen_w3(), size // 2),
    }
    if ours or peer_w4:
        record["w4"] = steps_by_leaves(driver, adapter)
    if ours:
        record["storm_ms"] = touch_storm(adapter)
    out.write_text(json.dumps(record))


def report(rounds: list[dict[str, dict[str, Any]]]) -> int:
    """Print medians and ratios; the number of targets missed."""
    missed = 0
    hits = {
        who: {w: round_[who][w].get("hit_tokens") for w in ("w1", "w2")}
        for round_ in rounds
        for who in round_
    }
    rates = {who: {round_[who]["w3"]["hit_rate"] for round_ in rounds} for who in rounds[0]}
    print(
        f"\npython {platform.python_version()}, {len(rounds)} interleaved rounds, page 16, requests/s (medians)\n"
    )
    for who in rounds[0]:
        speed = {w: statistics.median(r[who][w]["req_per_s"] for r in rounds) for w in ("w1", "w2", "w3")}
        print(f"{who:22}" + "".join(f"{w} {value:>10,.0f}   " for w, value in speed.items()))
        for w, target in OURS.get(who, {}).items():
            ratio = statistics.median(r[who][w]["req_per_s"] / r[PEER][w]["req_per_s"] for r in rounds)
            missed += ratio < target
            print(
                f"{'':22}{w}: {ratio:5.1f} x of {PEER} (target {target:.0f} x) {'' if ratio >= target else 'MISSED'}"
            )
        if who in OURS:
            few, many = (statistics.median(r[who]["w4"][n] for r in rounds) for n in ("5000", "50000"))
            storm = statistics.median(r[who]["storm_ms"] for r in rounds)
            bad = many > STEP_US or many / few > LEAVES_RATIO or storm > STORM_MS
            missed += bad
            print(
                f"{'':22}w4 step {few:.1f} / {many:.1f} µs at 5k / 50k leaves; eviction after a touch storm {storm:.3f} ms"
            )
    same = len({json.dumps(value) for value in hits.values()}) == 1 and len(set.union(*rates.values())) == 1
    print(
        f"\nhit tokens of all: {hits[PEER]}, w3 hit rate {rates[PEER]}: {'equal' if same else f'DIFFERENT {hits} {rates}'}"
    )
    return missed + (not same)


def main() -> None:
    """Parse, run interleaved rounds, print; exit 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", default="", help="pin to this core with taskset")
    parser.add_argument("--setup", action="store_true", help="fetch the peers into build/peers and stop")
    parser.add_argument("--peer-w4", action="store_true", help="run w4 for the peer too (slow)")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="count this process's CPU time, for a machine that others load",
    )
    parser.add_argument("--round", nargs=2, metavar=("WHO", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.setup:
        setup()
        return
    if not DRIVER.exists():
        cannot_run(
            "no comparison was made", f"{DRIVER} is missing", "put the drivers there; they are not part of kb"
        )
    if options.round:
        one_round(
            options.round[0], Path(options.round[1]), peer_w4=options.peer_w4, cpu_time=options.cpu_time
        )
        return
    python = PEERS / "venv" / "bin" / "python"
    if not python.exists():
        cannot_run("no comparison was made", f"{PEERS} holds no peers", "python benchmarks/radix.py --setup")
    pin = ["taskset", "-c", options.core] if options.core else []
    env = os.environ | {"PEERS": str(PEERS), "OMP_NUM_THREADS": "1"}
    rounds = []
    for number in range(options.rounds):
        results = {}
        for who in (PEER, *OURS):
            out = PEERS / f"{who}.{number}.json"
            extra = [
                *(["--peer-w4"] if options.peer_w4 else []),
                *(["--cpu-time"] if options.cpu_time else []),
            ]
            command = [*pin, python, __file__, *extra, "--round", who, out]
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, timeout=900)
            results[who] = json.loads(out.read_text())
            print(f"round {number + 1}: {who} done", file=sys.stderr)
        rounds.append(results)
    raise SystemExit(1 if report(rounds) else 0)


if __name__ == "__main__":
    main()
