"""What a reproduction is: one module ``kb/repro/<name>.py`` with these names, found by looking in the folder.

    CLAIMS    claim ids it speaks to; each has a record under ``claims/<system>.toml`` with its rule
    LEVELS    evidence levels its measurements can carry: the first is the default on a CPU, the last on a GPU
    NEEDS     what a run needs beyond the core package: "torch", "triton", "gpu", "weights", "engine", …
    cases     the parameter points, smallest first
    check     compare the fast path with its reference at one point; raise `kb.errors.WrongResult`
    measure   take the numbers of one point through `kb.repro.harness.bench.Bench`
    judge     one verdict per claim from stored records alone (most modules: ``judge = by_rule``)
    figure    what to draw, from stored records alone; with a second parameter, and from the claims for what they state

    data      optional: paths of the data files it reads; their digests are part of its inputs
    GPU_SECONDS    optional: what ``--gpu`` is expected to take; a module that has it joins ``scripts/gpu_check``

``CLAIMS``, ``LEVELS``, ``NEEDS`` and ``GPU_SECONDS`` are literals: `kb repro list` reads them without importing the module. A module
that imports torch at its top says so in ``NEEDS``. ``judge`` and ``figure`` run on a laptop without torch, so modules
that need it import it inside ``check`` and ``measure``. The recipe is ``docs/add-a-reproduction.md``.

The harness calls them in this order: every ``check``, then every ``measure``, then stores all samples, then ``judge``,
then ``figure``. A wrong result anywhere stores nothing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

import kb.repro
from kb.errors import BadConfig, CannotRun, NothingMatches
from kb.model import Claim, Figure, Level, Measurement, Record, Verdict
from kb.repro.harness.bench import Bench

Case = TypeVar("Case", bound=Record)
FOLDER = Path(kb.repro.__file__).parent
FUNCTIONS = ("cases", "check", "measure", "judge", "figure")
LITERALS = ("CLAIMS", "LEVELS", "NEEDS")
RESERVED = frozenset({"list", "compare", "calibrate", "sim-gates"})
"""Words after ``kb repro`` that are no reproductions."""


class Scope(dict[str, Claim]):
    """What a run is asked for: the claims of ``CLAIMS`` by id, for a point that a claim states in its conditions."""

    device: str = "cpu"
    """``cpu``, answered within a minute, or ``cuda``, at the scale of a GPU."""


class Reproduction(Protocol[Case]):
    """The contract; a module satisfies it. In a unit's test: ``UNIT: Reproduction[Case] = my_module``."""

    @property
    def CLAIMS(self) -> tuple[str, ...]:  # noqa: N802  a module constant
        """`Claim.id`s it speaks to."""

    @property
    def LEVELS(self) -> tuple[str, ...]:  # noqa: N802  a module constant
        """Evidence levels its measurements can carry: the first is the default on a CPU, the last on a GPU."""

    @property
    def NEEDS(self) -> tuple[str, ...]:  # noqa: N802  a module constant
        """What a run needs beyond the core package; empty for NumPy and arithmetic."""

    def cases(self, scope: Scope, /) -> Iterable[Case]:
        """Yield the parameter points, smallest first; pure.

        Args:
            scope: What is asked for. Most modules ignore it.
        """

    def check(self, case: Case, bench: Bench, /) -> None:
        """Compare the fast path with its reference.

        Raises:
            WrongResult: They disagree; nothing will be measured or stored.
            CannotRun: This point cannot run here; it is skipped and its claims are `blocked`.
        """

    def measure(self, case: Case, bench: Bench, /) -> Iterable[Measurement]:
        """Take the numbers; the only function here that sees a clock.

        Raises:
            CannotRun: As in `check`, for example out of memory.
        """

    def judge(self, claims: Sequence[Claim], taken: Sequence[Measurement], /) -> Sequence[Verdict]:
        """Give one verdict per claim from records alone; all of them come from one class of machine."""

    def figure(self, taken: Sequence[Measurement], /) -> Sequence[Figure]:
        """Say what to draw, from records alone; `kb.publish` draws it. Empty where there is nothing to draw."""


@dataclass(frozen=True)
class Unit:
    """A reproduction as `kb repro list` shows it, read without importing it."""

    name: str
    """As typed after ``kb repro``: words joined by hyphens."""
    path: Path
    title: str
    """First line of its docstring."""
    claims: tuple[str, ...]
    levels: tuple[str, ...]
    needs: tuple[str, ...]
    gpu_seconds: int = 0
    """Expected seconds of ``--gpu``; 0: nothing of it is worth a GPU."""
    has_data: bool = False
    """Whether it defines ``data()``."""

    @property
    def systems(self) -> tuple[str, ...]:
        """Systems whose claims it speaks to, in order of mention."""
        return tuple(dict.fromkeys(claim.partition("/")[0] for claim in self.claims))

    @property
    def module(self) -> str:
        """Import name."""
        return f"kb.repro.{self.path.stem}"


