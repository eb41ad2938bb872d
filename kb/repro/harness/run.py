"""One run of one reproduction: declare, check everything, measure everything, store, judge.

Whatever is wrong stops it before anything is stored. A run that is killed goes on where it stopped: finished cases wait
in ``.kb/runs`` and enter the base together at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

from kb import clock
from kb.errors import BadConfig, CannotRun, WrongResult
from kb.files import digest
from kb.lock import hold
from kb.model import Claim, Environment, Level, Measurement, Record, Verdict
from kb.repro.harness import environment as machine
from kb.repro.harness import verdicts as judging
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.checkpoint import Checkpoint
from kb.repro.harness.contract import Reproduction, Scope, Unit, data_files, load
from kb.repro.harness.digests import SHORT, code_digest, inputs_digest, rule_digest
from kb.repro.harness.executors import Done, Task, local, on_ray
from kb.repro.harness.rules import effective_rule, is_wanted
from kb.store import Base, environment_name

Progress = Callable[[str, int, int], None]
"""Called with the phase, cases done and cases in all."""
Execute = Callable[[Iterator[Task]], Iterator[Done]]
EXECUTORS: dict[str, Execute] = {"local": local, "ray": on_ray}
PHASES: tuple[Literal["check", "measure"], ...] = ("check", "measure")
NUM_GLANCE = 3
"""Cases of a ``--quick`` run where no rule points at any."""


@dataclass(frozen=True)
class Options:
    """What ``kb repro`` was asked for."""

    gpu: bool = False
    quick: bool = False
    seed: int = 0
    timeout_s: float | None = None
    executor: str = "local"
    endpoint: str = ""
    """OpenAI-compatible address of a serving engine, for reproductions that need one."""
    store: bool = True
    """False: as ``--quick``, over all cases."""


@dataclass
class Report:
    """What one run gave."""

    unit: Unit
    environment: Environment
    seed: int
    quick: bool
    measurements: list[Measurement]
    verdicts: list[Verdict] = field(default_factory=list)
    rules: dict[str, Any] = field(default_factory=dict)
    """Claim id → its rule as declared."""
    blocked: dict[str, str] = field(default_factory=dict)
    """Case → why it could not run."""
    seconds: float = 0.0
    num_new: int = 0
    """Measurements that were not stored before."""

    @property
    def run(self) -> str:
        """Digest of the measurements."""
        return digest(sorted(one.id for one in self.measurements))[:SHORT]


@dataclass
class _Run:
    unit: Unit
    module: Reproduction[Record]
    claims: dict[str, Claim]
    environment: Environment
    bench: Bench
    cases: list[Record]
    blocked: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Digest of all that decides the samples: a killed run is found again by it."""
        declared = {**self.bench.declared.__dict__, "at": "", "facts": {}}
        return digest([declared, [case.to_json() for case in self.cases]])[:SHORT]


def run_unit(base: Base, unit: Unit, options: Options, progress: Progress = lambda *_: None) -> Report:
    """Run one reproduction; with ``store`` and without ``quick`` keep its samples, verdicts and figures.

    Raises:
        WrongResult: A fast path disagrees with its reference; nothing was stored.
        CannotRun: The device or a package is missing, nothing could be measured, or time ran out.
        Busy: The same run is going on elsewhere.
    """
    started = time.monotonic()
    run = _prepare(base, unit, options)
    keeps = options.store and not options.quick
    # runs that are kept exclude each other, so that two never write into one checkpoint
    with (
        hold(base.root, f"repro-{unit.name}", f"kb repro {unit.name}", wait_s=1.0) if keeps else nullcontext()
    ):
        checkpoint = Checkpoint.open(base, run.name, run.bench.declared.at, enabled=keeps)
        run.bench.declared = run.bench.declared.begun(checkpoint.at)
        clock_ = _Clock(started, options.timeout_s, unit.name)
        try:
            taken = list(_take(run, EXECUTORS[options.executor], checkpoint, progress, clock_))
        except WrongResult:
            checkpoint.discard()
            raise
        except KeyboardInterrupt:
            checkpoint.flush()
            raise
        rules = {claim.id: effective_rule(claim) for claim in run.claims.values()}
        report = Report(
            unit, run.environment, options.seed, options.quick, taken, rules=rules, blocked=run.blocked
        )
        if keeps:
            _keep(base, run, report)
            checkpoint.discard()
        else:
            report.verdicts = judging.of_run(
                unit, taken, judging.read_judged(base, unit.systems, _why_blocked(report))
            )
    report.seconds = time.monotonic() - started
    # a module without cases has only reasons to give; one whose every case failed could not run
    if not taken and run.cases:
        raise CannotRun(
            f"kb repro {unit.name}: nothing was measured",
            cause=next(iter(report.blocked.values()), "it has no cases"),
            remedy="see what it needs",
            next_command="kb repro list",
        )
    return report


