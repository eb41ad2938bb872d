"""A run as one file that travels between machines: what was declared, where it ran, every sample, and a checksum.

    {"kb": "runs/1", "runs": [{"repro", "run", "environment", "rules", "measurements"}], "sum": sha256 of the rest}

``sum`` finds damage; only the digest of the whole file, told by whoever ran it over another way (``--expect``), vouches
for it. Without that an imported run is shown apart and never carries the level ``measured``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kb.errors import BadInput, NothingMatches
from kb.files import digest, read_bytes, sha256
from kb.model import Environment, Level, Measurement
from kb.repro.harness import verdicts as judging
from kb.repro.harness.bench import identify
from kb.repro.harness.contract import load, units
from kb.repro.harness.digests import SHORT
from kb.store import Base, environment_name, to_json_text
from kb.tables import RunRow, run_groups

FORMAT = "runs/1"
MAX_BYTES = 256 << 20
NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")
"""Names of reproductions."""


@dataclass(frozen=True)
class Run:
    """One run in an archive."""

    repro: str
    environment: Environment
    rules: dict[str, Any]
    """Claim id → its rule as declared."""
    measurements: tuple[Measurement, ...]

    @property
    def id(self) -> str:
        """Digest of its measurements."""
        return digest(sorted(one.id for one in self.measurements))[:SHORT]


@dataclass(frozen=True)
class Imported:
    """What an import added."""

    run: str
    repro: str
    new: int
    known: int
    verified: bool


def pack(runs: Sequence[Run]) -> bytes:
    """Write runs as an archive; the same runs give the same bytes."""
    body = {
        "kb": FORMAT,
        "runs": [
            {
                "repro": run.repro,
                "run": run.id,
                "environment": run.environment.to_json(),
                "rules": run.rules,
                "measurements": [one.to_json() for one in run.measurements],
            }
            for run in runs
        ],
    }
    return to_json_text({**body, "sum": digest(body)}).encode()


def unpack(data: bytes, name: str) -> list[Run]:
    """Read an archive and see that nothing in it was altered.

    Raises:
        BadInput: It is no archive, was damaged, or a record does not follow from what it declares.
    """
    try:
        body = json.loads(data)
        stated = body.pop("sum")
        if body["kb"] != FORMAT:
            raise BadInput(
                f"{name}: not imported", cause=f"its format is {body['kb']!r}", remedy=f"{FORMAT} is known"
            )
        if digest(body) != stated:
            raise BadInput(
                f"{name}: not imported",
                cause="its checksum does not match: it was damaged or edited",
                remedy="fetch it again from the machine that made it",
            )
        runs = [
            Run(
                one["repro"],
                Environment.model_validate(one["environment"]),
                dict(one["rules"]),
                tuple(Measurement.model_validate(m) for m in one["measurements"]),
            )
            for one in body["runs"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = (
            str(error).partition("\n")[0]
            if not isinstance(error, ValidationError)
            else error.errors()[0]["msg"]
        )
        raise BadInput(
            f"{name}: not imported",
            cause=f"it is no archive of runs ({why})",
            remedy="give what kb run export wrote",
        ) from error
    for run in runs:
        _agrees(run, name)
    return runs


def _agrees(run: Run, name: str) -> None:
    """See that every record names its own digest, reproduction, machine class and rules: these become file names."""
    env, rules = environment_name(run.environment), digest(run.rules)[:SHORT]
    if not NAME.match(run.repro):
        raise BadInput(
            f"{name}: not imported", cause=f"{run.repro[:60]!r} is no name", remedy="words and hyphens"
        )
    for one in run.measurements:
        if (identify(one), env, run.repro, rules) != (one.id, one.env, one.repro, one.rule):
            raise BadInput(
                f"{name}: not imported",
                cause=f"measurement {one.id} does not follow from what it declares",
                remedy="fetch it again from the machine that made it",
            )


def find_runs(base: Base, wanted: Sequence[str]) -> Iterator[tuple[RunRow, list[Measurement]]]:
    """Find stored runs by id or an unambiguous beginning of it.

    Raises:
        NothingMatches: There is none, or more than one.
    """
    groups = run_groups(base)
    for name in wanted:
        found = [pair for pair in groups if name and pair[0].id.startswith(name)]
        if len(found) != 1:
            raise NothingMatches(
                f"{name}: {'no such run' if not found else 'more than one run'}",
                cause=f"{len(found)} of {len(groups)} runs begin so",
                remedy="list them and give more characters",
                next_command="kb list runs",
            )
        yield found[0]


def export(base: Base, wanted: Sequence[str]) -> bytes:
    """Pack stored runs.

    Raises:
        NothingMatches: As `find_runs`.
    """
    environments, declared = base.environments(), base.declared_rules()
    runs = []
    for row, group in find_runs(base, wanted):
        rules = declared.get(group[0].rule, {})
        own = tuple(one.model_copy(update={"imported": {}}) for one in group)
        runs.append(Run(row.repro, environments[row.env], rules, own))
    return pack(runs)


def import_file(base: Base, path: Path, expect: str, *, who: str, at: str, dry_run: bool) -> list[Imported]:
    """Verify an archive and add its runs; the caller holds the write lock.

    Args:
        base: The knowledge base.
        path: The archive.
        expect: SHA-256 of the file as told by whoever made it; empty: the runs are shown apart.
        who: Who imports.
        at: Moment, UTC.
        dry_run: Verify and count only.

    Raises:
        BadInput: It is not what ``expect`` says, or `unpack` refuses it.
    """
    data = read_bytes(path, limit=MAX_BYTES)
    found = sha256(data)
    if expect and expect.lower() != found:
        raise BadInput(
            f"{path.name}: not imported",
            cause=f"its SHA-256 is {found}, not the expected {expect.lower()}",
            remedy="it is another file, or it was altered: ask whoever made it",
        )
    mark = {"by": who, "at": at, "archive": found, "verified": "yes" if expect else "no"}
    added = [_add(base, run, mark, dry_run=dry_run) for run in unpack(data, path.name)]
    if not dry_run:
        _judge_again(base, {one.repro for one in added})
    return added


def _add(base: Base, run: Run, mark: dict[str, str], *, dry_run: bool) -> Imported:
    verified = mark["verified"] == "yes"
    stored = base.measurements(run.repro)
    known = {one.id for one in stored if not (verified and judging.is_unverified(one))}
    fresh = []
    for one in run.measurements:
        level = Level.PROXY if one.level is Level.MEASURED and not verified else one.level
        if one.id not in known:
            fresh.append(one.model_copy(update={"imported": mark, "level": level}))
    if fresh and not dry_run:
        for name in {one.rule for one in fresh}:
            base.declare_rules(name, run.rules)
        base.append_measurements(run.repro, run.environment, fresh)
    return Imported(run.id, run.repro, len(fresh), len(run.measurements) - len(fresh), verified)


def _judge_again(base: Base, repros: set[str]) -> None:
    known = units()
    here = [known[name] for name in sorted(repros) if name in known]
    systems = {system for unit in here for system in unit.systems}
    judging.write_verdicts(base, judging.refresh(base, systems))
    for unit in here:
        judging.write_figures(base, unit, load(unit))
