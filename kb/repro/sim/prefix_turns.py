"""What a prefix cache can gain a chat: less prefill, the same decode, on one device full of sessions.

    gain = (prefill of all prompts + decode) / (prefill of what misses + decode)

per session, decode shared by as many sessions as the memory left beside the weights holds. Cost model: roofline at
stated efficiencies, not calibrated; a cache that costs no memory of its own, so this is the most it can gain.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb.repro.sim.bounds import prefill_seconds
from kb.repro.sim.shapes import ModelShape


@dataclass(frozen=True)
class Chat:
    """One session's shape."""

    turns: int
    user: int
    """Tokens the user adds per turn."""
    answer: int
    """Tokens the model adds per turn."""

    @property
    def prompts(self) -> list[int]:
        """Tokens of each turn's prompt: all that was said before and the new message."""
        return [turn * (self.user + self.answer) + self.user for turn in range(self.turns)]


@dataclass(frozen=True)
class Device:
    """What the model runs on."""

    room_bytes: float
    """Memory an engine may use."""
    bandwidth: float
    """Effective bytes per second."""
    flops: float
    """Effective FLOP/s of prefill."""


def gain(chat: Chat, model: ModelShape, device: Device, hit_rate: float) -> float:
    """Throughput with a prefix cache over throughput without.

    Args:
        chat: Lengths.
        model: 16-bit weights and cache.
        device: Effective rates.
        hit_rate: Share of prompt tokens the cache finds.
    """
    weights, kv = model.weight_bytes("fp16"), model.kv_token_bytes("fp16")
    context = sum(chat.prompts) / chat.turns + chat.answer / 2  # tokens held while decoding, mean
    batch = max(1.0, (device.room_bytes - weights) / (context * kv))
    step_s = (weights + batch * context * kv) / device.bandwidth
    decode_s = chat.turns * chat.answer * step_s / batch
    tokens = sum(chat.prompts)
    whole, missed = (
        prefill_seconds(model.parameters, n, device.flops) for n in (tokens, tokens * (1 - hit_rate))
    )
    return (whole + decode_s) / (missed + decode_s)
