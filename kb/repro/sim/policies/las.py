"""Least attained service first, with interruption; knows no lengths."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(attained=1.0), preemptive=True)
