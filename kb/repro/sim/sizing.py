"""Does it fit? Weights, KV cache and overhead of one deployment, beside the formula of the on-premise guide.

Source of the formula beside ours: the sizing rule of the guide at iternal.ai (parameters × bytes + KV cache + overhead),
as far as it could be read. Ours differs where shapes do: grouped heads, latent attention, sliding windows, 16-bit
embeddings in quantised checkpoints. `kb size` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kb.errors import WrongUse
from kb.model import Record
from kb.repro.sim.shapes import BITS, Hardware, ModelShape

CONTEXT_BYTES = 1 << 30
"""CUDA context, graphs and workspaces of one engine process: 0.5–1.5 GB in practice; 1 GiB is assumed."""


class Size(Record):
    """What a deployment needs; all in bytes."""

    model: str
    gpu: str
    parameters: int
    active_parameters: int
    weights: int
    kv_per_token: int
    """While no window is full."""
    kv_per_request: int
    """At the given context, whole pages."""
    kv: int
    """All requests."""
    overhead: int
    total: int
    usable: int
    """Share of the GPU's memory the engine may take, times GPUs."""
    fits: bool
    max_batch: int
    """Requests of this context that fit beside the weights."""
    guide_total: int
    """The guide's formula: parameters × bytes + 2·L·H_q·d·bytes·tokens, as often written without grouped heads."""
    num_gpus: int


def size(
    model: ModelShape,
    gpu: Hardware,
    *,
    context: int,
    batch: int,
    weights: str = "bf16",
    kv: str = "bf16",
    page: int = 16,
    utilization: float = 0.92,
    num_gpus: int = 1,
) -> Size:
    """Add up one deployment.

    Args:
        model: Its shape.
        gpu: One GPU.
        context: Tokens per request, prompt plus output.
        batch: Requests held at once.
        weights: Key of `BITS`.
        kv: Key of `BITS`.
        page: Tokens per page.
        utilization: Share of the memory the engine may use; vLLM's default is 0.92.
        num_gpus: GPUs the model is split over by tensor parallelism; KV heads split evenly or are repeated.

    Raises:
        WrongUse: A count that is not positive, a share outside 0–1, or an unknown dtype.
    """
    _check({"context": context, "batch": batch, "page": page, "gpus": num_gpus}, utilization, (weights, kv))
    # more GPUs than KV heads: each head is held several times
    repeats = 1 if model.kv_lora_rank == 0 else num_gpus
    if model.kv_lora_rank == 0 and num_gpus > model.kv_heads:
        repeats = -(-num_gpus // model.kv_heads)
    weight_bytes = model.weight_bytes(weights)
    per_request = model.kv_bytes(context, kv, page) * repeats
    usable = int(gpu.memory_bytes * utilization) * num_gpus
    overhead = CONTEXT_BYTES * num_gpus
    room = usable - weight_bytes - overhead
    total = weight_bytes + per_request * batch + overhead
    every_head = 2 * model.layers * model.query_heads * model.head_dim
    guide = model.parameters * BITS[weights] / 8 + every_head * BITS[kv] / 8 * context * batch
    return Size(
        model=model.name,
        gpu=gpu.name,
        parameters=model.parameters,
        active_parameters=model.active_parameters,
        weights=weight_bytes,
        kv_per_token=model.kv_token_bytes(kv),
        kv_per_request=per_request,
        kv=per_request * batch,
        overhead=overhead,
        total=total,
        usable=usable,
        fits=total <= usable,
        max_batch=max(0, room // per_request),
        guide_total=int(guide),
        num_gpus=num_gpus,
    )


def _check(counts: Mapping[str, int], utilization: float, dtypes: Iterable[str]) -> None:
    wrong = [f"{name} {value}" for name, value in counts.items() if value < 1]
    wrong += [] if 0 < utilization <= 1 else [f"utilization {utilization}"]
    wrong += [dtype for dtype in dtypes if dtype not in BITS]
    if wrong:
        raise WrongUse(
            f"kb size: {wrong[0]} cannot be used",
            cause="counts must be at least 1, utilization in (0, 1], dtypes " + ", ".join(BITS),
            remedy="correct the option",
            next_command="kb size --help",
        )
