"""What the serving simulator's loop takes and gives: requests, an engine, the work and cost of a step, a run.

All times are seconds, all counts tokens unless they say pages. A request's KV cache holds the tokens *computed*; the
tokens *known* are its prompt and what it has emitted. A step computes some of the known ones; when none is left, it
emits one more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

NOBODY = -1


class StepWork(NamedTuple):
    """Integers of one engine step."""

    tokens: int
    """Tokens computed, drafted ones included."""
    prefill_tokens: int = 0
    """Of those, tokens of prompts and of recomputed sequences."""
    prefill_sequences: int = 0
    """Sequences that have prefill tokens in the step."""
    pairs: int = 0
    """Query × key pairs of the prefill chunks: ``q·before + q(q+1)/2`` each."""
    decodes: int = 0
    """Sequences that decode."""
    kv_tokens: int = 0
    """KV tokens the decoding sequences read: tokens computed before the step, once per sequence."""
    drafted: int = 0
    """Drafted tokens verified, of all sequences."""
    swapped_tokens: int = 0
    """KV tokens moved to or from host memory."""
    longest_kv: int = 0
    """KV tokens of the decoding sequence that reads most; the plain loop alone counts it."""


@dataclass(frozen=True)
class StepCost:
    """Seconds of a step as the compiled loop takes them."""

    dense: Floats
    """By tokens in the step, ``[most tokens + 1]``: fixed part, weights and linear layers."""
    per_pair: float = 0.0
    per_kv_token: float = 0.0
    per_decode: float = 0.0
    per_prefill_sequence: float = 0.0
    per_drafted: float = 0.0
    per_swapped_token: float = 0.0

    def seconds(self, work: StepWork) -> float:
        """Seconds of a step; the order of the sum is part of the definition, the compiled loop keeps it."""
        total = float(self.dense[work.tokens])
        total += self.per_pair * work.pairs
        total += self.per_kv_token * work.kv_tokens
        total += self.per_decode * work.decodes
        total += self.per_prefill_sequence * work.prefill_sequences
        total += self.per_drafted * work.drafted
        total += self.per_swapped_token * work.swapped_tokens
        return total


Cost = StepCost | Callable[[StepWork], float]
"""The plain loop takes any function of a step's work; the compiled loop a `StepCost`."""


@dataclass(frozen=True)
class Requests:
    """A workload; ``n`` requests, row i is request i."""

    arrival: Floats
    """Intended send times, not decreasing among requests that follow nobody, s."""
    prompt: Ints
    output: Ints
    """Tokens to emit, at least 1."""
    after: Ints | None = None
    """Request whose end this one waits for, or -1; at most one follows each. A closed loop is a chain."""
    think: Floats | None = None
    """Pause between that end and this arrival, s."""
    ready: Ints | None = None
    """Tokens whose KV entries arrive with the request, from a prefill engine."""
    page_from: Ints | None = None
    """``[n + 1]``: where each request's pages begin in ``page_ids``."""
    page_ids: Ints | None = None
    """Contents of each full page of prompt and output, 0, 1, …: equal ids are equal tokens after equal tokens."""

    def __len__(self) -> int:
        return len(self.prompt)


@dataclass(frozen=True)
class Engine:
    """One serving engine."""

    pages: int
    """KV pages a request may use."""
    page_tokens: int = 16
    token_budget: int = 2048
    """Most tokens of a step."""
    max_sequences: int = 256
    policy: str = "fcfs"
    """Name of a file in `kb.repro.sim.policies`."""
    prefix_cache: Literal["none", "hash", "radix"] = "none"
    preemption: Literal["recompute", "swap"] = "recompute"
    admission: Literal["known", "whole"] = "known"
    """A request starts if the tokens known now fit, or only if its whole footprint fits beside all the others'."""
    draft_length: int = 0
    acceptance_rate: float = 0.0
    """Chance that a drafted token is accepted, given that those before it were."""
    lag: int = 0
    """Steps decided ahead of the one that runs: 1 for asynchronous scheduling."""
    seed: int = 0
    """Of the draws of acceptance, which depend on request and position only: equal under every policy."""


GAP_BINS = 64 * 72
"""Bins of `Run.gaps`: 64 per octave from 2**-40 s to 2**32 s, exact in binary, so 1.6 % wide at most."""


@dataclass
class Run:
    """What one simulation gave; arrays have one row per request."""

    arrival: Floats
    """When each request did arrive."""
    first: Floats
    """When its first token came."""
    finish: Floats
    """When its last token came."""
    output: Ints
    hits: Ints
    """Prompt tokens found in the prefix cache at first admission."""
    reused: Ints
    """Known tokens that were there at an admission: found in the cache, swapped in, or arrived with the request."""
    computed: Ints
    """Tokens computed, with recomputation and refused drafts."""
    lost: Ints
    """KV entries given up by preemption, those swapped out included, or left behind by refused drafts."""
    preemptions: Ints
    worst_gap: Floats
    """Longest time between two tokens, s."""
    steps: int = 0
    tokens: int = 0
    """Tokens computed, summed by step."""
    drafted: int = 0
    accepted: int = 0
    swapped_tokens: int = 0
    busy: float = 0.0
    """Seconds spent in steps."""
    end: float = 0.0
    """Time of the last step's end, s."""
    area: float = 0.0
    """Integral of the number of requests present over time, kept step by step."""
    pages_left: int = 0
    """Pages no request holds at the end."""
    peak_pages: int = 0
    gaps: Ints = field(default_factory=lambda: np.zeros(GAP_BINS, np.int64))
    """Times between tokens by `GAP_BINS`; bin 0 also holds tokens that came together."""
