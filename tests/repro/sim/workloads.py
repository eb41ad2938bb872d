"""Random workloads and engines for the tests of the simulator."""

import numpy as np
from hypothesis import strategies as st

from kb.repro.sim import arrivals, policies
from kb.repro.sim.work import Engine, Requests, StepCost

COST = StepCost(
    dense=np.linspace(0.005, 0.05, 301),
    per_pair=1e-8,
    per_kv_token=1e-7,
    per_decode=1e-5,
    per_prefill_sequence=1e-4,
    per_drafted=1e-5,
    per_swapped_token=1e-6,
)
MOST = 160
"""Tokens of the longest request."""


@st.composite
def requests(draw, page_tokens: int) -> Requests:
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    count = draw(st.integers(1, 40))
    prompt = rng.integers(1, 100, count)
    output = rng.integers(1, 60, count)
    rate = draw(st.sampled_from([2.0, 20.0, 1e6]))
    out = Requests(arrivals.poisson(rng, rate, count), prompt, output)
    if draw(st.booleans()):
        out = arrivals.closed_loop(out, draw(st.integers(1, 9)), rng.exponential(0.2, count))
    return arrivals.with_shared_prefix(
        out, rng.integers(0, 3, count), rng.integers(0, 80, count), page_tokens
    )


@st.composite
def engines(draw, **fixed) -> Engine:
    page_tokens = draw(st.sampled_from([1, 7, 16]))
    drafts = draw(st.sampled_from([0, 0, 3]))
    least = -(-(MOST + drafts) // page_tokens)
    settings = {
        "pages": least + draw(st.integers(0, 4 * least)),
        "page_tokens": page_tokens,
        "token_budget": draw(st.integers(1, 300)),
        "max_sequences": draw(st.integers(1, 30)),
        "policy": draw(st.sampled_from(policies.names())),
        "prefix_cache": draw(st.sampled_from(["none", "hash"])),
        "preemption": draw(st.sampled_from(["recompute", "swap"])),
        "admission": draw(st.sampled_from(["known", "whole"])),
        "draft_length": drafts,
        "acceptance_rate": draw(st.sampled_from([0.0, 0.7, 1.0])),
        "seed": draw(st.integers(0, 2**40)),
    }
    settings |= fixed
    if settings["policy"] == "las":
        settings["preemption"] = "swap"  # recomputing what it interrupts, it can go on for ever
    return Engine(**settings)


@st.composite
def cases(draw, **fixed) -> tuple[Requests, Engine]:
    engine = draw(engines(**fixed))
    return draw(requests(engine.page_tokens)), engine