def plan(base: Base, unit: Unit, options: Options) -> dict[str, Any]:
    """Say what a run would do, or why it cannot run here; nothing is measured."""
    try:
        run = _prepare(base, unit, options)
    except CannotRun as error:
        return {"repro": unit.name, "cases": 0, "claims": len(unit.claims), "cannot": error.cause}
    return {"repro": unit.name, "cases": len(run.cases), "claims": len(unit.claims), "cannot": ""}


def _prepare(base: Base, unit: Unit, options: Options) -> _Run:
    if options.gpu:
        machine.need_gpu(f"kb repro {unit.name} --gpu")
    elif "gpu" in unit.needs:
        raise CannotRun(
            f"kb repro {unit.name}: not run",
            cause="all it measures needs a GPU",
            remedy="run it with --gpu on a machine that has one",
            next_command=f"kb repro {unit.name} --gpu",
        )
    module = load(unit)
    known = base.claims(system for system in unit.systems if (base.root / f"claims/{system}.toml").is_file())
    missing = [name for name in unit.claims if name not in known]
    if missing:
        raise BadConfig(
            f"kb repro {unit.name}: not run",
            cause=f"the base has no claim {missing[0]}",
            remedy=f"add it to claims/{missing[0].partition('/')[0]}.toml with its rule",
            next_command="kb list claims",
        )
    claims = {name: known[name] for name in unit.claims}
    device = "cuda" if options.gpu else "cpu"
    environment = machine.observe(unit.needs, gpu=options.gpu)
    declared = Declared(
        repro=unit.name,
        seed=options.seed,
        level=Level(unit.levels[-1 if options.gpu else 0]),
        rule=rule_digest(claims.values()),
        code=code_digest(unit.path),
        inputs=inputs_digest(claims.values(), data_files(unit)),
        env=environment_name(environment),
        at=clock.stamp(clock.now()),
        facts=machine.code_state(),
    )
    bench = Bench(declared, quick=options.quick, device=device, endpoint=options.endpoint)
    scope = Scope(claims)
    scope.device = device
    cases = list(module.cases(scope))
    if options.quick:
        chosen = [
            case for case in cases if any(is_wanted(claim, case.to_json()) for claim in claims.values())
        ]
        cases = chosen or cases[:NUM_GLANCE]
    return _Run(unit, module, claims, environment, bench, cases)


def _take(
    run: _Run, execute: Execute, checkpoint: Checkpoint, progress: Progress, limit: _Clock
) -> Iterator[Measurement]:
    """Check every case, then measure every case that is not in the checkpoint; in the order of the cases."""
    kept: dict[str, Sequence[Measurement]] = dict(checkpoint.found)
    for phase in PHASES:
        waiting = [case for case in run.cases if phase == "check" or key(case) not in {*kept, *run.blocked}]
        tasks = (Task(run.unit.module, phase, case, run.bench) for case in waiting)
        for number, done in enumerate(execute(tasks), 1):
            if done.wrong is not None:
                what, cause, remedy = done.wrong
                raise WrongResult(f"{run.unit.name}: {what}", cause=cause, remedy=remedy)
            if done.cannot:
                run.blocked[key(done.case)] = done.cannot
            elif phase == "measure":
                kept[key(done.case)] = done.taken
                checkpoint.add(key(done.case), done.taken)
            progress(phase, number, len(waiting))
            if number < len(waiting) and limit.is_over():
                checkpoint.flush()
                raise limit.error(phase, number, len(waiting))
    for case in run.cases:
        yield from kept.get(key(case), ())


def key(case: Record) -> str:
    """Name of a case within its run."""
    return digest(case.to_json())[:SHORT]


@dataclass(frozen=True)
class _Clock:
    """The time limit of a run."""

    started: float
    limit_s: float | None
    unit: str

    def is_over(self) -> bool:
        return self.limit_s is not None and time.monotonic() - self.started >= self.limit_s

    def error(self, phase: str, done: int, total: int) -> CannotRun:
        return CannotRun(
            f"kb repro {self.unit}: stopped in {phase} after {done} of {total} cases",
            cause=f"the time limit of {self.limit_s:g} s",
            remedy="run the same command again: finished cases are kept and not measured again",
            next_command=f"kb repro {self.unit}",
        )


def _why_blocked(report: Report) -> dict[str, str]:
    return {report.unit.name: next(iter(report.blocked.values()))} if report.blocked else {}


def _keep(base: Base, run: _Run, report: Report) -> None:
    """Store the samples, then judge again everything the reproduction speaks to."""
    unit = run.unit
    with base.writing(f"kb repro {unit.name}"):
        known = {one.id for one in base.measurements(unit.name)}
        fresh = list({one.id: one for one in report.measurements if one.id not in known}.values())
        if fresh:
            base.declare_rules(run.bench.declared.rule, report.rules)
            base.append_measurements(unit.name, run.environment, fresh)
        report.num_new = len(fresh)
        refreshed = judging.refresh(base, unit.systems, blocked=_why_blocked(report))
        judging.write_verdicts(base, refreshed)
        judging.write_figures(base, unit, run.module)
    report.verdicts = [verdict for verdict in refreshed if verdict.claim in unit.claims]