def units(folder: Path | None = None) -> dict[str, Unit]:
    """Every reproduction in a folder (``kb/repro``) by name.

    Raises:
        BadConfig: A module lacks a literal ``CLAIMS``, ``LEVELS`` or ``NEEDS``.
    """
    found = {}
    for path in sorted((folder or FOLDER).glob("*.py")):
        if not path.stem.startswith("_"):
            unit = read_unit(path)
            found[unit.name] = unit
    return found


def read_unit(path: Path) -> Unit:
    """Read the literals of a module without importing it.

    Raises:
        BadConfig: One is absent or no literal, or a level is none of ours.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    values = {name: tuple(_literal(assigned[name], path, name)) for name in LITERALS if name in assigned}
    seconds = assigned.get("GPU_SECONDS")
    missing = [name for name in LITERALS if name not in values]
    unknown = set(values.get("LEVELS", ())) - set(Level)
    if missing or unknown or path.stem.replace("_", "-") in RESERVED:
        raise BadConfig(
            f"{path.name}: no reproduction",
            cause=f"it has no literal {missing[0]}"
            if missing
            else f"unknown level or reserved name {unknown}",
            remedy="see kb/repro/harness/contract.py for what a module must define",
        )
    title = (ast.get_docstring(tree) or "").partition("\n")[0]
    gpu_seconds = int(ast.literal_eval(seconds)) if seconds is not None else 0
    name = path.stem.replace("_", "-")
    has_data = any(isinstance(node, ast.FunctionDef) and node.name == "data" for node in tree.body)
    fixed = (values["CLAIMS"], values["LEVELS"], values["NEEDS"])
    return Unit(name, path, title, *fixed, gpu_seconds, has_data)


def data_files(unit: Unit) -> list[Path]:
    """Data files a reproduction reads, present or not; see `Unit.has_data`."""
    return list(getattr(load(unit), "data")()) if unit.has_data else []  # noqa: B009  optional, not in the protocol


def _literal(node: ast.expr, path: Path, name: str) -> Iterator[str]:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    if not isinstance(value, tuple) or not all(isinstance(part, str) for part in value):
        raise BadConfig(
            f"{path.name}: {name} not read",
            cause="it is no literal tuple of strings",
            remedy='write it out, for example CLAIMS = ("eai/oom",)',
        )
    return iter(value)


def find_units(names: Sequence[str]) -> list[Unit]:
    """Find reproductions by name, or by a system they speak to.

    Raises:
        NothingMatches: A name is neither.
        CannotRun: It is a word kept for a command that this version lacks.
    """
    import difflib

    known = units()
    chosen: dict[str, Unit] = {}
    for name in names:
        if name in known:
            chosen[name] = known[name]
            continue
        if name in RESERVED:
            raise CannotRun(
                f"kb repro {name}: not run",
                cause="this version has no such command yet; the word is kept for it",
                remedy="see what runs",
                next_command="kb repro list",
            )
        matching = {unit.name: unit for unit in known.values() if name in unit.systems}
        if not matching:
            words = [*known, *(system for unit in known.values() for system in unit.systems)]
            near = difflib.get_close_matches(name, words, n=1)
            raise NothingMatches(
                f"{name}: no such reproduction",
                cause=f"there are {', '.join(known) or 'none'}",
                remedy=f"did you mean {near[0]}?" if near else "give one of them, or a system they speak to",
                next_command="kb repro list",
            )
        chosen.update(matching)
    return list(chosen.values())


def load(unit: Unit) -> Reproduction[Record]:
    """Import a reproduction and see that it keeps the contract.

    Raises:
        CannotRun: A package it needs is not installed.
        BadConfig: It lacks one of the five functions.
    """
    try:
        module = importlib.import_module(unit.module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "kb":
            raise
        raise CannotRun(
            f"kb repro {unit.name}: not run",
            cause=f"the package {error.name} is not installed",
            remedy="pip install 'kb[repro]'",
            next_command="kb doctor",
        ) from error
    missing = [name for name in FUNCTIONS if not callable(getattr(module, name, None))]
    if missing:
        raise BadConfig(
            f"{unit.path.name}: no reproduction",
            cause=f"it has no function {missing[0]}",
            remedy="see kb/repro/harness/contract.py for what a module must define",
        )
    return cast("Reproduction[Record]", module)
