"""Programs of prompts that share prefixes: the shapes of the SGLang paper's benchmarks, lengths as parameters.

Source: arXiv:2312.07104 §6.1 names the benchmarks and most shot counts; lengths are ours, near those of the public
data sets, and every hit rate below follows from them in closed form where one is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kb.repro.sim.radix import to_key

Tokens = list[int]
VOCABULARY = 32_000


@dataclass(frozen=True)
class Request:
    """One call of the model."""

    prompt: bytes
    """Key of the prompt, see `kb.repro.sim.radix.to_key`."""
    output: bytes
    """Key of what it will write."""
    after: int = -1
    """Position of the request that must have ended before; -1 for none."""


class Text:
    """Fresh random tokens; two draws never start alike except by chance."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __call__(self, length: int) -> Tokens:
        """Draw ``length`` token ids."""
        drawn: Tokens = self._rng.integers(VOCABULARY, size=length).tolist()
        return drawn


def _request(prompt: Sequence[int], output: Sequence[int], after: int = -1) -> Request:
    return Request(to_key(prompt), to_key(output), after)


def few_shot(
    text: Text, *, groups: int, per_group: int, shots: int, question: int, output: int
) -> list[Request]:
    """Questions of several subjects, each subject with its own examples before every question (MMLU, JSON)."""
    out = []
    for _ in range(groups):
        examples = text(shots)
        out += [_request(examples + text(question), text(output)) for _ in range(per_group)]
    return out


def choices(
    text: Text, *, questions: int, per_question: int, shots: int, question: int, choice: int
) -> list[Request]:
    """One set of examples for all, then each question once per possible ending (HellaSwag)."""
    examples, out = text(shots), []
    for _ in range(questions):
        asked = examples + text(question)
        out += [_request(asked + text(choice), text(1)) for _ in range(per_question)]
    return out


def tree_of_thought(
    text: Text, *, problems: int, shots: int, question: int, thought: int, width: int, depth: int
) -> list[Request]:
    """Every state is continued ``width`` times, ``depth`` levels deep; a thought becomes part of the next prompts."""
    examples, out = text(shots), []
    for _ in range(problems):
        states = [(examples + text(question), -1)]
        for _ in range(depth):
            following = []
            for prompt, parent in states:
                for _ in range(width):
                    written = text(thought)
                    out.append(_request(prompt, written, parent))
                    following.append((prompt + written, len(out) - 1))
            states = following
    return out


def chat(text: Text, *, sessions: int, turns: int, system: int, user: int, answer: int) -> list[Request]:
    """Sessions of several turns; each prompt is all that was said before and the user's next message."""
    shared, out = text(system), []
    for _ in range(sessions):
        said, last = list(shared), -1
        for _ in range(turns):
            said += text(user)
            written = text(answer)
            out.append(_request(said, written, last))
            said += written
            last = len(out) - 1
    return out


def agent(
    text: Text, *, tasks: int, shots: int, question: int, steps: int, action: int, observation: int
) -> list[Request]:
    """One long instruction for all; each step appends an action of the model and an observation (ReAct)."""
    examples, out = text(shots), []
    for _ in range(tasks):
        said, last = examples + text(question), -1
        for _ in range(steps):
            written = text(action)
            out.append(_request(said, written, last))
            said = said + written + text(observation)
            last = len(out) - 1
    return out


def branches(
    text: Text, *, articles: int, system: int, article: int, arms: int, instruction: int, output: int
) -> list[Request]:
    """Several instructions about one text, asked at once (skeleton of thought, LLM judge)."""
    shared, out = text(system), []
    for _ in range(articles):
        before = shared + text(article)
        out += [_request(before + text(instruction), text(output)) for _ in range(arms)]
    return out


def retrieval(
    text: Text,
    rng: np.random.Generator,
    *,
    requests: int,
    documents: int,
    system: int,
    document: int,
    question: int,
    output: int,
) -> list[Request]:
    """Each question comes with one document; some documents are asked about far more often than others (RAG)."""
    shared, library = text(system), [text(document) for _ in range(documents)]
    weights = 1 / np.arange(1, documents + 1)
    picked = rng.choice(documents, size=requests, p=weights / weights.sum())
    return [_request(shared + library[i] + text(question), text(output)) for i in picked.tolist()]


def _retrieval(text: Text, rng: np.random.Generator) -> list[Request]:
    return retrieval(text, rng, requests=160, documents=30, system=100, document=500, question=60, output=50)


WORKLOADS: dict[str, Callable[[Text, np.random.Generator], list[Request]]] = {
    "mmlu": lambda text, _: few_shot(text, groups=16, per_group=12, shots=600, question=120, output=1),
    "hellaswag": lambda text, _: choices(
        text, questions=40, per_question=4, shots=1400, question=60, choice=20
    ),
    "react": lambda text, _: agent(
        text, tasks=16, shots=1200, question=60, steps=5, action=40, observation=100
    ),
    "tree-of-thought": lambda text, _: tree_of_thought(
        text, problems=6, shots=200, question=100, thought=80, width=3, depth=3
    ),
    "skeleton-of-thought": lambda text, _: branches(
        text, articles=24, system=150, article=120, arms=6, instruction=30, output=100
    ),
    "judge": lambda text, _: branches(
        text, articles=24, system=100, article=700, arms=5, instruction=60, output=60
    ),
    "json": lambda text, _: few_shot(text, groups=2, per_group=60, shots=350, question=150, output=80),
    "chat-short": lambda text, _: chat(text, sessions=40, turns=4, system=0, user=384, answer=6),
    "rag": _retrieval,
}
"""Workload → requests in the order in which the program would issue them."""

EXPECTED = {
    "mmlu": 11 / 12 * 600 / 720,
    "hellaswag": 1 - (1400 + 40 * (60 + 4 * 20)) / (40 * 4 * 1480),
    "react": 1 - (1200 + 16 * 60 + 16 * 4 * 100) / (16 * (5 * 1260 + 10 * 140)),
    # a prompt that is cached whole still computes its last token: 2 siblings and 9 + 27 children per problem
    "tree-of-thought": 1 - (200 + 6 * (100 + 2 + 9 + 27)) / (6 * (3 * 300 + 9 * 380 + 27 * 460)),
    "skeleton-of-thought": 1 - (150 + 24 * (120 + 6 * 30)) / (24 * 6 * 300),
    "judge": 1 - (100 + 24 * (700 + 5 * 60)) / (24 * 5 * 860),
    "json": 59 / 60 * 350 / 500,
    "chat-short": 6 * 390 / (6 * 390 + 4 * 384),
}
"""Closed form of the hit rate with room for everything, one request at a time, pages of one token."""
