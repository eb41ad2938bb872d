"""What the plain loop keeps for a request while it is in the engine."""

from __future__ import annotations

import numpy as np

from kb.repro.sim.memory import Holder
from kb.repro.sim.work import Requests, Run


class Job:
    """A request in the engine."""

    __slots__ = (
        "arrival", "computed", "emitted", "holder", "id", "last", "output", "peak", "planned", "promised", "prompt",
        "running", "started", "swapped",
    )  # fmt: skip

    def __init__(self, number: int, arrival: float, prompt: int, output: int, holder: Holder) -> None:
        self.id = number
        self.arrival = arrival
        self.prompt = prompt
        self.output = output
        self.holder = holder
        self.computed = 0
        """Tokens in the cache, those of planned steps included."""
        self.peak = 0
        """Most tokens it ever had computed."""
        self.emitted = 0
        self.promised = 0
        """Tokens emitted, or to be emitted by planned steps."""
        self.last = 0.0
        """When it last emitted."""
        self.swapped = 0
        """Tokens that wait in host memory."""
        self.running = False
        self.started = False
        self.planned = -1
        """The last step it was planned into."""

    @property
    def known(self) -> int:
        return self.prompt + self.promised


class Part:
    """What one request does in a step."""

    __slots__ = ("drafts", "emits", "job")

    def __init__(self, job: Job, drafts: int, *, emits: bool) -> None:
        self.job = job
        self.drafts = drafts
        self.emits = emits


def empty_run(requests: Requests) -> Run:
    """A run in which nothing has happened yet."""
    n = len(requests)
    return Run(
        arrival=np.full(n, np.nan),
        first=np.full(n, np.nan),
        finish=np.full(n, np.nan),
        output=requests.output,
        hits=np.zeros(n, np.int64),
        reused=np.zeros(n, np.int64),
        computed=np.zeros(n, np.int64),
        lost=np.zeros(n, np.int64),
        preemptions=np.zeros(n, np.int64),
        worst_gap=np.zeros(n),
    )
