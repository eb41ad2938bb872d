"""When requests come: open loops with stated marginals, closed loops, conversations.

Every generator takes a random generator and gives times from 0 s on, not decreasing. In an open loop the times do not
depend on the server; in a closed loop a client sends when its last answer is there, so the server's slowness hides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kb.repro.sim.work import NOBODY, Floats, Ints, Requests


def constant(rate: float, count: int) -> Floats:
    """One request every ``1 / rate`` s."""
    return np.asarray(np.arange(count) / rate)


def poisson(rng: np.random.Generator, rate: float, count: int) -> Floats:
    """Independent exponential pauses of mean ``1 / rate`` s."""
    return np.cumsum(rng.exponential(1 / rate, count))


def gamma(rng: np.random.Generator, rate: float, variation: float, count: int) -> Floats:
    """Independent Gamma pauses of mean ``1 / rate`` s and coefficient of variation ``variation``; 1 is Poisson."""
    shape = 1 / variation**2
    return np.cumsum(rng.gamma(shape, 1 / (rate * shape), count))


def closed_loop(requests: Requests, clients: int, think: Floats | None = None) -> Requests:
    """The same requests dealt to clients in turn; each sends its next when its last has ended.

    Args:
        requests: Their arrival times are dropped: the first of each client comes at 0.
        clients: How many are in flight at most.
        think: Pauses before each, ``[n]`` s; none by default.
    """
    number = np.arange(len(requests))
    after = np.where(number >= clients, number - clients, NOBODY)
    return replace(requests, arrival=np.zeros(len(requests)), after=after, think=think)


def conversations(
    begin: Floats, turns: Ints, question: Ints, answer: Ints, think: Floats, page_tokens: int
) -> Requests:
    """Sessions whose every prompt is the whole conversation so far and one more question.

    Args:
        begin: Arrival of each session's first turn, not decreasing, ``[sessions]`` s.
        turns: Turns of each session, at least 1.
        question: Tokens of each turn's question, session by session, ``[Σ turns]``.
        answer: Tokens of each turn's answer, likewise.
        think: Pause before each turn, likewise; that before a first turn is not used.
        page_tokens: Tokens per page: the names of pages are given, too, and no session shares one with another.
    """
    total = int(turns.sum())
    first = np.concatenate([[0], np.cumsum(turns)[:-1]])
    session = np.repeat(np.arange(len(turns)), turns)
    is_first = np.zeros(total, np.bool_)
    is_first[first] = True
    grown = np.cumsum(question + answer)
    start = (grown - question - answer)[first][session]
    whole = grown - start  # tokens of the conversation after this turn
    longest = whole[np.append(first[1:], total) - 1] // page_tokens
    name = np.concatenate([[0], np.cumsum(longest)[:-1]])[session]
    full = whole // page_tokens
    page_from = np.concatenate([[0], np.cumsum(full)])
    page_ids = np.repeat(name - page_from[:-1], full) + np.arange(page_from[-1])
    arrival = np.zeros(total)
    arrival[first] = begin
    after = np.where(is_first, NOBODY, np.arange(total) - 1)
    return Requests(arrival, whole - answer, answer, after, think, None, page_from, page_ids.astype(np.int32))


def with_shared_prefix(requests: Requests, group: Ints, prefix: Ints, page_tokens: int) -> Requests:
    """The same requests, where those of one group begin with the same tokens.

    Args:
        requests: Without names of pages.
        group: Group of each request, 0, 1, …, ``[n]``.
        prefix: Tokens each request shares with its group, no more than its prompt, ``[n]``.
        page_tokens: Tokens per page.
    """
    full = (requests.prompt + requests.output) // page_tokens
    shared = np.minimum(prefix, requests.prompt) // page_tokens
    room = int(shared.max(initial=0))
    page_from = np.concatenate([[0], np.cumsum(full)])
    slot = np.arange(page_from[-1]) - np.repeat(page_from[:-1], full)
    is_shared = slot < np.repeat(shared, full)
    own = (int(group.max(initial=-1)) + 1) * room + np.cumsum(~is_shared) - 1
    page_ids = np.where(is_shared, np.repeat(group * room, full) + slot, own)
    return replace(requests, page_from=page_from, page_ids=page_ids.astype(np.int32))
