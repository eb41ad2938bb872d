"""Drafting and verifying greedily with a real model: what is accepted, and that the output is the verifier's own.

A drafter that is right about position n given the verifier's own text is right about it in every pass that gets so far, so
one pass of the drafter over that text says which drafts of any length are accepted. `speculate` runs the real loop, which
the test of this shortcut and of the exactness of the output needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kb.repro.engines.small_model import Cache, Model

if TYPE_CHECKING:
    from torch import Tensor

LONGEST_MATCH = 3
"""Last tokens that n-gram drafting looks up first; then fewer."""


def greedy(model: Model, prompts: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Decode ``count`` tokens behind each of some prompts of one length, the most likely each time."""
    import torch

    cache = Cache()
    steps = [model.forward(torch.tensor([list(prompt) for prompt in prompts]), cache)[:, -1].argmax(-1)]
    while len(steps) < count:
        steps.append(model.forward(steps[-1][:, None], cache)[:, -1].argmax(-1))
    out: list[list[int]] = torch.stack(steps, 1).tolist()
    return out


def _ids(tokens: Sequence[int]) -> Tensor:
    import torch

    return torch.tensor([list(tokens)])


def _best(logits: Tensor) -> int:
    return int(logits[0, -1].argmax())


def looked_up(text: Sequence[int], count: int) -> list[int]:
    """n-gram drafts: what followed the last occurrence of the most recent tokens; fewer or none if there is none."""
    for length in range(min(LONGEST_MATCH, len(text) - 1), 0, -1):
        tail = list(text[-length:])
        for at in range(len(text) - length - 1, -1, -1):
            if list(text[at : at + length]) == tail:
                return list(text[at + length : at + length + count])
    return []


def agreement(
    drafter: Model, prompts: Sequence[Sequence[int]], written: Sequence[Sequence[int]], layers: int | None
) -> list[list[bool]]:
    """Whether the drafter, given the verifier's own text so far, would have written each token, text by text.

    Args:
        drafter: Possibly rounded.
        prompts: Tokens before, all of one length.
        written: What the verifier wrote behind each, all of one length.
        layers: Layers it runs; None for all.
    """
    import torch

    texts = [[*prompt, *own][:-1] for prompt, own in zip(prompts, written, strict=True)]
    guesses = drafter.forward(torch.tensor(texts), last=len(written[0]), layers=layers).argmax(-1).tolist()
    return [
        [guess == token for guess, token in zip(row, own, strict=True)]
        for row, own in zip(guesses, written, strict=True)
    ]


def lookup_passes(prompt: Sequence[int], written: Sequence[int], length: int) -> list[tuple[int, int]]:
    """(drafted, accepted) of every pass of n-gram drafting."""

    def drafted(at: int) -> tuple[int, int]:
        guess = looked_up([*prompt, *written[:at]], length)
        right = [a == b for a, b in zip(guess, written[at:], strict=False)]
        return len(guess), right.index(False) if False in right else len(right)

    return _passes(len(written), drafted)


def model_passes(right: Sequence[bool], length: int) -> list[tuple[int, int]]:
    """(drafted, accepted) of every pass of a model whose drafts are right where ``right`` says so."""

    def drafted(at: int) -> tuple[int, int]:
        window = list(right[at : at + length])
        return length, window.index(False) if False in window else len(window)

    return _passes(len(right), drafted)


def _passes(tokens: int, drafted: Callable[[int], tuple[int, int]]) -> list[tuple[int, int]]:
    """Whole passes only: one whose drafts reach past the text is left out."""
    out: list[tuple[int, int]] = []
    at = 0
    while True:
        count, accepted = drafted(at)
        if at + max(count, accepted + 1) > tokens:
            return out
        out.append((count, accepted))
        at += accepted + 1


def conditional_rate(passes: Sequence[tuple[int, int]]) -> float:
    """Share of drafted tokens accepted among those that were looked at: all up to the first that is wrong."""
    looked_at = sum(min(count, accepted + 1) for count, accepted in passes)
    return sum(accepted for _, accepted in passes) / looked_at if looked_at else 0.0


def drafter(model: Model, layers: int | None) -> Callable[[list[int], int], list[int]]:
    """Draft with a model, greedily; what it has read of the text so far is kept between calls."""
    read: list[int] = []
    cache = Cache()

    def draft(text: list[int], count: int) -> list[int]:
        nonlocal cache
        same = next((n for n, pair in enumerate(zip(read, text, strict=False)) if pair[0] != pair[1]), None)
        cache = cache.cut(min(len(read) if same is None else same, len(text) - 1))
        read[:] = text
        out = [_best(model.forward(_ids(text[cache.tokens :]), cache, layers=layers))]
        while len(out) < count:
            read.append(out[-1])
            out.append(_best(model.forward(_ids(out[-1:]), cache, layers=layers)))
        return out

    return draft


def speculate(
    verifier: Model,
    draft: Callable[[list[int], int], list[int]],
    prompt: Sequence[int],
    count: int,
    length: int,
) -> tuple[list[int], list[tuple[int, int]]]:
    """The real loop: draft, verify all drafts in one pass, keep what agrees and the verifier's next token.

    Args:
        verifier: Whose greedy text comes out.
        draft: Takes the text so far and a number of tokens; may return fewer.
        prompt: Tokens before.
        count: Tokens to write.
        length: Draft length.

    Returns:
        The tokens, and (drafted, accepted) of every pass.
    """
    cache, text, passes = Cache(), list(prompt), []
    text.append(_best(verifier.forward(_ids(text), cache)))
    while len(text) - len(prompt) < count:
        guess = draft(text, length)
        logits = verifier.forward(_ids([text[-1], *guess]), cache, last=len(guess) + 1)
        own = logits[0].argmax(-1).tolist()
        accepted = next((n for n, token in enumerate(guess) if token != own[n]), len(guess))
        passes.append((len(guess), accepted))
        text += own[: accepted + 1]
        cache = cache.cut(len(text) - 1)
    return text[len(prompt) : len(prompt) + count], passes
