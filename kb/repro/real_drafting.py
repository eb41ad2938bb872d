"""Drafting for a small real model: how many tokens a pass yields, whether the text stays the verifier's, what a step costs.

Backs     sd-latency/expected-tokens
Question  SmolLM2-135M goes on with 256 tokens of Chinese prose, English prose and code, greedily. Drafts come from looking up
          the last tokens, from the same model rounded to 4 and 3 bits, and from its first 25 of 30 layers. Tokens per pass by
          draft length, beside the formula at the acceptance that was seen. Time of a step by batch × tokens per request.
Scale     135M parameters on a CPU, one request at a time, greedy: `proxy`. Step times are of 4 layers; a GPU was not used.
Samples   One per pass; intervals resample passes of one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kb.errors import WrongResult
from kb.model import Claim, Figure, Measurement, Outcome, Record
from kb.repro import _drafting_figures
from kb.repro.engines import drafting, small_model
from kb.repro.harness.bench import Bench
from kb.repro.harness.contract import Scope
from kb.repro.harness.judge import Answer, with_checks
from kb.repro.harness.stats import mean_interval
from kb.repro.harness.timing import Candidate
from kb.repro.sim.stepper import expected_tokens

if TYPE_CHECKING:
    from torch import Tensor

CLAIMS = ("sd-latency/expected-tokens",)
LEVELS = ("proxy",)
NEEDS = ("torch", "weights")
TEXTS = ("zh", "en", "code")
DRAFTERS: dict[str, tuple[int, int | None]] = {"4-bit": (4, None), "3-bit": (3, None), "25-layers": (0, 25)}
"""Bits the drafter is rounded to (0: not) and the layers it runs; beside them ``lookup``, which needs no model."""
PROMPT, WRITTEN = 256, 128
LENGTHS = (1, 3, 5)
LOOPS = {("code", 3, "lookup"), ("en", 3, "3-bit")}
"""Cases whose real loop is run before anything is measured."""
STEP_LAYERS, STEP_CONTEXT = 4, 256
STEP_BATCHES, STEP_TOKENS = (1, 4, 8), (1, 4, 8)


# Parameters


class Acceptance(Record):
    """One text continued with one drafter and draft length."""

    part: Literal["acceptance"] = "acceptance"
    text: str
    pattern: str
    """Drafter: ``lookup``, or one of `DRAFTERS`."""
    size: int
    """Draft length k."""
    written: int = WRITTEN


class Steps(Record):
    """Times of a step by batch and tokens per request; ``timed`` names both."""

    part: Literal["steps"] = "steps"
    layers: int = STEP_LAYERS
    context: int = STEP_CONTEXT


def cases(scope: Scope) -> Iterator[Record]:
    """Every text, drafter and length, then the step times."""
    del scope
    for text in TEXTS:
        for name in ("lookup", *DRAFTERS):
            for length in LENGTHS:
                yield Acceptance(text=text, pattern=name, size=length)
    yield Steps()


def data() -> list[Path]:
    """Weights and texts."""
    return small_model.data_files()


# What is accepted


@lru_cache(maxsize=1)
def continued(count: int) -> tuple[list[list[int]], list[list[int]]]:
    """A prompt of every text and the verifier's greedy continuation of each."""
    model = small_model.load()
    prompts = [model.encode(small_model.text(text))[:PROMPT] for text in TEXTS]
    return prompts, drafting.greedy(model, prompts, count)


@lru_cache(maxsize=len(DRAFTERS))
def drafting_model(name: str) -> small_model.Model:
    """The drafter's weights."""
    bits, _ = DRAFTERS[name]
    model = small_model.load()
    return model.rounded(bits) if bits else model


@lru_cache(maxsize=len(DRAFTERS))
def agreement(name: str, count: int) -> list[list[bool]]:
    """Where the drafter agrees with the verifier's texts."""
    return drafting.agreement(drafting_model(name), *continued(count), DRAFTERS[name][1])


def passes_of(case: Acceptance, count: int) -> list[tuple[int, int]]:
    """(drafted, accepted) of every pass."""
    number = TEXTS.index(case.text)
    if case.pattern == "lookup":
        prompts, written = continued(count)
        return drafting.lookup_passes(prompts[number], written[number], case.size)
    return drafting.model_passes(agreement(case.pattern, count)[number], case.size)


# The functions the harness calls


