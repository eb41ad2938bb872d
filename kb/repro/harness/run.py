"""One run of one reproduction: declare, check everything, measure everything, store, judge.

Whatever is wrong stops it before anything is stored. A run that is killed goes on where it stopped: finished cases wait
in ``.kb/runs`` and enter the base together at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kb import clock
from kb.errors import BadConfig, CannotRun, WrongResult
from kb.files import digest
from kb.lock import hold
from kb.model import Claim, Environment, Level, Measurement, Record, Verdict
from kb.repro.harness import environment as machine
from kb.repro.harness import verdicts as judging
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.checkpoint import Checkpoint
from kb.repro.harness.contract import Reproduction, Scope, Unit, load
from kb.repro.harness.digests import SHORT, code_digest, inputs_digest, rule_digest
from kb.repro.harness.rules import effective_rule, is_wanted
from kb.store import Base, environment_name

Progress = Callable[[str, int, int], None]
"""Called with the phase, cases done and cases in all."""
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


def run_unit(base: Base, unit: Unit, options: Options, progress: Progress = lambda *_: None) -> Report:
    """Run one reproduction; with ``store`` and without ``quick`` keep its samples, verdicts and figures.

    Raises:
        WrongResult: A fast path disagrees with its reference; nothing was stored.
        CannotRun: The device or a package is missing, nothing could be measured, or time ran out.
        Busy: The same run is going on elsewhere.
    """
    started = time.monotonic()
    prepared = _prepare(base, unit, options)
    name = digest([prepared.bench.declared.__dict__ | {"at": ""}, [c.to_json() for c in prepared.cases]])[
        :SHORT
    ]
    keeps = options.store and not options.quick
    with hold(base.root, f"run-{name}", f"kb repro {unit.name}", wait_s=1.0):
        checkpoint = Checkpoint.open(base, name, prepared.bench.declared.at, enabled=keeps)
        prepared.bench.declared = prepared.bench.declared.begun(checkpoint.at)
        try:
            taken = list(_take(prepared, options, checkpoint, progress, started))
        except WrongResult:
            checkpoint.discard()
            raise
        report = Report(
            unit, prepared.environment, options.seed, options.quick, taken, blocked=prepared.blocked
        )
        if keeps:
            _keep(base, prepared, report)
            checkpoint.discard()
        else:
            judged = judging.read_judged(base, _why_blocked(report))
            report.verdicts = judging.of_run(unit, taken, judged)
    report.seconds = time.monotonic() - started
    if not taken:
        raise CannotRun(
            f"kb repro {unit.name}: nothing was measured",
            cause=next(iter(report.blocked.values()), "it has no cases"),
            remedy="see what it needs",
            next_command="kb repro list",
        )
    return report


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
            next_command="kb claim lint",
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
        inputs=inputs_digest(claims.values()),
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
    run: _Run, options: Options, checkpoint: Checkpoint, progress: Progress, started: float
) -> Iterator[Measurement]:
    """Check every case, then measure every case that is not in the checkpoint."""
    runnable = []
    for number, case in enumerate(run.cases):
        progress("check", number, len(run.cases))
        try:
            run.module.check(case, run.bench)
        except WrongResult:
            raise
        except CannotRun as error:
            run.blocked[digest(case.to_json())[:SHORT]] = error.cause
        else:
            runnable.append(case)
    for number, case in enumerate(runnable):
        progress("measure", number, len(runnable))
        _stop_in_time(run, options, checkpoint, started, number, len(runnable))
        name = digest(case.to_json())[:SHORT]
        kept = checkpoint.found.get(name)
        if kept is None:
            try:
                kept = list(run.module.measure(case, run.bench))
            except WrongResult:
                raise
            except CannotRun as error:
                run.blocked[name] = error.cause
                continue
            checkpoint.add(name, kept)
        yield from kept
    progress("measure", len(runnable), len(runnable))


def _stop_in_time(
    run: _Run, options: Options, checkpoint: Checkpoint, started: float, done: int, total: int
) -> None:
    if options.timeout_s is None or time.monotonic() - started < options.timeout_s:
        return
    checkpoint.flush()
    raise CannotRun(
        f"kb repro {run.unit.name}: stopped after {done} of {total} cases",
        cause=f"the time limit of {options.timeout_s:g} s",
        remedy="run the same command again: finished cases are kept and not repeated",
        next_command=f"kb repro {run.unit.name}",
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
            rules = {claim.id: effective_rule(claim) for claim in run.claims.values()}
            base.declare_rules(run.bench.declared.rule, rules)
            base.append_measurements(unit.name, run.environment, fresh)
        report.num_new = len(fresh)
        refreshed = judging.refresh(base, unit.systems, blocked=_why_blocked(report))
        judging.write_verdicts(base, refreshed)
        write_figures(base, unit, run.module)
    report.verdicts = [verdict for verdict in refreshed if verdict.claim in unit.claims]


def write_figures(base: Base, unit: Unit, module: Reproduction[Record]) -> list[str]:
    """Write the figures of a reproduction from its best evidence; the names of those that changed."""
    found = judging.evidence(unit, base.measurements(unit.name))
    if not found:
        return []
    return [figure.name for figure in module.figure(found[0].taken) if base.write_figure(figure)]


def report_json(reports: Sequence[Report], system: str) -> dict[str, Any]:
    """The document of ``kb repro NAME --json``; several reproductions of one system come as one."""
    runs = [report.run for report in reports]
    return {
        "run": runs[0] if len(runs) == 1 else digest(runs)[:SHORT],
        "system": system,
        "repros": [report.unit.name for report in reports],
        "environment": reports[0].environment.to_json(),
        "seed": reports[0].seed,
        "quick": reports[0].quick,
        "seconds": round(sum(report.seconds for report in reports), 3),
        "claims": [claim_json(verdict) for report in reports for verdict in report.verdicts],
        "blocked": [
            {"repro": report.unit.name, "case": case, "cause": cause}
            for report in reports
            for case, cause in report.blocked.items()
        ],
        "measurements": [
            {
                "metric": one.metric,
                "unit": one.unit,
                "case": one.case,
                "samples": list(one.samples),
                "expected": one.expected,
                "level": one.level,
            }
            for report in reports
            for one in report.measurements
        ],
    }


def claim_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict as the contract's claim object."""
    whole = verdict.to_json()
    shown = {"id": verdict.claim}
    for name in (
        "verdict",
        "level",
        "source",
        "measured",
        "reason",
        "reason_zh",
        "cases",
        "repro",
        "machine",
    ):
        shown[name] = whole[name]
    return shown
