"""LLMs and graphs, arxiv:2606.11560: a tutorial without numbers; does a question of several hops need a graph?

Backs     llms-graphs/graph-retrieval-helps-multihop
Question  A planted graph of claims, systems, papers, venues and hardware is also written as sentences. Questions name one
          end of a path of one, two or three links. Three ways to fetch the sentences of the path within one budget of
          tokens: word overlap once, word overlap repeated with the names it found, a walk along the links.
Shows not Answers of a language model, or real text: names are unique and the graph is complete, which favours the walk.
          The count of synergies and the venue are statements about the tutorial itself.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kb.model import Claim, Measurement, Outcome
from kb.repro.harness.exact import Quantity, by_claim, exact, no_figure
from kb.repro.harness.judge import Answer

CLAIMS = ("llms-graphs/graph-retrieval-helps-multihop",)
LEVELS = ("derived",)
NEEDS = ()
SIZES = {"claim": 400, "system": 80, "paper": 60, "venue": 10}
LINKS = (
    ("claim", "concerns", "system"),
    ("system", "appears in", "paper"),
    ("paper", "was given at", "venue"),
)
DISTRACTORS = 600
"""Links between systems and hardware, which no question asks for."""


@dataclass(frozen=True)
class Graph:
    """Links, the same as sentences, and where each name occurs."""

    sentences: tuple[tuple[str, ...], ...]
    ends: tuple[tuple[str, str], ...]
    at: dict[str, list[int]]
    """Name → sentences it occurs in."""
    holding: dict[str, list[int]]
    """Word → sentences that hold it, names included."""
    rarity: dict[str, float]
    """Word → log of sentences over sentences that hold it."""


def planted(rng: np.random.Generator) -> tuple[Graph, list[list[int]]]:
    """A graph, and for each claim the sentences of its path to a venue."""
    made: list[tuple[str, str, str]] = []
    next_of: dict[str, int] = {}
    for source, verb, target in LINKS:
        for number in range(SIZES[source]):
            name = f"{source}{number}"
            next_of[name] = len(made)
            made.append((name, verb, f"{target}{rng.integers(SIZES[target])}"))
    made += [
        (f"system{rng.integers(SIZES['system'])}", "ran on", f"hardware{rng.integers(12)}")
        for _ in range(DISTRACTORS)
    ]
    sentences = tuple((first, *verb.split(), last) for first, verb, last in made)
    at: dict[str, list[int]] = {}
    for number, (first, _, last) in enumerate(made):
        at.setdefault(first, []).append(number)
        at.setdefault(last, []).append(number)
    holding: dict[str, list[int]] = {}
    for number, sentence in enumerate(sentences):
        for word in sentence:
            holding.setdefault(word, []).append(number)
    rarity = {word: math.log(len(sentences) / len(held)) for word, held in holding.items()}
    paths = []
    for number in range(SIZES["claim"]):
        path, name = [], f"claim{number}"
        while name in next_of:
            path.append(next_of[name])
            name = made[path[-1]][2]
        paths.append(path)
    return Graph(sentences, tuple((first, last) for first, _, last in made), at, holding, rarity), paths


def _within(graph: Graph, ranked: Sequence[int], budget: int) -> list[int]:
    chosen, used = [], 0
    for number in ranked:
        used += len(graph.sentences[number])
        if used > budget:
            break
        chosen.append(number)
    return chosen


def flat(graph: Graph, words: Sequence[str], budget: int) -> list[int]:
    """Sentences by shared names, then by other shared words, weighted by rarity, until the budget of words is used."""
    scores: dict[int, list[float]] = {}
    for word in dict.fromkeys(words):
        is_name = word in graph.at
        for number in graph.holding.get(word, ()):
            scores.setdefault(number, [0.0, 0.0])[0 if is_name else 1] -= graph.rarity[word]
    return _within(graph, sorted(scores, key=lambda number: (*scores[number], number)), budget)


def repeated(graph: Graph, words: Sequence[str], budget: int, rounds: int) -> list[int]:
    """Flat search several times; names of the best sentences of each round join the question of the next."""
    asked, found = list(words), dict[int, None]()
    for _ in range(rounds):
        best = flat(graph, asked, budget // rounds)
        found |= dict.fromkeys(best)
        asked += [end for number in best[:2] for end in graph.ends[number]]
    return _within(graph, list(found), budget)


def walk(graph: Graph, start: str, budget: int) -> list[int]:
    """Sentences along the links from a name, nearest first, until the budget of words is used."""
    order: dict[int, None] = {}
    seen, waiting = {start}, deque([start])
    while waiting:
        for number in graph.at[waiting.popleft()]:
            order.setdefault(number)
            for end in graph.ends[number]:
                if end not in seen:
                    seen.add(end)
                    waiting.append(end)
    return _within(graph, list(order), budget)


def recall(rng: np.random.Generator, hops: float, budget: float, way: float) -> list[float]:
    """Share of a path's sentences that are fetched, one per planted graph.

    Args:
        rng: Source of draws.
        hops: Links of the path.
        budget: Words that may be fetched.
        way: 0 flat, 1 flat repeated once per hop, 2 walk.
    """
    found = []
    for _ in range(8):
        graph, paths = planted(rng)
        asked = rng.choice(len(paths), 20, replace=False)
        shares = []
        for number in asked:
            wanted = paths[number][: int(hops)]
            words = [f"claim{number}", *(word for _, verb, _ in LINKS[: int(hops)] for word in verb.split())]
            got = (
                walk(graph, f"claim{number}", int(budget))
                if way == 2  # noqa: PLR2004  its number
                else repeated(graph, words, int(budget), int(hops))
                if way
                else flat(graph, words, int(budget))
            )
            shares.append(len(set(wanted) & set(got)) / len(wanted))
        found.append(float(np.mean(shares)))
    return found


WAYS = {0: "flat", 1: "repeated", 2: "walk"}
HALF = 0.5
GAIN = 0.15
"""Points of recall that count as help."""


def hops_check(claim: Claim, taken: Sequence[Measurement]) -> Answer:
    """A walk must beat flat search by 15 points at two links to help.

    It is needed only if flat search, repeated with the names it found, makes up less than half of the difference.
    """
    del claim
    at: dict[tuple[str, int], float] = {}
    for one in taken:
        way, _, hops = str(one.case["pattern"]).partition("-")
        at[way, int(hops)] = float(np.mean(one.samples))
    helps = at["walk", 2] - at["flat", 2]
    made_up = (at["repeated", 2] - at["flat", 2]) / helps if helps > 0 else 1.0
    shown = "; ".join(
        f"{hops}: " + ", ".join(f"{way} {at[way, hops]:.0%}" for way in WAYS.values()) for hops in (1, 2, 3)
    )
    outcome = (
        Outcome.CONTRADICTED
        if helps <= 0
        else Outcome.HOLDS
        if helps >= GAIN and made_up < HALF
        else Outcome.PARTLY
    )
    text = (
        f"recall by links in the question: {shown}; at two links a walk gains {100 * helps:.0f} points, of which flat "
        f"search repeated with the names it found makes up {made_up:.0%}"
    )
    text_zh = (
        f"按跳数的召回率：{shown}；两跳时图游走比平面检索高 {100 * helps:.0f} 个百分点，"
        f"其中 {made_up:.0%} 可由带着所得名称重复的平面检索补上"
    )
    return outcome, text, text_zh


QUANTITIES = tuple(
    Quantity(
        "llms-graphs/graph-retrieval-helps-multihop",
        recall,
        {"budget": 100, "hops": hops, "way": way},
        pattern=f"{name}-{hops}",
        insensitive="the claim states no number: three ways of retrieval are compared",
    )
    for hops in (1, 2, 3)
    for way, name in WAYS.items()
)

cases, check, measure = exact(QUANTITIES)
judge = by_claim({"hops": hops_check})
figure = no_figure
