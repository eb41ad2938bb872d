"""vLLM's configuration: defaults as its wheel states them, what hashing pages costs, how an image reaches the workers.

Backs     vllm/gpu-mem-util-default · prefix-cache-default · mm-cache-default · hash-cost · shm-first-prefill ·
          shm-first-ttft · shm-cached-prefill · shm-cached-ttft
Question  Defaults are read out of the published wheel by scripts/read_vllm_defaults.py, version and digest beside them.
          Pages of a prompt are hashed the documented way under a clock. An image goes to four readers through sockets
          and through shared memory; the printed rates give the stated gains.
Shows not The gains end to end: they need the model and its GPUs, and were not measured on the model the draft names.
          Defaults are product state and expire.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kb.model import Claim, Measurement, Outcome
from kb.repro._vllm_host import hand_over, hash_pages
from kb.repro.harness.exact import Quantity, cut, gain, no_figure, own_figures
from kb.repro.harness.judge import Answer
from kb.repro.harness.timed import Timing, durations, exact_and_timed, sharing

CLAIMS = (
    "vllm/gpu-mem-util-default",
    "vllm/prefix-cache-default",
    "vllm/mm-cache-default",
    "vllm/hash-cost",
    "vllm/shm-first-prefill",
    "vllm/shm-first-ttft",
    "vllm/shm-cached-prefill",
    "vllm/shm-cached-ttft",
)
LEVELS = ("derived",)
NEEDS = ()
DEFAULTS = Path(__file__).parent / "sim/vllm_defaults.toml"
PARTS = {"on": ("enable_prefix_caching", True), "page-16": ("DEFAULT_BLOCK_SIZE", 16),
         "sha256": ("prefix_caching_hash_algo", "sha256")}  # fmt: skip
"""The parts of the statement on prefix caching, each with its field."""


def data() -> list[Path]:
    """The defaults that were read out of a wheel."""
    return [DEFAULTS]


@cache
def read() -> dict[str, Any]:
    """Version, wheel and defaults."""
    return tomllib.loads(DEFAULTS.read_text(encoding="utf-8"))


def as_read(value: float, unit: float) -> float:
    """A default in the claim's unit."""
    return value * unit


def default(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the wheel states exactly the claimed default."""
    found, version = taken[0].samples[0], read()["version"]
    return (
        found == claim.low == claim.high,
        f"vLLM {version} states {found:g}; claimed {claim.low:g}",
        f"vLLM {version} 的默认值为 {found:g}；所述 {claim.low:g}",
    )


def prefix_default(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether every part of the statement is what the wheel states."""
    del claim
    wrong = [str(one.case["pattern"]) for one in taken if one.samples[0] != 1]
    version, defaults = read()["version"], read()["defaults"]
    stated = ", ".join(f"{field} = {defaults[field]}" for field, _ in PARTS.values())
    outcome = (
        Outcome.HOLDS if not wrong else Outcome.CONTRADICTED if len(wrong) == len(taken) else Outcome.PARTLY
    )
    return outcome, f"vLLM {version} states {stated}", f"vLLM {version} 的默认值：{stated}"


def per_token(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Time per token of hashing the documented way, beside the stated range: within it, or within a factor of two."""
    tokens = taken[0].case["inputs"]["tokens"]
    cost = float(np.median(durations(taken, "pickled-sha256"))) / tokens
    low, high = claim.low or 0.0, claim.high or 0.0
    outcome = (
        Outcome.HOLDS
        if low * 0.9 <= cost <= high * 1.1
        else Outcome.PARTLY
        if low / 2 <= cost <= high * 2
        else Outcome.CONTRADICTED
    )
    return (
        outcome,
        f"pickling and hashing pages of 16 takes {cost * 1e9:.0f} ns per token on this host",
        f"按 16 token 一页序列化并哈希，本机每 token {cost * 1e9:.0f} ns",
    )


def transport(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The source's own arithmetic, then what the way of transport alone saves; the gain itself it cannot tell."""
    own = [one for one in taken if "timed" not in one.case]
    outcome, reason, reason_zh = own_figures(claim, own)
    if outcome is False:
        return outcome, reason, reason_zh
    clocked = {name: durations(taken, name) for name in ("socket", "shared-memory")}
    if not all(clocked.values()):
        return outcome, reason, reason_zh
    slow, fast = (1e3 * float(np.median(samples)) for samples in clocked.values())
    inputs = next(one.case["inputs"] for one in taken if "timed" in one.case)
    what, saved = f"{inputs['item_bytes'] / 1e6:g} MB → {inputs['readers']:g}", slow - fast
    text = (
        f"the source's figures agree; {what} readers take {slow:.1f} ms by socket, {fast:.1f} ms by shared memory here: "
        f"{saved:.1f} ms an image, and only an engine shows how many images a request waits for"
    )
    text_zh = (
        f"来源的数字自洽；{what} 个读者，本机经套接字 {slow:.1f} ms，经共享内存 {fast:.1f} ms，"
        f"每幅图省 {saved:.1f} ms；一次请求等待几幅须由引擎给出"
    )
    return None, text, text_zh


def _defaults() -> dict[str, Any]:
    found: dict[str, Any] = read()["defaults"]
    return found


QUANTITIES = (
    Quantity(
        "vllm/gpu-mem-util-default", as_read, {"value": _defaults()["gpu_memory_utilization"], "unit": 1}
    ),
    Quantity(
        "vllm/mm-cache-default", as_read, {"value": _defaults()["mm_processor_cache_gb"], "unit": 2**30}
    ),
    *(
        Quantity(
            "vllm/prefix-cache-default",
            as_read,
            {"value": float(_defaults()[field] == wanted), "unit": 1},
            pattern=name,
            insensitive="the claim states no number: each of its parts is compared",
        )
        for name, (field, wanted) in PARTS.items()
    ),
    Quantity("vllm/shm-first-prefill", gain, {"old": 581.3, "new": 648.2}),
    Quantity("vllm/shm-first-ttft", cut, {"old": 3899, "new": 3491}),
    Quantity("vllm/shm-cached-prefill", gain, {"old": 2894, "new": 4918}),
    Quantity("vllm/shm-cached-ttft", cut, {"old": 790, "new": 471}),
)
SHARED = "vllm/shm-first-prefill"
TIMINGS = (
    Timing("vllm/hash-cost", hash_pages, {"tokens": 50_000}),
    Timing(SHARED, hand_over, {"item_bytes": 9e6, "readers": 4}, pattern="one-image"),
)

cases, check, measure = exact_and_timed(QUANTITIES, TIMINGS)
judge = sharing(
    {"default": default, "prefix-default": prefix_default, "per-token": per_token, "transport": transport},
    {claim: SHARED for claim in CLAIMS if claim.startswith("vllm/shm-") and claim != SHARED},
)
figure = no_figure
