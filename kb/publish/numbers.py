"""How numbers stand on a page: three significant digits, their unit, the source's qualifier, our interval and n."""

from __future__ import annotations

from kb.model import Claim, Interval, Outcome, Stated, Verdict
from kb.publish.words import say

_DECIDED = frozenset({Outcome.HOLDS, Outcome.PARTLY, Outcome.CONTRADICTED})
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = {"bytes": "B", "bytes/s": "B/s", "flop": "FLOP", "flop/s": "FLOP/s"}
_FORMS = {"fraction": "{x} %", "ratio": "{x}×", "usd": "US${x}", "count": "{x}", "score": "{x}", "": "{x}"}
_SMALL_SECONDS = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"), (0.0, 1e9, "ns"))


def digits(value: float, significant: int = 3) -> str:
    """Round to significant digits, without an exponent between 10⁻⁴ and 10¹²; whole numbers stay whole.

    >>> digits(14_400), digits(0.18515), digits(1234.5)
    ('14,400', '0.185', '1,230')
    """
    magnitude = abs(value)
    if value == int(value) and magnitude < 1e12:  # noqa: PLR2004  beyond that an exponent reads better
        return f"{int(value):,}"
    if not 1e-4 <= magnitude < 1e12:  # noqa: PLR2004
        return f"{value:.{significant - 1}e}"
    rounded = float(f"{value:.{significant}g}")
    if abs(rounded) >= 10 ** (significant - 1):
        return f"{rounded:,.0f}"
    text = f"{rounded:.{significant}g}"
    return f"{rounded:f}".rstrip("0") if "e" in text else text


def quantity(value: float, unit: str) -> str:
    """A number with its unit: ``18.5 %``, ``1.7×``, ``12.3 MB``, ``35 ms``, ``120 tok/s``."""
    if unit in _PREFIXED:
        factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(value) >= f), (1.0, ""))
        return f"{digits(value / factor)} {prefix}{_PREFIXED[unit]}"
    if unit == "s" and value:
        factor, name = next((f, n) for least, f, n in _SMALL_SECONDS if abs(value) >= least)
        return f"{digits(value * factor)} {name}"
    if unit == "fraction":
        value = round(value * 100, 10)  # 0.07 * 100 is 7.000000000000001
    form = _FORMS.get(unit)
    return form.format(x=digits(value)) if form else f"{digits(value)} {unit}"


def span(low: float, high: float, unit: str) -> str:
    """One figure, or a range with its unit written once where that can be."""
    if low == high:
        return quantity(low, unit)
    first, last = quantity(low, unit), quantity(high, unit)
    for tail in (" %", "×"):
        if first.endswith(tail) and last.endswith(tail):
            return f"{first.removesuffix(tail)}–{last}"
    name, _, tail = last.partition(" ")
    return f"{first.removesuffix(' ' + tail)}–{name} {tail}" if tail else f"{first}–{last}"


def stated(source: Stated | Claim, language: str) -> str:
    """The source's figure with its qualifier; says so where a claim is no number."""
    if source.low is None or source.high is None:
        return say("no-number", language)
    low = source.high if source.bound == "up-to" else source.low
    high = source.low if source.bound == "at-least" else source.high
    return say(source.bound or "exact", language, x=span(low, high, source.unit))


def measured(verdict: Verdict, language: str) -> str:
    """Our figure, its interval where it has a width, and n; where there is none, whether a check or nobody judged."""
    if verdict.measured is None:
        return say("checked" if verdict.verdict in _DECIDED else "not-measured", language)
    return interval(verdict.measured)


def interval(value: Interval) -> str:
    """``18.5 % (15.7–21.3 %), n = 30``."""
    centre = quantity(value.value, value.unit)
    width = "" if value.low == value.high else f" ({span(value.low, value.high, value.unit)})"
    return f"{centre}{width}, n = {value.n:,}"
