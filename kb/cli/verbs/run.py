"""``kb run``: stored runs, as they were taken, and their way between machines."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.shared import (
    acting_person,
    dry_run_option,
    emit_json,
    emit_table,
    json_option,
    note,
    open_base,
    say,
)


@click.group()
def command() -> None:
    """Show a stored run, write it to a file, or add one that another machine made."""


@command.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@json_option
@click.pass_context
def show(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    r"""Show runs by id (kb list runs): environment, facts, every sample.

    \b
    kb run show 3f9c1a2b
    """
    from kb.repro.harness.archive import find_runs

    base = open_base(ctx)
    environments = base.environments()
    documents = []
    for row, group in find_runs(base, runs):
        environment = environments[row.env].to_json() if row.env in environments else None
        if as_json:
            taken = [one.to_json() for one in group]
            documents.append({**row.to_json(), "environment": environment, "measurements": taken})
            continue
        mark = group[0].imported
        apart = "" if not mark else f", imported by {mark.get('by')}, verified: {mark.get('verified')}"
        say(f"{row.id}  {row.repro}  {row.machine}  {row.at}  seed {row.seed}{apart}")
        say("  " + ", ".join(f"{k} {v}" for k, v in (environment or {}).items() if v))
        say("  " + ", ".join(f"{k} {v}" for k, v in group[0].run_facts.items()))
        rows = [
            [one.metric, one.unit, ", ".join(f"{k}={v}" for k, v in one.case.items()), _samples(one.samples)]
            for one in group
        ]
        emit_table(rows, ["metric", "unit", "case", "samples"])
    if as_json:
        emit_json(documents)


def _samples(values: tuple[float, ...]) -> str:
    shown = " ".join(f"{value:.6g}" for value in values[:8])
    return shown + (f" … {len(values)} in all" if len(values) > 8 else "")  # noqa: PLR2004


@command.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--out", "path", type=click.Path(path_type=Path), required=True, help="File to write.")
@json_option
@click.pass_context
def export(ctx: click.Context, runs: tuple[str, ...], path: Path, as_json: bool) -> None:
    r"""Write runs into one file and print its SHA-256, which the receiver passes to import --expect.

    \b
    kb run export 3f9c1a2b --out run.json
    """
    from kb.files import sha256, write_atomic
    from kb.repro.harness import archive

    data = archive.export(open_base(ctx), runs)
    write_atomic(path, data, scratch=path.parent)
    if as_json:
        emit_json({"path": str(path), "sha256": sha256(data), "runs": len(runs)})
    else:
        say(f"{sha256(data)}  {path}")


@command.command(name="import")
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--expect", metavar="SHA256", default="", help="Digest of the file, as its maker told you.")
@dry_run_option
@json_option
@click.pass_context
def import_(ctx: click.Context, path: Path, expect: str, dry_run: bool, as_json: bool) -> None:
    r"""Verify a file that kb run export or scripts/gpu_check wrote, and add its runs.

    Without --expect the runs are shown apart and never carry the level measured.

    \b
    kb run import run.json --expect 0f3a…
    """
    from dataclasses import asdict

    from kb import clock
    from kb.repro.harness import archive

    base = open_base(ctx)
    who, at = acting_person(base), clock.stamp(clock.now())
    with base.writing("kb run import"):
        added = archive.import_file(base, path, expect, who=who, at=at, dry_run=dry_run)
    if as_json:
        emit_json([asdict(one) for one in added])
        return
    would = "would add" if dry_run else "added"
    for one in added:
        apart = "" if one.verified else "; shown apart: no --expect"
        say(f"{one.run}  {one.repro}: {would} {one.new}, {one.known} known{apart}")
    if not added:
        note("the file holds no runs")