def check(case: Record, bench: Bench) -> None:
    """The weights are here; the real loop writes the verifier's own text and accepts what the shortcut says."""
    del bench
    small_model.need("kb repro real-drafting")
    if not isinstance(case, Acceptance) or (case.text, case.size, case.pattern) not in LOOPS:
        return
    model, count = small_model.load(), 16
    prompt = model.encode(small_model.text(case.text))[:48]
    [own] = drafting.greedy(model, [prompt], count)
    # the first token comes from the prompt's own pass
    draft: Callable[[list[int], int], list[int]] = drafting.looked_up
    if case.pattern == "lookup":
        passes = drafting.lookup_passes([*prompt, own[0]], own[1:], case.size)
    else:
        small, layers = drafting_model(case.pattern), DRAFTERS[case.pattern][1]
        draft = drafting.drafter(small, layers)
        [right] = drafting.agreement(small, [prompt], [own], layers)
        passes = drafting.model_passes(right[1:], case.size)
    written, real = drafting.speculate(model, draft, prompt, count, case.size)
    if written != own or real[: len(passes)] != passes:
        raise WrongResult(
            f"{case.pattern}: the speculative text differs from the verifier's own"
            if written != own
            else f"{case.pattern}: passes {real[: len(passes)]} where the shortcut says {passes}",
            cause="verification accepts what the verifier would not write, or the shortcut is wrong",
            remedy="read kb/repro/engines/drafting.py; nothing was stored",
        )


def measure(case: Record, bench: Bench) -> Iterator[Measurement]:
    """Tokens and acceptance of every pass; step times."""
    if isinstance(case, Acceptance):
        passes = passes_of(case, WRITTEN // 4 if bench.quick else WRITTEN)
        rate = drafting.conditional_rate(passes)
        formula = None if case.pattern == "lookup" else expected_tokens(rate, case.size)
        yield bench.record(
            "tokens_per_pass", case, [accepted + 1 for _, accepted in passes], expected=formula
        )
        yield bench.record("acceptance_rate", case, [rate])
    elif isinstance(case, Steps):
        yield from bench.alternate(case, step_candidates())


def step_candidates() -> dict[str, Candidate]:
    """A step of the first layers for every batch and number of tokens per request, behind a cache of random entries."""
    import torch

    model = small_model.load()
    shape = model.shape
    size = (STEP_BATCHES[-1], shape.kv_heads, STEP_CONTEXT, shape.head_dim)

    def prepare(rng: np.random.Generator) -> dict[str, Any]:
        draws = [
            torch.from_numpy(rng.standard_normal(size, np.float32) * 0.3) for _ in range(2 * STEP_LAYERS)
        ]
        ids = torch.from_numpy(rng.integers(1000, 40_000, (STEP_BATCHES[-1], STEP_TOKENS[-1])))
        return {"keys": draws[::2], "values": draws[1::2], "ids": ids}

    def step(inputs: dict[str, Any], batch: int, tokens: int) -> Tensor:
        cache = small_model.Cache([k[:batch] for k in inputs["keys"]], [v[:batch] for v in inputs["values"]])
        return model.forward(inputs["ids"][:batch, :tokens], cache, layers=STEP_LAYERS)

    def candidate(batch: int, tokens: int) -> Candidate:
        def verify(inputs: dict[str, Any], output: Tensor) -> None:
            alone = step(inputs, 1, tokens)
            if not (output[0] - alone[0]).abs().max() < 1e-2:  # noqa: PLR2004  logits are around 10
                raise WrongResult(
                    "a request in a batch differs from the same alone", cause="a wrong mask", remedy="-"
                )

        return Candidate(prepare, lambda inputs: step(inputs, batch, tokens), verify, 0.0)

    return {f"{b}x{t}": candidate(b, t) for t in STEP_TOKENS for b in STEP_BATCHES}


def by_formula(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """Whether the interval of tokens per pass contains the formula at the acceptance that was seen, drafter by drafter."""
    del claim
    # one draft per pass yields 1 + acceptance whatever the drafter: no test of the formula
    longer = [one for one in taken if one.expected is not None and one.case["size"] > 1]
    pairs = [(mean_interval(one.samples), one.expected or 0.0) for one in longer]
    met = [low <= wanted <= high for (low, _, high), wanted in pairs]
    gaps = [mean / wanted - 1 for (_, mean, _), wanted in pairs]
    worst = max(gaps, key=abs, default=0.0)
    if not pairs:
        return None, "no drafter with a fixed draft length was run", "没有草稿长度固定的草稿模型被运行"
    outcome = (
        Outcome.HOLDS if all(met) else Outcome.PARTLY if 2 * sum(met) >= len(met) else Outcome.CONTRADICTED
    )
    return (
        outcome,
        (
            f"with real drafts acceptance is not independent from token to token, yet in {sum(met)} of {len(met)} cases the "
            f"interval of tokens per pass contains the formula; largest difference {worst:+.1%}"
        ),
        f"真实草稿的接受并非逐 token 独立，但 {len(met)} 种情形中有 {sum(met)} 种的区间包含公式值；最大相差 {worst:+.1%}",
    )


judge = with_checks(tokens=by_formula)


def figure(taken: Sequence[Measurement]) -> Sequence[Figure]:
    """Tokens per pass by draft length; step time by tokens in the step."""
    return _drafting_figures.draw(taken)
