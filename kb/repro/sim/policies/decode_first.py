"""Sarathi-Serve, arxiv:2403.02310: each step decodes everything that can, then fills up with prefill chunks."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(arrival=1.0), decodes="first")
