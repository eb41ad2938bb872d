"""How fast the paged decode kernel is beside this device's own copy bandwidth and PyTorch's attention.

    python scripts/gpu_bars.py [--toy] [--out DIR]

Batch 64, 8,192 tokens of context, the shape of Llama-3-8B (32 query heads, 8 KV heads, head dim 128), bf16, pages of 16.
Bars: at least 80 % of the measured copy bandwidth, and at least 0.95 of the best other implementation that runs here.
``--toy`` runs the same steps at toy size on a CPU, under Triton's interpreter: it shows that they work, no speed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


@dataclass(frozen=True)
class Shape:
    """Sizes of the decode step."""

    batch: int = 64
    context: int = 8_192
    heads: int = 32
    kv_heads: int = 8
    dim: int = 128
    page: int = 16

    @property
    def kv_elements(self) -> int:
        """Numbers in K and V."""
        return 2 * self.batch * self.context * self.kv_heads * self.dim


TOY = Shape(batch=2, context=48, heads=4, kv_heads=2, dim=64)


def make_inputs(shape: Shape, device: str, dtype: Any) -> Any:
    """Build a function from random numbers to inputs: the cache is made once, the query anew for each repeat."""
    import torch

    slots = shape.context // shape.page
    pool = (shape.batch * slots, shape.page, shape.kv_heads, shape.dim)
    generator = torch.Generator(device).manual_seed(0)
    k, v = (torch.randn(pool, generator=generator, device=device, dtype=dtype) for _ in range(2))
    table = torch.randperm(pool[0], generator=generator, device=device).reshape(shape.batch, slots).int()
    lengths = torch.full((shape.batch,), shape.context, dtype=torch.int32, device=device)
    # the same cache in one piece, for implementations that know no pages: [B, K, N, D]
    k_flat, v_flat = (
        x[table.long()]
        .reshape(shape.batch, shape.context, shape.kv_heads, shape.dim)
        .transpose(1, 2)
        .contiguous()
        for x in (k, v)
    )

    def prepare(rng: np.random.Generator) -> dict[str, Any]:
        q = torch.from_numpy(rng.standard_normal((shape.batch, shape.heads, shape.dim), dtype=np.float32))
        return {
            "q": q.to(device, dtype),
            "k": k,
            "v": v,
            "table": table,
            "lengths": lengths,
            "flat": (k_flat, v_flat),
        }

    return prepare


def sdpa(inputs: dict[str, Any]) -> Any:
    """PyTorch's attention over the cache in one piece."""
    from torch.nn.functional import scaled_dot_product_attention

    k, v = inputs["flat"]
    return scaled_dot_product_attention(inputs["q"][:, :, None], k, v, enable_gqa=True)[:, :, 0]


def compiled_flex() -> Any:
    """PyTorch's FlexAttention, compiled, over the cache in one piece."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    compiled = torch.compile(flex_attention, dynamic=False)

    def run(inputs: dict[str, Any]) -> Any:
        k, v = inputs["flat"]
        return compiled(inputs["q"][:, :, None], k, v, enable_gqa=True)[:, :, 0]

    return run


def copy_bandwidth(device: str, num_bytes: int) -> float:
    """Bytes per second, read and written, of a copy on this device: the best of 20."""
    import torch

    from kb.repro.harness.timing import CudaClock, WallClock

    stopwatch = CudaClock() if device == "cuda" else WallClock(flush_bytes=1 << 20)
    source = torch.randint(-128, 127, (num_bytes,), dtype=torch.int8, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(20):
        stopwatch.flush()
        times.append(stopwatch.time(lambda: target.copy_(source))[0])
    return 2 * num_bytes / min(times)


def measure(shape: Shape, device: str) -> dict[str, Any]:
    """Time the kernel and its rivals in turn, each output compared with PyTorch's in float32."""
    import torch

    from kb.errors import WrongResult
    from kb.repro.harness import timing
    from kb.repro.kernels.paged_decode import paged_decode

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    tolerance = 2e-2 if device == "cuda" else 1e-4

    def verify(inputs: dict[str, Any], output: Any) -> None:
        wide = {"q": inputs["q"].float(), "flat": tuple(x.float() for x in inputs["flat"])}
        truth = sdpa(wide)
        error = float((output.float() - truth).norm() / truth.norm())
        if not error < tolerance:
            raise WrongResult(
                "decode attention is wrong", cause=f"relative error {error:.1e}", remedy="see the kernel"
            )

    prepare = make_inputs(shape, device, dtype)
    names = ("q", "k", "v", "table", "lengths")
    runs = {"paged_decode": lambda i: paged_decode(*(i[name] for name in names)), "sdpa": sdpa}
    if device == "cuda":
        runs["flex_attention"] = compiled_flex()
    num_bytes = shape.kv_elements * dtype.itemsize
    bandwidth = copy_bandwidth(device, min(num_bytes, 1 << 30))
    floor = num_bytes / (1.5 * bandwidth) if device == "cuda" else 0.0
    candidates = {name: timing.Candidate(prepare, run, verify, floor) for name, run in runs.items()}
    stopwatch = timing.CudaClock() if device == "cuda" else timing.WallClock(flush_bytes=1 << 20)
    budget = timing.Budget(limit_s=20) if device == "cuda" else timing.Budget(warm_up=1, repeats=3, least=3)
    timed = timing.alternate(candidates, stopwatch, lambda n: np.random.default_rng(n % 2**32), budget)
    median = {name: float(np.median(values)) for name, values in timed.samples.items()}
    reached = num_bytes / median["paged_decode"] / bandwidth
    against = min(value for name, value in median.items() if name != "paged_decode") / median["paged_decode"]
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu, interpreted: no speed",
        "shape": shape.__dict__,
        "copy_bandwidth": bandwidth,
        "median_s": median,
        "samples_s": timed.samples,
        "facts": timed.facts,
        "share_of_copy_bandwidth": reached,
        "times_the_best_other": against,
        "compared_with": [name for name in runs if name != "paged_decode"],
        "bars": {"copy": reached >= 0.80, "other": against >= 0.95} if device == "cuda" else "not run",  # noqa: PLR2004
    }


def main() -> int:
    """Measure and write ``bars.json``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toy", action="store_true", help="toy size on the CPU")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.toy:
        os.environ["TRITON_INTERPRET"] = "1"
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    if not asked.toy and not torch.cuda.is_available():
        print("no CUDA device: the bars are not run; --toy runs the steps without one", file=sys.stderr)
        return 5
    found = measure(TOY if asked.toy else Shape(), "cpu" if asked.toy else "cuda")
    print(json.dumps({key: value for key, value in found.items() if key != "samples_s"}, indent=1))
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "bars.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
