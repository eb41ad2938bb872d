"""Where the cases of a run are worked through: here, one after another, or one task per case on a Ray cluster.

Random inputs come from the case alone (`Bench.rng`), so the order and the place change no count. Whatever goes wrong in
a task comes back as data, because an exception of ours does not survive the way between processes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kb.errors import CannotRun, WrongResult
from kb.model import Measurement, Record
from kb.repro.harness.bench import Bench

WINDOW = 64
"""Tasks in flight on a cluster; more would only fill its memory."""


@dataclass(frozen=True)
class Task:
    """One case of one phase."""

    module: str
    """Import name of the reproduction."""
    phase: Literal["check", "measure"]
    case: Record
    bench: Bench


@dataclass(frozen=True)
class Done:
    """What a task gave."""

    case: Record
    taken: tuple[Measurement, ...] = ()
    cannot: str = ""
    """Why it could not run."""
    wrong: tuple[str, str, str] | None = None
    """What, cause and remedy of a `WrongResult`."""


def perform(task: Task) -> Done:
    """Work through one case."""
    module = importlib.import_module(task.module)
    try:
        if task.phase == "check":
            module.check(task.case, task.bench)
            return Done(task.case)
        return Done(task.case, tuple(module.measure(task.case, task.bench)))
    except WrongResult as error:
        return Done(task.case, wrong=(error.what, error.cause, error.remedy))
    except CannotRun as error:
        return Done(task.case, cannot=error.cause)


def local(tasks: Iterable[Task]) -> Iterator[Done]:
    """One after another in this process."""
    return map(perform, tasks)


def on_ray(tasks: Iterable[Task]) -> Iterator[Done]:
    """One Ray task per case, results in the order of the cases; joins a running cluster or starts one here.

    Raises:
        CannotRun: Ray is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise CannotRun(
            "--executor ray: not run",
            cause="the package ray is not installed",
            remedy="pip install 'kb[cluster]', or leave --executor away",
            next_command="kb doctor",
        ) from error
    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False)
    remote = ray.remote(perform)
    waiting = []
    for task in tasks:
        waiting.append(remote.remote(task))
        if len(waiting) >= WINDOW:
            yield ray.get(waiting.pop(0))
    while waiting:
        yield ray.get(waiting.pop(0))
