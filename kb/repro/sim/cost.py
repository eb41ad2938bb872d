"""Seconds of a step by a roofline whose terms add: ``t0 + FLOPs / (mfu · F) + bytes / (mbu · BW)``.

The usual form takes the longer of compute and memory. It fits measured tables only with a bandwidth use above 1, and is
far off on real runs (docs/adr/0017): layers alternate between the two limits, so neither hides the other.
Counts follow from the model's shape; ``t0``, ``mfu`` and ``mbu`` come from `kb.repro.sim.fit` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kb.errors import WrongResult
from kb.repro.sim.shapes import BITS, Hardware, ModelShape
from kb.repro.sim.work import Floats, StepCost, StepWork


@dataclass(frozen=True)
class Roofline:
    """What was fitted for one model on one kind of GPU."""

    t0: float
    """Fixed seconds of a step."""
    mfu: float
    """Share of the peak FLOP/s that counts, in (0, 1]."""
    mbu: float
    """Share of the peak bandwidth that counts, in (0, 1]."""
    error: float = 0.0
    """Root mean square of the relative error on the table it was fitted to."""
    held: tuple[str, ...] = ()
    """Which of them lie on their bound: the table asks for more than the peak on record, and does not get it."""

    def __post_init__(self) -> None:
        wrong = [f"{name} {value:.3g}" for name, value in (("mfu", self.mfu), ("mbu", self.mbu))
                 if not 0 < value <= 1]  # fmt: skip
        if not self.t0 >= 0:
            wrong.append(f"t0 {self.t0:.3g} s")
        if wrong:
            raise WrongResult(
                f"roofline: {wrong[0]} is impossible",
                cause="; ".join(wrong)
                + ": a share of a peak lies above 0 and is at most 1, a fixed time is not negative",
                remedy="look at the table: another model or GPU, a unit, or a peak that is not the hardware's",
                next_command="kb repro calibrate",
            )


@dataclass(frozen=True)
class Counts:
    """FLOPs and bytes of a step, term by term; numbers of the whole model, all GPUs together."""

    token_flops: int
    """Linear layers, one token."""
    sequence_flops: int
    """Output head, one sequence."""
    pair_flops: int
    """Attention, one query × key pair over all layers and heads."""
    weights: Floats
    """Bytes of weights read by tokens in the step, ``[most tokens + 1]``: a mixture reads the experts that are hit."""
    kv_bytes: int
    """Of one token in the cache."""
    token_bytes: int
    """Of one token's activations: what norms, rotary embedding and activation function read and write."""
    sequence_bytes: int
    """Of one sequence's logits, written and read at 16 and at 32 bits."""

    @classmethod
    def of(
        cls,
        model: ModelShape,
        *,
        weights: str = "bf16",
        kv: str = "bf16",
        most_tokens: int = 8192,
        has_head: bool = True,
    ) -> Counts:
        """Count.

        Args:
            model: Its shape.
            weights: Key of `BITS`.
            kv: Key of `BITS`.
            most_tokens: Largest step.
            has_head: False where a table leaves embedding and output head out.
        """
        head = model.vocabulary * model.hidden
        linear = model.active_parameters - model.embedding_parameters
        stored = model.parameters - model.embedding_parameters
        per_weight = BITS[weights] / 8
        read = np.full(most_tokens + 1, stored * per_weight)
        if model.experts:
            tokens = np.arange(most_tokens + 1)
            hit = 1 - (1 - model.experts_per_token / model.experts) ** tokens
            routed = model.parameters - replace_experts(model, 0)
            read -= routed * per_weight * (1 - hit)
        width = model.kv_lora_rank + model.rope_dim if model.kv_lora_rank else model.head_dim
        return cls(
            token_flops=2 * linear,
            sequence_flops=2 * head * has_head,
            pair_flops=4 * model.layers * model.query_heads * width,
            weights=read + 2 * head * has_head,
            kv_bytes=model.kv_token_bytes(kv),
            token_bytes=_activation_bytes(model),
            sequence_bytes=12 * model.vocabulary * has_head,
        )

    def flops(self, work: StepWork) -> float:
        """FLOPs of a step."""
        total = self.token_flops * work.tokens + self.pair_flops * (work.pairs + work.kv_tokens)
        return float(total + self.sequence_flops * (work.decodes + work.prefill_sequences))

    def bytes(self, work: StepWork) -> float:
        """Bytes a step moves: weights once, the KV cache of each decoding sequence, activations and logits."""
        total = self.kv_bytes * work.kv_tokens + self.token_bytes * work.tokens
        total += self.sequence_bytes * (work.decodes + work.prefill_sequences)
        return float(self.weights[work.tokens]) + total


