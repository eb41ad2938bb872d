"""Records of what a clock saw of an engine: proxies, with the load of the machine beside them."""

from __future__ import annotations

from collections.abc import Sequence

from kb.model import Level, Measurement, Record
from kb.repro.harness.bench import Bench, identify
from kb.repro.harness.environment import load_average


def clocked(
    bench: Bench, metric: str, case: Record, samples: Sequence[float], *, expected: float | None = None
) -> Measurement:
    """Make the record of something timed: each session is another record, and two are needed to contradict.

    Args:
        bench: The run.
        metric: As `Bench.record`.
        case: As `Bench.record`.
        samples: One per repetition.
        expected: The simulator's figure for the same case.
    """
    plain = bench.record(metric, case, samples, expected=expected, level=Level.PROXY)
    facts = {
        **plain.run_facts, "clock": "wall", "load": load_average(), "shared_machine": load_average() > 1.0,
    }  # fmt: skip
    unnamed = plain.model_copy(update={"run_facts": facts})
    return unnamed.model_copy(update={"id": identify(unnamed)})
