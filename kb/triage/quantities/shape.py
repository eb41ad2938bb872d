"""What an extracted quantity says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["exact", "about", "up-to", "at-least", "range"]
Role = Literal["claim", "condition", "noise"]


@dataclass(frozen=True)
class Quantity:
    """One figure of a text with the place it stands at."""

    quote: str
    """As written, hedges left out: ``35–37%``."""
    start: int
    """Offset of the quote in the text, in characters."""
    end: int
    low: float
    """Least stated value, in ``unit``."""
    high: float
    """Greatest stated value; equal to ``low`` for a single figure."""
    unit: str
    """``ratio fraction s tok/s req/s bytes bytes/s bits usd usd/h months points sd W J Hz flop/s count``."""
    bound: Bound = "exact"
    role: Role = "claim"
    """Whether the text claims it, or states it as a condition of a claim."""
    baseline: str = ""
    """What it is compared with, as written; empty where the sentence names nothing."""
    about: str = ""
    """Words before it in its clause: what it is a figure of."""
    sentence: str = ""
    """The sentence it stands in."""
