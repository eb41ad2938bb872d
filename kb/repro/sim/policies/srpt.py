"""Shortest remaining work first, with interruption; knows output lengths, so it is a bound and no engine."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(uncomputed=1.0, unemitted=1.0), preemptive=True)
