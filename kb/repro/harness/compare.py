"""Two runs side by side, case by case: the ratio of what both measured, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kb.errors import NothingMatches, WrongUse
from kb.files import digest
from kb.model import Measurement
from kb.repro.harness.archive import find_runs
from kb.repro.harness.stats import ratio_interval
from kb.store import Base
from kb.tables import RunRow


@dataclass(frozen=True)
class Row:
    """One metric of one case in both runs."""

    metric: str
    unit: str
    case: dict[str, Any]
    first: float
    """Mean of the first run."""
    second: float
    ratio: float | None
    """Second / first; None where the first is zero."""
    low: float | None
    high: float | None
    differs: bool
    """Whether the interval of the ratio excludes 1."""


def compare(base: Base, first: str, second: str, *, across: bool) -> list[Row]:
    """Compare two stored runs of one reproduction.

    Args:
        base: The knowledge base.
        first: Run id, the baseline.
        second: Run id.
        across: Compare unlike machine classes all the same.

    Raises:
        NothingMatches: No such run, or they measured nothing in common.
        WrongUse: They come from unlike machine classes, and ``across`` was not given.
    """
    (row, taken), (other, also) = find_runs(base, [first, second])
    if row.env != other.env and not across:
        raise WrongUse(
            f"{row.id} and {other.id}: not compared",
            cause=f"they were taken on unlike machines: {_apart(base, row, other)}",
            remedy="compare runs of one machine class, or say --across if you mean to compare machines",
            next_command=f"kb repro compare {row.id} {other.id} --across",
        )
    theirs = {_key(one): one for one in also}
    rows = [_row(one, theirs[_key(one)]) for one in taken if _key(one) in theirs]
    if not rows:
        raise NothingMatches(
            f"{row.id} and {other.id}: nothing to compare",
            cause="no case was measured in both",
            remedy="choose two runs of one reproduction",
            next_command="kb list runs",
        )
    return rows


def _key(one: Measurement) -> str:
    return digest([one.repro, one.metric, one.case])


def _apart(base: Base, row: RunRow, other: RunRow) -> str:
    known = base.environments()
    if row.env not in known or other.env not in known:
        return f"{row.env} and {other.env}"
    here, there = known[row.env].to_json(), known[other.env].to_json()
    return "; ".join(f"{name} {here[name]} and {there[name]}" for name in here if here[name] != there[name])


def _row(one: Measurement, other: Measurement) -> Row:
    first, second = _mean(one.samples), _mean(other.samples)
    if first == 0:
        return Row(one.metric, one.unit, one.case, first, second, None, None, None, differs=second != 0)
    low, ratio, high = ratio_interval(other.samples, one.samples)
    return Row(one.metric, one.unit, one.case, first, second, ratio, low, high, differs=not low <= 1 <= high)


def _mean(samples: Sequence[float]) -> float:
    return sum(samples) / len(samples)


def to_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as JSON objects."""
    return [asdict(row) for row in rows]
