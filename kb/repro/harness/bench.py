"""What a reproduction takes its numbers through: counts, random inputs, and (see `kb.repro.harness.timing`) times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kb.errors import BadConfig
from kb.files import digest
from kb.model import Level, Measurement, Record
from kb.vocab import METRICS

if TYPE_CHECKING:
    import numpy as np

    from kb.repro.harness.timing import Candidate


@dataclass(frozen=True)
class Declared:
    """What is fixed before the first number is taken, the same for all measurements of a run."""

    repro: str
    seed: int
    level: Level
    """Default evidence level."""
    rule: str
    """Digest of the rules as declared."""
    code: str
    """Digest of the module and what it imports from the package."""
    inputs: str
    """Digest of the claims' numbers and data files it reads."""
    env: str
    """Digest of the machine class."""
    at: str
    """Moment the run began, UTC."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the run beside its class: commit, dirty flag."""

    def begun(self, at: str) -> Declared:
        """The same, begun at another moment: when the first attempt at the run began."""
        return replace(self, at=at)


@dataclass
class Bench:
    """One run's means to take numbers; a reproduction gets it in ``check`` and ``measure``."""

    declared: Declared
    quick: bool = False
    """A glance: fewer repeats, nothing stored."""
    device: str = "cpu"
    """``cpu`` or ``cuda``, as torch names it."""
    endpoint: str = ""
    """Address of a serving engine, where one was given."""

    def rng(self, case: Record, stream: int = 0) -> np.random.Generator:
        """Random numbers of one case: the same in any order, on any machine, in any process.

        Args:
            case: Parameter point.
            stream: Tells independent draws of a case apart.
        """
        import numpy as np

        mark = int(digest({"repro": self.declared.repro, "case": case.to_json()})[:16], 16)
        return np.random.default_rng([self.declared.seed, mark, stream % 2**32])

    def record(
        self,
        metric: str,
        case: Record,
        samples: Sequence[float],
        *,
        expected: float | None = None,
        level: Level | None = None,
    ) -> Measurement:
        """Make the record of something counted or computed: the same inputs give the same record.

        Args:
            metric: Key of `kb.vocab.METRICS`; decides the unit.
            case: Parameter point, stored whole.
            samples: Every repetition, in order, unrounded, in the metric's unit.
            expected: Closed form for the same point, where there is one.
            level: Evidence level; None: the first of the module's ``LEVELS``.

        Raises:
            BadConfig: There is no such metric.
        """
        return self._make(metric, case, samples, expected, level, dict(self.declared.facts))

    def alternate(
        self, case: Record, candidates: Mapping[str, Candidate], *, level: Level | None = None
    ) -> Iterator[Measurement]:
        """Time candidates in turn, the first being the baseline, and record every sample.

        Yields:
            ``duration`` of each candidate with its name as the case's ``timed``, then ``speed_up`` of each other one over
            the baseline, pair by pair, with its name as ``timed``.

        Raises:
            WrongResult: As `kb.repro.harness.timing.alternate`.
            CannotRun: The clock was moved.
        """
        from kb.repro.harness import timing
        from kb.repro.harness.environment import load_average
        from kb.repro.harness.nvml import Watch

        stopwatch: timing.Stopwatch = timing.CudaClock() if self.device == "cuda" else timing.WallClock()
        budget = timing.GLANCE if self.quick else timing.Budget()
        with Watch() if self.device == "cuda" else nullcontext() as watch:
            timed = timing.alternate(
                candidates, stopwatch, lambda number: self.rng(case, 1_000 + number), budget, watch
            )
        facts = {**self.declared.facts, **timed.facts, "load": load_average()}
        base, *others = timed.samples
        for name, seconds in timed.samples.items():
            floor = {"floor_s": candidates[name].floor_s}
            yield self._make("duration", case, seconds, None, level, facts | floor, timed=name)
        for name in others:
            pairs = zip(timed.samples[base], timed.samples[name], strict=True)
            paired = {**facts, "against": base}
            yield self._make("speed_up", case, [a / b for a, b in pairs], None, level, paired, timed=name)

    def _make(
        self,
        metric: str,
        case: Record,
        samples: Sequence[float],
        expected: float | None,
        level: Level | None,
        facts: dict[str, Any],
        *,
        timed: str = "",
    ) -> Measurement:
        if metric not in METRICS:
            raise BadConfig(
                f"{self.declared.repro}: {metric} not recorded",
                cause="kb/vocab.py has no such metric",
                remedy="add it there, with its unit and its words in zh and en",
            )
        values = {
            "repro": self.declared.repro,
            "case": case.to_json() | ({"timed": timed} if timed else {}),
            "metric": metric,
            "unit": METRICS[metric].unit,
            "expected": expected,
            "seed": self.declared.seed,
            "rule": self.declared.rule,
            "code": self.declared.code,
            "inputs": self.declared.inputs,
            "level": level or self.declared.level,
            "env": self.declared.env,
        }
        whole = tuple(float(sample) for sample in samples)
        rest = {"samples": whole, "at": self.declared.at, "run_facts": facts}
        unnamed = Measurement.model_validate({"id": "-", **values, **rest})
        return unnamed.model_copy(update={"id": identify(unnamed)})


def identify(one: Measurement) -> str:
    """Name of a measurement: what was declared, and its samples if counted or its session if a clock saw them.

    So a count that is taken again is the same record, and each session of a clock is another one.
    """
    declared = one.to_json()
    for name in ("id", "at", "run_facts", "imported", "samples", "level"):
        del declared[name]
    taken = {"session": one.at} if "clock" in one.run_facts else {"samples": list(one.samples)}
    return digest({**declared, **taken})[:16]
