"""Models and GPUs as data, and what follows from a shape exactly: parameters, bytes of weights, bytes of KV cache.

Axes: L layers · D hidden · H query heads · H_kv KV heads · d head dim · I intermediate · V vocabulary.
Every count is an integer; nothing here is measured or rounded. Sources are in the data files beside this module.
"""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from pathlib import Path
from typing import TypeVar

from kb.errors import NothingMatches
from kb.model import Record

BITS = {"fp32": 32.0, "bf16": 16.0, "fp16": 16.0, "fp8": 8.0, "int8": 8.0, "int4": 4 + 20 / 128}
"""Bits per stored number. int4: groups of 128 with a 16-bit scale and a 4-bit zero point (AWQ, GPTQ)."""


class Named(Record):
    """What models and GPUs share."""

    name: str
    aliases: tuple[str, ...] = ()
    source: str
    """Where its figures stand."""


class ModelShape(Named):
    """One decoder-only transformer."""

    layers: int
    hidden: int
    query_heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Width of a dense MLP with gate, up and down projections."""
    vocabulary: int
    tied: bool = False
    """Input and output embedding are one matrix."""
    qk_norm: bool = False
    """A norm of head_dim on queries and on keys."""
    qkv_bias: bool = False
    norms_per_layer: int = 2
    experts: int = 0
    """Routed experts; 0 for a dense model."""
    shared_experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    dense_layers: int = 0
    """Leading layers of a mixture model that stay dense."""
    router_bias: bool = False
    kv_lora_rank: int = 0
    """Latent width of multi-head latent attention; 0 for grouped heads."""
    q_lora_rank: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    window: int = 0
    """Tokens a sliding-window layer keeps; 0: no such layer."""
    global_layers: int = 0
    """Layers that keep the whole context beside sliding-window ones."""

    @property
    def _attention(self) -> int:
        """Parameters of one layer's attention."""
        if not self.kv_lora_rank:
            q_width, kv_width = self.query_heads * self.head_dim, self.kv_heads * self.head_dim
            bias = q_width + 2 * kv_width if self.qkv_bias else 0
            norm = 2 * self.head_dim if self.qk_norm else 0
            return 2 * self.hidden * (q_width + kv_width) + bias + norm
        q_out = self.query_heads * (self.head_dim + self.rope_dim)
        rank = self.q_lora_rank
        query = self.hidden * rank + rank + rank * q_out if rank else self.hidden * q_out
        latent = self.hidden * (self.kv_lora_rank + self.rope_dim) + self.kv_lora_rank
        expand = self.kv_lora_rank * self.query_heads * (self.head_dim + self.value_dim)
        return query + latent + expand + self.query_heads * self.value_dim * self.hidden

    def _mlps(self, experts: int) -> int:
        """Parameters of all layers' MLPs with ``experts`` routed experts counted in each mixture layer."""
        dense = 3 * self.hidden * self.intermediate
        if not self.experts:
            return self.layers * dense
        one = 3 * self.hidden * self.expert_intermediate
        router = self.experts * (self.hidden + (1 if self.router_bias else 0))
        mixture = (experts + self.shared_experts) * one + router
        return self.dense_layers * dense + (self.layers - self.dense_layers) * mixture

    def _count(self, experts: int) -> int:
        norms = self.layers * self.norms_per_layer * self.hidden + self.hidden
        return self.layers * self._attention + self._mlps(experts) + norms + self.embedding_parameters

    @property
    def embedding_parameters(self) -> int:
        """Input embedding and output head, which stay at 16 bits in quantised checkpoints."""
        return (1 if self.tied else 2) * self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self._count(self.experts)

    @property
    def active_parameters(self) -> int:
        """Parameters one token passes through, embeddings included."""
        return self._count(self.experts_per_token)

    def weight_bytes(self, dtype: str) -> int:
        """Bytes of a checkpoint: below 16 bits, embeddings and head stay at 16 bits.

        Args:
            dtype: Key of `BITS`.
        """
        bits = BITS[dtype]
        if bits >= BITS["bf16"]:
            return int(self.parameters * bits // 8)
        return int((self.parameters - self.embedding_parameters) * bits // 8) + 2 * self.embedding_parameters

    def kv_token_bytes(self, dtype: str = "bf16") -> int:
        """Bytes one more token adds while no window is full: K and V of every layer, or the latent of MLA."""
        return int(self.layers * self._kv_numbers * BITS[dtype] // 8)

    @property
    def _kv_numbers(self) -> int:
        """Numbers one layer keeps per token."""
        return self.kv_lora_rank + self.rope_dim if self.kv_lora_rank else 2 * self.kv_heads * self.head_dim

    def kv_bytes(self, context: int, dtype: str = "bf16", page: int = 1) -> int:
        """Bytes of one request's KV cache.

        Args:
            context: Tokens held, prompt plus output so far.
            dtype: Key of `BITS`.
            page: Tokens per page; each layer holds whole pages.
        """
        whole = -(-context // page) * page
        windowed = self.layers - self.global_layers if self.window else 0
        kept = min(whole, -(-self.window // page) * page) if windowed else 0
        tokens = (self.layers - windowed) * whole + windowed * kept
        return int(tokens * self._kv_numbers * BITS[dtype] // 8)


class Hardware(Named):
    """One GPU."""

    memory_mib: int
    """What the driver reports, MiB."""
    bandwidth: float
    """Peak bytes per second."""
    flops: float | None = None
    """Peak dense 16-bit FLOP/s; None where the maker does not state it."""

    @property
    def memory_bytes(self) -> int:
        """Memory in bytes."""
        return self.memory_mib << 20


R = TypeVar("R", bound=Named)


def _load(kind: type[R], file: str) -> dict[str, R]:
    tables = tomllib.loads((Path(__file__).parent / file).read_text(encoding="utf-8"))
    return {name: kind.model_validate({"name": name, **values}) for name, values in tables.items()}


@cache
def models() -> dict[str, ModelShape]:
    """Model shapes by name."""
    return _load(ModelShape, "models.toml")


@cache
def hardware() -> dict[str, Hardware]:
    """GPUs by name."""
    return _load(Hardware, "hardware.toml")


def find_model(name: str) -> ModelShape:
    """Look a model up by name or alias, whatever the case.

    Raises:
        NothingMatches: None has it; the error names the nearest.
    """
    return _find(models(), name, "model")


def find_hardware(name: str) -> Hardware:
    """Look a GPU up by name or alias, whatever the case.

    Raises:
        NothingMatches: None has it; the error names the nearest.
    """
    return _find(hardware(), name, "GPU")


def _find(table: dict[str, R], name: str, what: str) -> R:
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    names: dict[str, R] = {}
    for unit in table.values():
        names |= {alias.lower(): unit for alias in (unit.name, *unit.aliases)}
    if wanted in names:
        return names[wanted]
    near = list(
        dict.fromkeys(names[n].name for n in difflib.get_close_matches(wanted, names, n=4, cutoff=0.4))
    )
    raise NothingMatches(
        f"{what} {name}: not known",
        cause=f"nearest: {', '.join(near)}" if near else f"known: {', '.join(table)}",
        remedy=f"use one of: {', '.join(table)}",
        next_command="kb size --help",
    )
