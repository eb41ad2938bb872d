"""Shortest job first among those that wait, by prompt and true output length; nobody is interrupted."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(prompt=1.0, output=1.0))
