"""Named checks of Tangram's claims."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Named
from kb.repro.harness.judge import Answer
from kb.repro.harness.timed import durations

RECLAIM = "tangram/reclaim"
NEAR, FAR = 2.0, 4.0
"""Factors within which a share of another host is told to agree, or to be of its order."""


def reclaim(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """The share of prefill that returning pages one by one takes, at what a page costs on this host.

    The reference host and the prompt length are not stated, so a factor of two agrees and of four is partly.
    """
    counted = {
        str(one.case["pattern"]): one.case["inputs"] for one in taken if "page_s" in one.case["inputs"]
    }
    clocked = [one for one in taken if one.case.get("timed") == "one-by-one"]
    if not clocked:
        return None, "no page was returned under a clock", "没有对归还页计时"
    pages = clocked[0].case["inputs"]["pages"]
    cost = float(np.median(durations(clocked, "one-by-one"))) / pages
    shares = {name: _share(inputs, cost) for name, inputs in counted.items()}
    ends = (shares["kept-75"], shares["kept-25"]) if "kept-75" in shares else (shares["kept-25"],) * 2
    off = max(
        abs(math.log((said or math.nan) / ours))
        for said, ours in zip((claim.low, claim.high), ends, strict=True)
    )
    outcome = (
        Outcome.HOLDS
        if off <= math.log(NEAR)
        else Outcome.PARTLY
        if off <= math.log(FAR)
        else Outcome.CONTRADICTED
    )
    shown = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    return (
        outcome,
        f"one page at a time costs {cost * 1e6:.2f} µs on this host, which is {shown} of prefill and reclaim together",
        f"逐页归还在本机每页 {cost * 1e6:.2f} µs，占 prefill 与归还之和的 {shown}",
    )


def _share(inputs: dict[str, float], page_s: float) -> float:
    extra = inputs["layers"] * inputs["heads"] * (1 - inputs["kept"]) * inputs["tokens"] / 16 * page_s
    return extra / (extra + inputs["prefill_s"])


def enough(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the stated number of pilot prompts is enough: the least that is, found by counting, is no greater."""
    least = [sample for one in taken for sample in one.samples]
    stated = claim.low or 0.0
    good = sum(size <= stated for size in least)
    outcome = Outcome.HOLDS if good == len(least) else Outcome.PARTLY if good else Outcome.CONTRADICTED
    return (
        outcome,
        f"{min(least):g} to {max(least):g} pilot prompts overflow at most 2 points more than 200; stated {stated:g}",
        f"{min(least):g}–{max(least):g} 条校准 prompt 的溢出率与 200 条相差不超过 2 个百分点；所述 {stated:g} 条",
    )


CHECKS: dict[str, Named] = {"reclaim": reclaim, "enough": enough}
