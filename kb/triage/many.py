"""Assessing many items on all cores: the same decisions in the same order, however many processes share the work."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context

from kb.config import TriageSettings
from kb.model import Assessment, CodeRule, Topic, WordRule
from kb.triage.reading import Reading
from kb.triage.score import Scorer, make_scorer

CHUNK = 400
"""Items handed to a process at once."""
WORTHWHILE = 4_000
"""Fewer items are done before a second process has started."""
AHEAD = 3
"""Chunks per process that are prepared before the oldest is waited for; bounds what is held in memory."""


@dataclass(frozen=True)
class Recipe:
    """What a process needs to make the same `Scorer`."""

    rules: tuple[WordRule | CodeRule, ...]
    topics: tuple[Topic, ...]
    settings: TriageSettings
    language: str

    def make(self) -> Scorer:
        """The scorer.

        Raises:
            BadConfig: A rule names a unit that does not exist.
        """
        return make_scorer(self.rules, self.topics, self.settings, self.language)


Task = tuple[Reading, tuple[str, ...]]
"""A reading and the topics its source belongs to whatever the words say."""
_mine: list[Scorer] = []
"""Scorer of this process, where it is a worker."""


def assess_many(recipe: Recipe, tasks: Iterable[Task], num: int, *, at: str) -> Iterator[Assessment]:
    """Assess readings, in order.

    Args:
        recipe: Rules, topics and thresholds.
        tasks: Readings with their forced topics; read only as far ahead as needed.
        num: How many there are, to decide whether other processes are worth starting.
        at: Moment of the decisions, UTC.
    """
    # forked, because a spawned process would run the caller's main module again
    workers = min(_num_cores(), num // WORTHWHILE + 1) if "fork" in get_all_start_methods() else 1
    if workers < 2:  # noqa: PLR2004  one process is this one
        scorer = recipe.make()
        for reading, forced in tasks:
            yield scorer.assess(reading, at=at, forced=forced)
        return
    source = iter(tasks)
    waiting: deque[Future[list[Assessment]]] = deque()
    with ProcessPoolExecutor(workers, get_context("fork"), _prepare, (recipe,)) as pool:
        while chunk := list(itertools.islice(source, CHUNK)):
            waiting.append(pool.submit(_assess, chunk, at))
            if len(waiting) >= AHEAD * workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare(recipe: Recipe) -> None:
    _mine[:] = [recipe.make()]


def _assess(chunk: Sequence[Task], at: str) -> list[Assessment]:
    return [_mine[0].assess(reading, at=at, forced=forced) for reading, forced in chunk]
