"""What must hold in every run: each token, page and request accounted for, and Little's law.

A run that breaks one judges nothing: `require` raises.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kb.errors import WrongResult
from kb.repro.sim.work import Engine, Requests, Run

ROUNDING = 1e-9
"""Two sums of the same seconds in different order."""


def broken(run: Run, requests: Requests, engine: Engine) -> Iterator[str]:
    """Yield a sentence for each law the run breaks."""
    yield from _times(run)
    held = run.computed + run.reused - run.lost
    wrong = int((held != requests.prompt + requests.output - 1).sum())
    if wrong:
        yield f"{wrong} requests: tokens computed + reused − given up are not prompt + output − 1"
    if run.tokens != int(run.computed.sum()):
        yield f"tokens by step {run.tokens}, by request {int(run.computed.sum())}"
    gaps, emitted = int(run.gaps.sum()), int((requests.output - 1).sum())
    if gaps != emitted:
        yield f"{emitted} tokens follow another, {gaps} times between tokens were counted"
    if run.pages_left != engine.pages:
        yield f"{run.pages_left} of {engine.pages} pages are back at the end"
    if run.peak_pages > engine.pages:
        yield f"{run.peak_pages} pages held at once, the engine has {engine.pages}"


def _times(run: Run) -> Iterator[str]:
    lost = int((~np.isfinite(run.finish) | ~np.isfinite(run.first) | ~np.isfinite(run.arrival)).sum())
    if lost:
        yield f"{lost} requests never ended"
        return
    if (run.first < run.arrival).any() or (run.finish < run.first).any():
        yield "a token came before its request, or the last before the first"
    spent = float((run.finish - run.arrival).sum())
    if abs(run.area - spent) > ROUNDING * max(spent, 1.0):
        yield f"Little's law: requests present × time {run.area!r} s, time spent {spent!r} s"
    if run.busy > run.end * (1 + ROUNDING):
        yield f"busy for {run.busy} of {run.end} s"


def require(run: Run, requests: Requests, engine: Engine) -> Run:
    """The run, if it breaks no law.

    Raises:
        WrongResult: It does.
    """
    found = list(broken(run, requests, engine))
    if found:
        raise WrongResult(
            "the simulator lost count: the run judges nothing",
            cause="; ".join(found),
            remedy="report it with the engine's settings",
            next_command="kb repro sim-gates",
        )
    return run
