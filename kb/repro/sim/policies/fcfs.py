"""First come, first served, as vLLM V1 does it: who runs goes on, what is left of the budget goes to who waits."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(arrival=1.0))
