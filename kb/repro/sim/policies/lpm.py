"""Longest prefix match first among those that wait: SGLang, arxiv:2312.07104."""

from __future__ import annotations

from kb.repro.sim.policies import Order, Policy

POLICY = Policy(Order(found=-1.0))
