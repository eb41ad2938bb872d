"""What a workload and an engine must satisfy before the loop may start."""

from __future__ import annotations

import numpy as np

from kb.errors import BadInput, WrongUse
from kb.repro.sim.work import Cost, Engine, Requests, StepCost


def check_fit(requests: Requests, engine: Engine, cost: Cost) -> None:
    """Verify that every request can end.

    Raises:
        WrongUse: The engine's settings exclude each other.
        BadInput: A request is malformed or larger than the engine's memory.
    """
    if engine.lag and (engine.draft_length or engine.lag > 1):
        raise WrongUse(
            "an engine that plans ahead: cannot run",
            cause=f"lag {engine.lag}, draft length {engine.draft_length}: how many tokens a step yields is not known",
            remedy="lag 0, or lag 1 without speculation",
        )
    if min(engine.pages, engine.page_tokens, engine.token_budget, engine.max_sequences) < 1:
        raise WrongUse(
            "an engine of nothing",
            cause="pages, page size, token budget and sequences must be at least 1",
            remedy="give them",
        )
    if isinstance(cost, StepCost) and len(cost.dense) <= engine.token_budget:
        raise WrongUse(
            f"a step of {engine.token_budget} tokens has no cost",
            cause=f"the table ends at {len(cost.dense) - 1} tokens",
            remedy="make the table as long as the token budget",
        )
    _check_requests(requests, engine)


def _check_requests(requests: Requests, engine: Engine) -> None:
    whole = requests.prompt + requests.output + engine.draft_length
    bad = np.flatnonzero((requests.prompt < 1) | (requests.output < 1))
    huge = np.flatnonzero(-(-whole // engine.page_tokens) > engine.pages)
    for rows, why in (
        (bad, "prompt and output must be at least one token"),
        (huge, "more than the engine's pages"),
    ):
        if len(rows):
            row = int(rows[0])
            raise BadInput(
                f"request {row}: cannot be served",
                cause=f"{requests.prompt[row]} + {requests.output[row]} tokens: {why} ({len(rows)} such requests)",
                remedy="leave such requests out before the run, and say so",
            )
    _check_order(requests)


def _check_order(requests: Requests) -> None:
    after = requests.after
    free = requests.arrival if after is None else requests.arrival[after < 0]
    chained = np.zeros(0, np.int64) if after is None else after[after >= 0]
    if len(free) and not (np.isfinite(free).all() and (np.diff(free) >= 0).all() and free[0] >= 0):
        raise BadInput(
            "arrivals: not in order",
            cause="a time is missing or earlier than the one before",
            remedy="sort them",
        )
    if len(chained) != len(np.unique(chained)) or (
        after is not None and (after >= np.arange(len(after))).any()
    ):
        raise BadInput(
            "sessions: not chains",
            cause="two requests follow the same one, or a request follows a later one",
            remedy="number requests so that each comes after the one it follows",
        )
