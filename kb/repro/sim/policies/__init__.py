"""Orders in which the simulated engine serves: one file per policy, found by its name.

A policy is a set of weights: a request's key is their sum with the features below, the least key goes first, ties by
request number. Weights are data, so the compiled loop takes every policy that the plain one takes.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, fields
from functools import cache

from kb.errors import NothingMatches


@dataclass(frozen=True)
class Order:
    """Weights of a request's features; the sum is taken in this order."""

    arrival: float = 0.0
    """Arrival time, s."""
    prompt: float = 0.0
    """Prompt tokens."""
    output: float = 0.0
    """Tokens it will emit, which a real engine can only predict."""
    uncomputed: float = 0.0
    """Known tokens yet to compute before the next one."""
    unemitted: float = 0.0
    """Tokens yet to emit."""
    attained: float = 0.0
    """Tokens computed and emitted so far."""
    found: float = 0.0
    """Leading tokens that the prefix cache holds now; costs a look-up per waiting request and step."""

    def weights(self) -> tuple[float, ...]:
        """As numbers, in the order of the sum."""
        return tuple(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True)
class Policy:
    """How steps are filled."""

    order: Order
    """Of waiting requests; of all requests if preemptive."""
    preemptive: bool = False
    """Whoever comes first by key gets the step, and memory from those behind; else who runs goes on running."""
    decodes: str = "in turn"
    """Within a step: ``in turn`` with running prefills, ``first``, or ``after`` a step of whole new prompts."""


@cache
def names() -> tuple[str, ...]:
    """Policies there are, in order of name."""
    return tuple(
        sorted(unit.name.replace("_", "-") for unit in pkgutil.iter_modules(__path__) if unit.name[0] != "_")
    )


@cache
def find(name: str) -> Policy:
    """The policy of that name.

    Raises:
        NothingMatches: There is no such file.
    """
    if name not in names():
        raise NothingMatches(
            f"scheduling policy {name}: not known",
            cause=f"known: {', '.join(names())}",
            remedy="use one of them, or add a file to kb/repro/sim/policies",
        )
    unit = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    policy: Policy = unit.POLICY
    return policy
