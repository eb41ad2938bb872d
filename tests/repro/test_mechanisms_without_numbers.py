"""Visions, surveys and requirements: what is checked of them can fail, and says what it cannot show."""

from itertools import pairwise

import numpy as np
import pytest

from kb.errors import WrongResult
from kb.model import Outcome
from kb.repro import llms_graphs, raids, surrealdb
from tests.repro.test_exact_tier import CLAIMS, bench


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("fault", raids.FAULTS)
@pytest.mark.parametrize("at", range(5))
def test_every_planted_fault_is_refused_wherever_it_happens(fault, at):
    source, figure = raids.source_and_figure(rng(3), 1)
    assert raids.passes(figure, source, None, list(raids.PARTS), at)
    assert not raids.passes(figure, source, raids.FAULTS[fault], list(raids.PARTS), at)


def test_the_value_alone_shows_none_of_the_drafts_kinds_of_error():
    source, figure = raids.source_and_figure(rng(3), 1)
    for name in ("value", "unit", "bound", "baseline", "attribution", "not-in-source"):
        assert raids.passes(figure, source, raids.FAULTS[name], [], 0)


@pytest.mark.parametrize(("caught", "alarms", "outcome"), [
    (1.0, 0.0, Outcome.HOLDS), (0.9, 0.0, Outcome.PARTLY), (1.0, 0.1, Outcome.PARTLY), (0.0, 0.0, Outcome.CONTRADICTED),
])  # fmt: skip
def test_what_is_caught_and_what_is_refused_wrongly_decide(caught, alarms, outcome):
    shares = {"all-states": caught, "value-alone": 0.0, "no-fault": alarms}
    cases = [c for c in raids.cases(CLAIMS) if c.claim == "raids/preservation"]
    taken = [bench().record("share", case, [shares[case.pattern]]) for case in cases]
    assert raids.preserved(CLAIMS["raids/preservation"], taken)[0] is outcome


def graph_records(**recalls):
    return [
        bench().record("share", case, [recalls[case.pattern.partition("-")[0]]])
        for case in llms_graphs.cases(CLAIMS)
    ]


@pytest.mark.parametrize(("flat", "repeated", "walk", "outcome"), [
    pytest.param(0.5, 0.6, 1.0, Outcome.HOLDS, id="nothing-else-does-it"),
    pytest.param(0.5, 1.0, 1.0, Outcome.PARTLY, id="asking-twice-does-it-too"),
    pytest.param(0.9, 0.9, 0.8, Outcome.CONTRADICTED, id="a-walk-is-worse"),
])  # fmt: skip
def test_what_a_walk_gains_decides(flat, repeated, walk, outcome):
    taken = graph_records(flat=flat, repeated=repeated, walk=walk)
    assert llms_graphs.hops_check(CLAIMS[llms_graphs.CLAIMS[0]], taken)[0] is outcome


def test_one_link_needs_no_graph_and_paths_are_paths():
    graph, paths = llms_graphs.planted(rng())
    for path in paths[:20]:
        assert [graph.ends[a][1] == graph.ends[b][0] for a, b in pairwise(path)] == [
            True,
            True,
        ]
    assert min(llms_graphs.recall(rng(), 1, 100, 0)) == 1.0


def test_no_way_of_retrieval_exceeds_its_budget():
    graph, _ = llms_graphs.planted(rng())
    for got in (
        llms_graphs.flat(graph, ["claim3", "appears"], 50),
        llms_graphs.repeated(graph, ["claim3"], 50, 2),
        llms_graphs.walk(graph, "claim3", 50),
    ):
        assert sum(len(graph.sentences[number]) for number in got) <= 50


@pytest.mark.parametrize(("stores", "calls"), [(1, 1), (3, 3)])
def test_statements_are_counted(stores, calls):
    assert surrealdb.statements(rng(), stores, 50) == calls


def test_a_join_that_loses_rows_is_refused(monkeypatch):
    monkeypatch.setattr(surrealdb, "ONE", surrealdb.ONE.replace("ORDER", "LIMIT 1 -- ORDER"))
    with pytest.raises(WrongResult, match="other rows"):
        surrealdb.statements(rng(), 1, 50)


@pytest.mark.parametrize(("seconds", "outcome"), [
    ((0.0004, 0.0009), Outcome.HOLDS), ((0.0004, 0.03), Outcome.PARTLY), ((0.002, 0.03), Outcome.CONTRADICTED),
])  # fmt: skip
def test_times_decide_at_each_size(seconds, outcome):
    cases = [case for case in surrealdb.cases(CLAIMS) if case.metric == "duration"]
    taken = []
    for case, value in zip(cases, seconds, strict=True):
        one = bench().record("duration", case, [value] * 5)
        taken.append(one.model_copy(update={"case": {**one.case, "timed": "one-statement"}}))
    assert surrealdb.sub_ms(CLAIMS["surrealdb/sub-ms-context"], taken)[0] is outcome
