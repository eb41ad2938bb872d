"""Prefill before decoding, as vLLM V0 and Orca did it: a step of new prompts keeps all decodes waiting."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(arrival=1.0), decodes="after")
