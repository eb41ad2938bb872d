"""RunPod's and a 2024 post's rates: do they lie under the roofline?

Backs     runpod/cold-vs-warm · medium-occlubssk/sequential-70b
Question  The printed times give 1.15–1.16. 70B at 8 bits cannot decode faster than one reading of its weights per token.
Shows not Behaviour under concurrency, which the drafts quote: that needs the simulator or an engine.
"""

from __future__ import annotations

from kb.repro.harness.exact import Quantity, bounded, by_claim, exact, no_figure
from kb.repro.sim.bounds import token_rate
from kb.repro.sim.shapes import find_hardware, find_model

CLAIMS = ("runpod/cold-vs-warm", "medium-occlubssk/sequential-70b")
LEVELS = ("derived",)
NEEDS = ()


def ratio(cold: float, warm: float) -> float:
    """Cold seconds over warm."""
    return cold / warm


def weight_rate(weights: float, bandwidth: float) -> float:
    """Tokens per second of one request that reads the weights once per token."""
    return token_rate(weights, bandwidth)


QUANTITIES = (
    Quantity("runpod/cold-vs-warm", ratio, {"cold": 5.253, "warm": 4.572}, pattern="first"),
    Quantity("runpod/cold-vs-warm", ratio, {"cold": 5.253, "warm": 4.510}, pattern="second"),
    Quantity(
        "medium-occlubssk/sequential-70b",
        weight_rate,
        {
            "weights": find_model("llama-3-70b").weight_bytes("fp8"),
            "bandwidth": find_hardware("h100").bandwidth,
        },
    ),
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim(
    {"weight-streaming": bounded(0.0, "one reading of the weights per token", "每 token 读一遍权重的上界")}
)
figure = no_figure
