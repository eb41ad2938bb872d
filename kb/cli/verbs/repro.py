"""``kb repro NAME…``: run what stands behind the claims of a system."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.root import keep_examples
from kb.cli.shared import console, emit_json, emit_table, json_option, note, open_base
from kb.errors import KbError, WrongUse, worst

if TYPE_CHECKING:
    from rich.progress import TaskID

    from kb.repro.harness.contract import Unit
    from kb.repro.harness.run import Options, Report
    from kb.store import Base

PROGRESS_S = 10.0
"""Seconds between two lines of progress."""


class ReproGroup(click.Group):
    """``kb repro NAME`` runs; a reserved word in its place is a command of its own.

    Further words are files ``_repro_<word>.py`` beside this one that define ``command``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command ``run`` before anything that is no reserved word."""
        words = self.list_commands(ctx)
        return super().parse_args(ctx, args if args and args[0] in words else ["run", *args])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Reserved words; `run` stands for none."""
        found = [path.stem.removeprefix("_repro_") for path in Path(__file__).parent.glob("_repro_*.py")]
        return sorted([*super().list_commands(ctx), *(word.replace("_", "-") for word in found)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a word's file when it is asked for."""
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in self.list_commands(ctx):
            return known
        module = importlib.import_module(f"kb.cli.verbs._repro_{cmd_name.replace('-', '_')}")
        found = module.command
        assert isinstance(found, click.Command)  # noqa: S101  a unit's contract, tested by tests/cli
        return keep_examples(found)


class RunCommand(click.Command):
    """``kb repro NAME…``, whose own hidden word is not shown."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the usage as it is typed."""
        typed = ctx.command_path.removesuffix("run").rstrip()
        formatter.write_usage(typed, " ".join(self.collect_usage_pieces(ctx)))


@click.group(cls=ReproGroup, add_help_option=False)
def command() -> None:
    """Run what stands behind the claims of a system: NAME…, --all, list, compare."""


@command.command("run", cls=RunCommand, hidden=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="NAME…")
@click.option("--all", "run_all", is_flag=True, help="Every reproduction that can run here.")
@click.option("--gpu", is_flag=True, help="On the GPU, at its scale.")
@click.option("--quick", is_flag=True, help="A glance at the judged cases; nothing is stored.")
@click.option(
    "--check", is_flag=True, help="Store nothing; exit 1 where a verdict differs from the stored one."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of random inputs.")
@click.option("--out", type=click.Path(path_type=Path), help="Write an archive here, store nothing.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0, min_open=True), help="Seconds; finished cases stay."
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the cases run; ray fans them out over a cluster.",
)
@click.option("--endpoint", metavar="URL", default="", help="A serving engine to measure.")
@click.option("--dry-run", is_flag=True, help="Say which cases would run; run none.")
@json_option
@click.pass_context
def run_command(ctx: click.Context, /, names: tuple[str, ...], **asked: Any) -> int | None:
    r"""Run reproductions by NAME, or all that speak to a system: check, measure, store, judge.

    \b
    kb repro list                   what there is and what it needs
    kb repro paged-eviction         on this CPU, within a minute
    kb repro tangram --gpu          the same claims at the scale of a GPU
    kb repro compare RUN RUN        two runs side by side

    A verdict never changes the exit code; --check does, when it differs from the stored one.
    """
    base = open_base(ctx)
    if bool(names) == asked["run_all"]:
        raise WrongUse(
            "kb repro: nothing was run",
            cause="give NAMEs or --all, not both and not neither",
            remedy="see what there is",
            next_command="kb repro list",
        )
    if asked["quick"] and asked["out"] is not None:
        raise WrongUse(
            "kb repro --quick --out: nothing was run",
            cause="a glance takes too few samples to be kept, here or elsewhere",
            remedy="leave one of the two away",
        )
    return _run(base, names, asked)


@command.command("list")
@json_option
@click.pass_context
def list_command(ctx: click.Context, as_json: bool) -> None:
    r"""List the reproductions: levels, what each needs, the claims it speaks to; how claims are judged.

    \b
    kb repro list --json
    """
    _list(as_json=as_json)
    with contextlib.suppress(KbError):  # the list is the same without a base
        _count(open_base(ctx))


@command.command("compare")
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@click.option("--across", is_flag=True, help="Put unlike machine classes side by side.")
@json_option
@click.pass_context
def compare_command(ctx: click.Context, first: str, second: str, across: bool, as_json: bool) -> None:
    r"""Compare two stored runs case by case; runs of unlike machine classes only with --across.

    \b
    kb repro compare 3f9c1a2b 77d0e41c --across
    """
    from kb.repro.harness import compare

    rows = compare.compare(open_base(ctx), first, second, across=across)
    if as_json:
        emit_json(compare.to_json(rows))
        return
    table = [
        [r.metric, ", ".join(f"{k}={v}" for k, v in r.case.items()), f"{r.first:.5g}", f"{r.second:.5g}",
         "–" if r.ratio is None else f"{r.ratio:.4g} ({r.low:.4g}–{r.high:.4g})", "differs" if r.differs else ""]
        for r in rows
    ]  # fmt: skip
    emit_table(table, ["metric", "case", "first", "second", "second / first", ""])


def _list(*, as_json: bool) -> None:
    from kb.repro.harness.contract import units

    found = units().values()
    if as_json:
        shown = ("name", "systems", "claims", "levels", "needs", "title")
        rows = [{name: getattr(unit, name) for name in shown} for unit in found]
        emit_json([{k: list(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in rows])
        return
    table = [
        [u.name, ", ".join(u.levels), ", ".join(u.needs) or "–", str(len(u.claims)), u.title] for u in found
    ]
    emit_table(table, ["name", "levels", "needs", "claims", "what"])


def _count(base: Base) -> None:
    """Say how many of the base's claims are judged by a band, and how many by a named check, counted apart."""
    judged = base.verdicts()
    known = [claim for claim in base.claims().values() if claim.id in judged and judged[claim.id].level]
    checked = [claim for claim in known if claim.rule is not None and claim.rule.check]
    without = [claim for claim in checked if claim.low is None]
    note(
        f"{len(known)} claims are judged: {len(known) - len(checked)} by the band of their number, {len(checked)} by a "
        f"named check, of which {len(without)} state no number"
    )


def _run(base: Base, names: tuple[str, ...], asked: dict[str, Any]) -> int:
    from kb.repro.harness.contract import find_units, units
    from kb.repro.harness.report import report_json

    wanted = {name: [unit] for name, unit in units().items()} if asked["run_all"] else {}
    wanted |= {name: find_units([name]) for name in names}
    if asked["dry_run"]:
        return _plan(base, wanted, asked)
    done, failed = _run_groups(base, wanted, asked)
    documents = []
    for name, reports in done.items():
        unit = reports[0].unit
        documents.append(report_json(reports, unit.systems[0] if name == unit.name else name))
        if not asked["as_json"]:
            _print(reports)
    if asked["as_json"]:
        emit_json(documents[0] if len(wanted) == 1 and documents else documents)
    for one in failed:
        note(f"not run: {one.what} ({one.cause}); remedy: {one.remedy}")
    if asked["run_all"] and _options(asked).store and not asked["quick"]:
        _record_rest(base)
    codes = [_drift(base, reports) for reports in done.values()] if asked["check"] else []
    if failed:
        codes.append(4 if documents else worst([one.exit_code for one in failed]))
    return worst(codes)


def _record_rest(base: Base) -> None:
    """Every claim has a verdict, also where no reproduction speaks to its system."""
    from kb.repro.harness.verdicts import record_rest

    with base.writing("kb repro --all"):
        record_rest(base)


def _plan(base: Base, wanted: dict[str, list[Unit]], asked: dict[str, Any]) -> int:
    """Say what would run, and whether it can here."""
    from kb.repro.harness.run import plan

    options = _options(asked)
    rows = [plan(base, unit, options) for group in wanted.values() for unit in group]
    if asked["as_json"]:
        emit_json(rows)
    else:
        emit_table([[r["repro"], str(r["cases"]), str(r["claims"]), r["cannot"]] for r in rows],
                   ["repro", "cases", "claims", "cannot run because"])  # fmt: skip
    return 0


def _run_groups(
    base: Base, wanted: dict[str, list[Unit]], asked: dict[str, Any]
) -> tuple[dict[str, list[Report]], list[KbError]]:
    """Run all; where only one was asked for, its error is the answer."""
    is_alone = sum(len(group) for group in wanted.values()) == 1
    done: dict[str, list[Report]] = {}
    failed: list[KbError] = []
    for name, group in wanted.items():
        for unit in group:
            try:
                done.setdefault(name, []).append(_run_one(base, unit, asked))
            except KbError as error:
                if is_alone:
                    raise
                failed.append(error)
    return {name: reports for name, reports in done.items() if reports}, failed


def _run_one(base: Base, unit: Unit, asked: dict[str, Any]) -> Report:
    from kb.repro.harness.run import run_unit

    with _progress(unit.name) as progress:
        report = run_unit(base, unit, _options(asked), progress)
    if asked["out"] is not None:
        _write_archive(asked["out"], report)
    return report


def _options(asked: dict[str, Any]) -> Options:
    from kb.repro.harness.run import Options

    return Options(
        gpu=asked["gpu"],
        quick=asked["quick"],
        seed=asked["seed"],
        timeout_s=asked["timeout_s"],
        executor=asked["executor"],
        endpoint=asked["endpoint"],
        store=not asked["check"] and asked["out"] is None,
    )


def _write_archive(folder: Path, report: Report) -> None:
    from kb.files import sha256, write_atomic
    from kb.repro.harness.archive import Run, pack

    data = pack([Run(report.unit.name, report.environment, report.rules, tuple(report.measurements))])
    path = folder / f"{report.unit.name}-{report.run}.json"
    write_atomic(path, data, scratch=folder)
    note(f"{sha256(data)}  {path}")


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal; elsewhere a line per phase, and what is left of long ones."""
    if sys.stderr.isatty():
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console(), transient=True) as bar:
            tasks: dict[str, TaskID] = {}

            def draw(phase: str, done: int, total: int) -> None:
                if phase not in tasks:
                    tasks[phase] = bar.add_task(f"{name}: {phase}", total=total)
                bar.update(tasks[phase], completed=done)

            yield draw
        return
    began: dict[str, float] = {}
    said = [0.0]

    def tell(phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase not in began:
            began[phase] = said[0] = now
            note(f"{name}: {phase}, {total} cases")
        elif now - said[0] >= PROGRESS_S and done < total:
            left = (now - began[phase]) / done * (total - done)
            note(f"{name}: {phase} {done}/{total}, about {left:.0f} s left")
            said[0] = now

    yield tell


def _drift(base: Base, reports: list[Report]) -> int:
    stored = base.verdicts()
    found = 0
    for report in reports:
        for verdict in report.verdicts:
            old = stored.get(verdict.claim)
            if old is None or (old.overruled.get("rule_says") or old.verdict.value) != verdict.verdict.value:
                before = old.verdict.value if old else "none stored"
                note(f"drift: {verdict.claim}: {before} → {verdict.verdict.value}")
                found = 1
    return found


def _print(reports: list[Report]) -> None:
    for report in reports:
        kept = f"{report.num_new} new" if not report.quick else "quick: nothing stored"
        note(
            f"{report.unit.name}: {len(report.measurements)} measurements, {kept}, {report.seconds:.1f} s, "
            f"seed {report.seed}, {report.environment.machine}"
        )
        for case, cause in report.blocked.items():
            note(f"  not run: case {case}: {cause}")
        rows = [
            [v.claim, v.verdict.value, v.level.value if v.level else "–", v.reason] for v in report.verdicts
        ]
        emit_table(rows, ["claim", "verdict", "level", "reason"])
