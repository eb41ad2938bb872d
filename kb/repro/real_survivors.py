"""Evicting by the real attention of a small model: between random and contiguous, where do its survivors lie?

Backs     eai/window-25
Question  H2O, SnapKV, R-KV, TriAttention and StreamingLLM choose a tenth of 2,048 tokens of Chinese prose, English prose
          and code by what SmolLM2-135M attends to. Which share of pages of 16 tokens is empty, per KV head and in a page
          that the three KV heads share? How fast does the ranking of keys change with the query? What do scores cost?
Scale     135M parameters, 30 layers of 3 KV heads, short context, one eviction at the end of the prompt: `proxy`.
Samples   One per layer; intervals resample layers, texts are reported apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kb.errors import WrongResult
from kb.model import Figure, Measurement, Record
from kb.repro import _survivor_figures
from kb.repro.engines import small_model
from kb.repro.engines.score_cost import attention_candidates
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import by_rule
from kb.repro.sim import eviction_scores as policies
from kb.repro.sim.eviction_scores import Calibration, Floats, Scored
from kb.repro.sim.pages import PagedCache, PagePool
from kb.repro.sim.survivors import SINK, Bools, expected_freed

if TYPE_CHECKING:
    from torch import Tensor

CLAIMS = ("eai/window-25",)
LEVELS = ("proxy",)
NEEDS = ("torch", "weights")
CONTEXT, WINDOW_CONTEXT = 2_048, 1_024
KEPT = CONTEXT // 10
TEXTS = ("zh", "en", "code")
SCORERS = ("h2o", "snapkv", "r-kv", "triattention", "streamingllm", "random")
"""``random`` is a control: it must give what its closed form says."""
SHARING = ("per-head", "shared-page", "one-set")
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTROLS = 60
"""Draws of a scorer without attention that are held against its closed form."""
ANCHORS = 8
"""Queries whose ranking of keys is compared with that of earlier ones."""


# Parameters


class Survivors(Record):
    """One text under one scorer; pages belong to one KV head or are shared by all."""

    part: Literal["survivors"] = "survivors"
    text: str
    pattern: str
    """Scorer, one of `SCORERS`."""
    pages: str
    """``per-head``: each KV head has its own pages. ``shared-page``: a page holds all of them and each chooses for itself.
    ``one-set``: they share pages and one choice."""
    page_tokens: int = 16
    tokens: int = CONTEXT
    dropped: int = CONTEXT - KEPT


class Window(Record):
    """How far back queries rank keys as the latest one does."""

    part: Literal["window"] = "window"
    text: str
    tokens: int = WINDOW_CONTEXT


class Fused(Record):
    """Time of attention that writes its scores out, beside a fused kernel and the scores of a last window alone."""

    part: Literal["scores"] = "scores"
    tokens: int


def cases(scope: Scope) -> Iterator[Record]:
    """Windows, then every text, scorer and way of sharing at 16 tokens per page, half and twice that for the figure."""
    del scope
    for name in TEXTS:
        yield Window(text=name)
    for name in TEXTS:
        for scorer in SCORERS:
            for pages in SHARING:
                for size in (16,) if pages == "one-set" else (8, 16, 32):
                    yield Survivors(text=name, pattern=scorer, pages=pages, page_tokens=size)
    yield Fused(tokens=512)
    yield Fused(tokens=1024)


def data() -> list[Path]:
    """Weights and texts."""
    return small_model.data_files()


# What the model attends to


@dataclass
class Layer:
    """What the scorers need of one layer."""

    scored: dict[str, Scored]
    keys: Floats
    """Before RoPE, ``[K, N, D]``."""
    calibration: Calibration
    half_distance: float
    """See `half_distance`."""


@dataclass
class _Gather:
    """Called by the model in every layer."""

    shape: small_model.Shape
    layers: list[Layer] = field(default_factory=list)

    def __call__(self, layer: int, q: Tensor, k: Tensor) -> None:
        del layer
        turn = small_model.rotation(self.shape, 0, q.shape[2])
        turned, keys = (small_model.rotate(x, turn)[0].numpy() for x in (q, k))
        plain_q, plain_k = q[0].numpy(), k[0].numpy()
        scored = _scored(turned, keys) if keys.shape[1] == CONTEXT else {}
        old = half_distance(turned[:, :WINDOW_CONTEXT], keys[:, :WINDOW_CONTEXT])
        self.layers.append(Layer(scored, plain_k, Calibration.of(plain_q), old))


def _scored(q: Floats, k: Floats) -> dict[str, Scored]:
    """Scores of the methods that look at attention; queries and keys after RoPE."""
    weights, heads = policies.attention(q, k), len(k)
    return {
        "h2o": policies.accumulated(weights, heads, KEPT),
        "snapkv": policies.last_window(weights, heads),
        "r-kv": policies.redundancy(q, k),
    }


def half_distance(q: Floats, k: Floats) -> float:
    """Distance at which earlier queries have lost half of what a neighbouring query still agrees on.

    Agreement is the rank correlation of two queries' scores over the same old keys, averaged over heads and anchors. It
    falls from neighbours (distance 1) towards a floor, taken at the largest distance; halfway between the two is read off
    on a logarithmic axis.

    Args:
        q: Queries after RoPE, ``[H, N, D]``.
        k: Keys after RoPE, ``[K, N, D]``.
    """
    tokens = q.shape[1]
    oldest = tokens - 1 - ANCHORS * 16 - DISTANCES[-1]
    at = tokens - 1 - 16 * np.arange(ANCHORS)
    spread = np.repeat(k[:, :oldest], len(q) // len(k), axis=0)

    def ranks(positions: Any) -> Floats:
        logits = np.matmul(q[:, positions], spread.transpose(0, 2, 1))
        order = np.argsort(np.argsort(logits, axis=-1), axis=-1).astype(np.float32)
        order -= order.mean(axis=-1, keepdims=True)
        unit: Floats = order / np.linalg.norm(order, axis=-1, keepdims=True)
        return unit

    here = ranks(at)
    agreement = [float((here * ranks(at - distance)).sum(axis=-1).mean()) for distance in DISTANCES]
    halfway = (agreement[0] + agreement[-1]) / 2
    falling = np.minimum.accumulate(agreement)[::-1]
    return float(2 ** np.interp(halfway, falling, np.log2(DISTANCES)[::-1]))


@lru_cache(maxsize=len(TEXTS))
def attended(name: str, tokens: int) -> list[Layer]:
    """Run the model over the beginning of a text; what every layer showed."""
    import torch

    model = small_model.load()
    ids = model.encode(small_model.text(name))[:tokens]
    if len(ids) < tokens:
        raise WrongResult(
            f"text {name}: {len(ids)} tokens, {tokens} needed",
            cause="the text is too short",
            remedy=f"lengthen kb/repro/engines/texts/{name}.txt",
        )
    gather = _Gather(model.shape)
    model.forward(torch.tensor([ids]), watch=gather)
    return gather.layers


@lru_cache(maxsize=2)
def chosen(name: str, scorer: str) -> list[Scored]:
    """Scores of every layer by a method that has any."""
    layers = attended(name, CONTEXT)
    if scorer in layers[0].scored:
        return [layer.scored[scorer] for layer in layers]
    others = [attended(other, CONTEXT) for other in TEXTS if other != name]  # the method calibrates offline
    omega = small_model.load().shape.omega
    return [
        policies.trigonometric(layer.keys, _mean([other[depth].calibration for other in others]), omega)
        for depth, layer in enumerate(layers)
    ]


def _mean(parts: Sequence[Calibration]) -> Calibration:
    return Calibration(
        np.mean([one.mean for one in parts], axis=0), np.mean([one.size for one in parts], axis=0)
    )


def scored_layers(case: Survivors, rng: np.random.Generator) -> Sequence[Scored]:
    """Scores of every layer: by attention, or without it for the two methods that need none."""
    if case.pattern not in {"streamingllm", "random"}:
        return chosen(case.text, case.pattern)
    shape = small_model.load().shape
    return [without_attention(case.pattern, shape.kv_heads, case.tokens, rng) for _ in range(shape.layers)]


def without_attention(scorer: str, heads: int, tokens: int, rng: np.random.Generator) -> Scored:
    """Sinks and recent tokens, or a draw for each head."""
    if scorer == "streamingllm":
        first = np.broadcast_to(np.arange(tokens) < SINK, (heads, tokens))
        return Scored(first.astype(np.float32), recent=KEPT - SINK)
    return Scored(rng.random((heads, tokens), dtype=np.float32), recent=0)


# What a paged cache gives back


def freed(kept: Bools, page_tokens: int) -> float:
    """Share of the pages that eviction alone gives back; the rows of ``kept`` ``[K, N]`` share them."""
    heads, tokens = kept.shape
    pool = PagePool(-(-tokens // page_tokens))
    cache = PagedCache.fill(pool, tokens, heads, page_tokens)
    cache.evict(kept)
    return pool.num_free / pool.num_pages


def freed_by(scored: Scored, pages: str, page_tokens: int) -> float:
    """The same for one layer, by who owns the pages."""
    if pages == "one-set":
        return freed(policies.keep(policies.one_set(scored), KEPT), page_tokens)
    kept = policies.keep(scored, KEPT)
    if pages == "shared-page":
        return freed(kept, page_tokens)
    return float(np.mean([freed(head[None], page_tokens) for head in kept]))


CLOSED = {"random": {"per-head": "uniform", "shared-page": "per-head-3", "one-set": "uniform"}}
"""Pattern of `kb.repro.sim.survivors` whose closed form a scorer must meet; StreamingLLM's is ``sink-recent``."""


