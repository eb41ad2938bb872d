"""Bounds that decide most claims: bytes a step must read, FLOPs it must do. Peaks are given by the caller.

A decode step of batch b reads the weights once and every request's KV cache once:
``t ≥ (W + b·n·κ) / BW``; W weight bytes, κ KV bytes per token, n tokens held per request, BW bytes per second.
Source: the roofline of the kv dossier's step-time model.
"""

from __future__ import annotations


def step_gain(weights: float, kv_full: float, kv_small: float, batch: float = 1) -> float:
    """Largest speed-up of a decode step when a request's KV shrinks, the batch staying the same.

    Args:
        weights: Bytes of weights read per step.
        kv_full: Bytes of one request's KV before.
        kv_small: Bytes after.
        batch: Requests in the step.
    """
    return (weights + batch * kv_full) / (weights + batch * kv_small)


def token_rate(weights: float, bandwidth: float, batch: float = 1) -> float:
    """Most tokens per second a batch can decode if each step only streamed the weights."""
    return batch * bandwidth / weights


def prefill_seconds(
    parameters: float, tokens: float, flops: float, layers: float = 0, width: float = 0
) -> float:
    """Seconds of prefill at an effective rate, attention included where ``layers`` and ``width`` are given.

    Args:
        parameters: Active parameters.
        tokens: Prompt tokens.
        flops: Effective FLOP/s.
        layers: Layers, for the attention term 2·L·D·n².
        width: Query heads × head dim.
    """
    return (2 * parameters * tokens + 2 * layers * width * tokens**2) / flops
