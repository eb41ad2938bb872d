"""What a run says about latency: TTFT, TPOT, ITL, E2E, slowdown, goodput.

Definitions: TTFT is first token minus arrival, so it includes queueing; E2E last token minus arrival; TPOT
``(last - first) / (output - 1)``, of requests with two tokens or more; ITL the time between two tokens, pooled over all
tokens; slowdown E2E over the E2E of the same request alone in the engine. Percentiles are order statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kb.repro.sim.gap_bins import quantile
from kb.repro.sim.work import Engine, Floats, Requests, Run, StepCost


@dataclass(frozen=True)
class Objective:
    """What one request is promised, s; infinity where nothing is."""

    ttft: float = float("inf")
    tpot: float = float("inf")
    e2e: float = float("inf")


@dataclass(frozen=True)
class Latency:
    """Per-request latencies of a run without its warm-up, s."""

    ttft: Floats
    e2e: Floats
    tpot: Floats
    """One entry per request with two tokens or more."""

    @classmethod
    def of(cls, run: Run, warm_up: float = 0.1) -> Latency:
        """Of the requests after the first ``warm_up`` share of arrivals."""
        kept = np.sort(np.argsort(run.arrival, kind="stable")[int(len(run.arrival) * warm_up) :])
        first, last, output = run.first[kept], run.finish[kept], run.output[kept]
        several = output > 1
        return cls(
            ttft=first - run.arrival[kept],
            e2e=last - run.arrival[kept],
            tpot=((last - first)[several] / (output[several] - 1)),
        )


def itl(run: Run, share: float) -> float:
    """Quantile of the time between tokens of the whole run, s; at most 1.6 % above it."""
    return quantile(run.gaps, share)


def meets(run: Run, objective: Objective) -> np.ndarray:
    """Which requests got what they were promised, ``[n]`` bool; one token has no TPOT to miss."""
    tpot = (run.finish - run.first) / np.maximum(run.output - 1, 1)
    ok = (run.first - run.arrival <= objective.ttft) & (run.finish - run.arrival <= objective.e2e)
    return np.asarray(ok & ((tpot <= objective.tpot) | (run.output == 1)))


def goodput(run: Run, objective: Objective, warm_up: float = 0.1) -> float:
    """Requests per second that meet the objective, of those that came after the warm-up."""
    kept = np.argsort(run.arrival, kind="stable")[int(len(run.arrival) * warm_up) :]
    span = float(run.finish[kept].max() - run.arrival[kept].min()) if len(kept) else 0.0
    return float(meets(run, objective)[kept].sum()) / span if span > 0 else 0.0


def alone(requests: Requests, engine: Engine, cost: StepCost) -> Floats:
    """E2E of each request alone in an empty engine without speculation, ``[n]`` s.

    The prompt in chunks of the token budget, then one step per token.
    """
    out = np.zeros(len(requests))
    longest = int((requests.prompt + requests.output).max(initial=1))
    decode = cost.dense[1] + cost.per_decode + cost.per_kv_token * np.arange(longest + 1)
    total = np.concatenate([[0.0], np.cumsum(decode)])
    for number, (prompt, output) in enumerate(
        zip(requests.prompt.tolist(), requests.output.tolist(), strict=True)
    ):
        done = 0
        while done < prompt:
            chunk = min(engine.token_budget, prompt - done)
            if done and chunk == 1:
                out[number] += decode[done]
            else:
                pairs = chunk * done + chunk * (chunk + 1) // 2
                out[number] += cost.dense[chunk] + cost.per_pair * pairs + cost.per_prefill_sequence
            done += chunk
        out[number] += total[prompt + output - 1] - total[prompt]
    return out


def slowdown(run: Run, alone_seconds: Floats) -> Floats:
    """E2E over E2E alone, ``[n]``; 1 at best."""
    return np.asarray((run.finish - run.arrival) / alone_seconds)


def is_stable(run: Run) -> bool:
    """Whether the backlog when the last request comes is no larger than half-way through the arrivals, with slack.

    An unstable point measures the length of its run, not the engine.
    """
    arrivals = np.sort(run.arrival)
    middle, end = arrivals[len(arrivals) // 2], arrivals[-1]
    backlog = [int(((run.arrival <= time) & (run.finish > time)).sum()) for time in (middle, end)]
    return bool(backlog[1] <= 1.5 * backlog[0] + 3 * np.sqrt(backlog[0] + 1))