def _activation_bytes(model: ModelShape) -> int:
    """16-bit numbers of one token outside matrix products: each norm reads and writes the stream and its residual."""
    heads = (model.query_heads + 2 * model.kv_heads) * model.head_dim
    wide = model.experts_per_token * model.expert_intermediate if model.experts else model.intermediate
    per_layer = 4 * model.norms_per_layer * model.hidden + 2 * heads * (1 + model.qk_norm) + 3 * wide
    return 2 * model.layers * per_layer


def replace_experts(model: ModelShape, experts: int) -> int:
    """Parameters with this many routed experts in each mixture layer."""
    return model.model_copy(update={"experts_per_token": experts}).active_parameters


def step_cost(
    roofline: Roofline,
    model: ModelShape,
    gpu: Hardware,
    *,
    num_gpus: int = 1,
    weights: str = "bf16",
    kv: str = "bf16",
    most_tokens: int = 8192,
) -> StepCost:
    """The roofline as the event loop takes it.

    Args:
        roofline: Fitted.
        model: Its shape.
        gpu: One GPU.
        num_gpus: GPUs the model is split over by tensor parallelism; what they say to each other is `with_link`.
        weights: Key of `BITS`.
        kv: Key of `BITS`.
        most_tokens: Largest step.

    Raises:
        WrongResult: The GPU's peak FLOP/s is not known.
    """
    counts = Counts.of(model, weights=weights, kv=kv, most_tokens=most_tokens)
    flop_s, byte_s = (1 / peak for peak in peaks(gpu, num_gpus))
    flop_s, byte_s = flop_s / roofline.mfu, byte_s / roofline.mbu
    tokens = np.arange(most_tokens + 1)
    per_sequence = counts.sequence_flops * flop_s + counts.sequence_bytes * byte_s
    return StepCost(
        dense=roofline.t0
        + (counts.token_flops * flop_s + counts.token_bytes * byte_s) * tokens
        + counts.weights * byte_s,
        per_pair=counts.pair_flops * flop_s,
        per_kv_token=counts.pair_flops * flop_s + counts.kv_bytes * byte_s,
        per_decode=per_sequence,
        per_prefill_sequence=per_sequence,
    )


def peaks(gpu: Hardware, num_gpus: int = 1) -> tuple[float, float]:
    """FLOP/s and bytes/s of that many GPUs.

    Raises:
        WrongResult: The maker does not state the FLOP/s.
    """
    if gpu.flops is None:
        raise WrongResult(
            f"{gpu.name}: no roofline",
            cause="its dense 16-bit FLOP/s is not on record",
            remedy="add it with its source to kb/repro/sim/hardware.toml",
        )
    return gpu.flops * num_gpus, gpu.bandwidth * num_gpus


def add_link(cost: StepCost, model: ModelShape, link: float) -> StepCost:
    """Add the two all-reduces per layer of a model split over two GPUs, of ``tokens × hidden × 2`` bytes each.

    Args:
        cost: Without them.
        model: Its shape.
        link: Bytes per second between the two.
    """
    return replace(cost, dense=cost.dense + link_seconds(model, link) * np.arange(len(cost.dense)))


def link_seconds(model: ModelShape, link: float) -> float:
    """Seconds per token of two all-reduces per layer between two GPUs, at ``link`` bytes per second."""
    return 2 * model.layers * model.hidden * 2 / link