def expected(case: Survivors) -> float | None:
    """Closed form, where the scorer has one."""
    pattern = (
        "sink-recent" if case.pattern == "streamingllm" else CLOSED.get(case.pattern, {}).get(case.pages)
    )
    return expected_freed(pattern, case.tokens, KEPT, case.page_tokens) if pattern else None


# The functions the harness calls


def check(case: Record, bench: Bench) -> None:
    """The weights are here; the two scorers with a closed form meet it."""
    small_model.need("kb repro real-survivors")
    if not isinstance(case, Survivors) or (wanted := expected(case)) is None or case.text != TEXTS[0]:
        return
    rng = bench.rng(case, 9)
    drawn = (without_attention(case.pattern, 3, case.tokens, rng) for _ in range(CONTROLS))
    shares = [freed_by(scored, case.pages, case.page_tokens) for scored in drawn]
    error = max(float(np.std(shares)) / len(shares) ** 0.5, 0.5 * case.page_tokens / case.tokens / CONTROLS)
    if not abs(float(np.mean(shares)) - wanted) <= 5 * error:
        raise WrongResult(
            f"{case.pattern}, {case.pages}: {np.mean(shares):.4f} of the pages free where {wanted:.4f} is expected",
            cause="the choice of survivors or the count of pages is wrong",
            remedy="pytest tests/repro/sim/test_eviction_scores.py tests/repro/sim/test_pages.py",
        )


def measure(case: Record, bench: Bench) -> Iterator[Measurement]:
    """One sample per layer; times of three ways to attend."""
    if isinstance(case, Survivors):
        layers = scored_layers(case, bench.rng(case))
        shares = [freed_by(scored, case.pages, case.page_tokens) for scored in layers]
        yield bench.record("freed_fraction", case, shares, expected=expected(case))
    elif isinstance(case, Window):
        # what a causal model has seen of the first tokens does not depend on those behind them
        layers_seen = attended(case.text, case.tokens if bench.quick else CONTEXT)
        yield bench.record("count", case, [layer.half_distance for layer in layers_seen])
    elif isinstance(case, Fused):
        yield from bench.alternate(case, attention_candidates(case.tokens, policies.SNAP_WINDOW))


judge = by_rule


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Pages given back by page size and scorer, per head and in shared pages."""
    return _survivor_figures.draw(taken)
