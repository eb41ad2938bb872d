"""RadixAttention: what hits follows from the prompts alone; what still hits in a small pool follows from the order."""

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kb.model import Claim, ClaimRule, Level, Measurement, Outcome, Text
from kb.repro import _radix_tables as tables
from kb.repro import radixattention as unit
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import Reproduction, Scope
from kb.repro.sim import prefix_workloads as programs
from kb.repro.sim.prefix_replay import edge_tokens, longest_tokens, replay
from kb.store import Base

UNIT: Reproduction = unit
BASE = Base(Path(__file__).parents[2] / "shared/research-kb")
NOW = dt.datetime(2026, 7, 1, tzinfo=dt.UTC).isoformat()


def bench(seed=0, *, quick=True):
    words = dict.fromkeys(("rule", "code", "inputs", "env"), "-")
    declared = Declared(repro="radixattention", seed=seed, level=Level.SIMULATED, at=NOW, **words)
    return Bench(declared, quick=quick)


def draw(name, seed=0):
    rng = np.random.default_rng(seed)
    return programs.WORKLOADS[name](programs.Text(rng), rng)


def claim(name, **values):
    return Claim(
        id=f"sglang/{name}",
        item="arxiv:2312.07104",
        statement=Text(zh="-", en="-"),
        unit="fraction",
        provenance="primary",
        **values,
    )


def counted(parts, seed=0):
    """Everything the cases of these parts measure."""
    one = bench(seed)
    return [m for case in unit.cases(Scope(SPHERON)) if case.part in parts for m in unit.measure(case, one)]


@pytest.mark.parametrize("name", programs.EXPECTED)
def test_hit_rate_of_each_program_is_its_closed_form(name):
    assert unit.ample(draw(name)) == pytest.approx(programs.EXPECTED[name], abs=0.005)


@pytest.mark.parametrize("name", programs.WORKLOADS)
def test_hit_rate_with_room_for_everything_is_one_minus_distinct_over_all_tokens(name):
    """Counted by sorting the prompts, with the last token of each never found."""
    requests = draw(name)
    prompts = [programs.Request(one.prompt, b"") for one in requests]
    total = sum(len(one.prompt) for one in requests) // 4
    # outputs are kept too, so what a later prompt repeats of them also hits
    distinct = edge_tokens(requests) - sum(len(one.output) for one in requests) // 4
    bound = 1 - min(distinct, edge_tokens(prompts)) / total
    assert bound - len(requests) / total <= unit.ample(requests) <= bound + 1e-9


@pytest.mark.parametrize(
    ("turns", "answer", "expected"),
    [pytest.param(4, 384, 0.75, id="long-answers"), pytest.param(4, 6, 0.60, id="short-answers")],
)
def test_multi_turn_hits_are_the_published_sums(turns, answer, expected):
    rng = np.random.default_rng(0)
    sessions = programs.chat(programs.Text(rng), sessions=5, turns=turns, system=0, user=384, answer=answer)
    assert unit.ample(sessions) == pytest.approx(expected, abs=0.005)


def test_round_robin_in_a_small_pool_finds_nothing_where_longest_prefix_first_finds_all():
    """57 subjects in turn, a pool of a tenth of them: every visit comes after its prefix was evicted."""
    rng = np.random.default_rng(0)
    requests = programs.few_shot(
        programs.Text(rng), groups=57, per_group=6, shots=600, question=120, output=1
    )
    turn = [group * 6 + at for at in range(6) for group in range(57)]
    pool = edge_tokens(requests) // 10
    rates = {p: replay(requests, turn, policy=p, pool_tokens=pool).hit_rate for p in ("fcfs", "lpm", "dfs")}
    assert rates["fcfs"] == 0
    assert rates["lpm"] == pytest.approx(unit.ample(requests), abs=0.005)
    assert rates["dfs"] == rates["lpm"]


def test_all_orders_tie_when_the_pool_holds_everything():
    requests = draw("mmlu")
    rates = {
        replay(requests, range(len(requests)), policy=p, pool_tokens=100_000).hit_tokens
        for p in ("fcfs", "lpm", "dfs", "random")
    }
    assert len(rates) == 1


def test_a_request_longer_than_the_pool_is_stuck_and_the_replay_ends():
    requests = draw("mmlu")
    got = replay(requests, range(len(requests)), policy="fcfs", pool_tokens=longest_tokens(requests) - 1)
    assert got.stuck == len(requests)
    assert got.hit_rate == 0


def test_coarser_pages_never_find_more():
    requests = draw("rag")
    hits = [
        replay(
            requests, range(len(requests)), policy="fcfs", pool_tokens=200_000, page_tokens=page
        ).hit_tokens
        for page in (1, 16, 64)
    ]
    assert hits == sorted(hits, reverse=True)


@pytest.mark.parametrize("prefix", [505, 511, 512])
def test_a_page_of_16_loses_less_than_a_page_per_sharing_request(prefix):
    rng = np.random.default_rng(0)
    prompts = unit.shared_prompts(prefix, 112, 0.8, 50, rng)
    by_tree, by_hash = unit.hits_of_both(prompts)
    assert by_tree - by_hash == 39 * (prefix % 16)


SPHERON = BASE.claims(["spheron"])
TABLE = [case for case in unit.cases(Scope(SPHERON)) if isinstance(case, tables.Table)]


def readings(claim):
    return {case.pattern: case for case in TABLE if case.claim == f"spheron/hit-rate-{claim}"}


def test_the_described_workload_caps_the_stated_tables():
    """80 % sharing caps the hit rate below 0.8 whatever the prefix; three of the four figures lie above."""
    first = [c for c in TABLE if c.pattern == "described" and "prefix" in c.claim]
    assert max(tables.expected_hit_rate(c) for c in first) < 0.8
    assert sum(c.stated > 0.8 for c in first) == 3


@pytest.mark.parametrize("prefix", tables.PREFIXES)
def test_a_load_in_which_nearly_all_share_gives_all_four_within_a_point_and_a_half(prefix):
    case = readings(f"prefix-{prefix}")["all-share"]
    [one] = unit.measure(case, bench())
    assert one.samples[0] == pytest.approx(case.stated, abs=0.015)


@pytest.mark.parametrize("pattern", ["described", "replayed-1.25", "replayed-1.5", "replayed-2"])
def test_replayed_prompts_hit_as_their_closed_form_says(pattern):
    case = readings("overlap-40")[pattern].model_copy(update={"requests": 40, "prefix": 64, "own": 14})
    counted = tables.replayed_hit_rate(case, np.random.default_rng(0))
    assert counted == pytest.approx(tables.expected_hit_rate(case), abs=1e-9)


def test_prompts_played_twice_hit_at_least_every_second_time():
    case = readings("overlap-20")["replayed-2"]
    assert tables.expected_hit_rate(case) > 0.5


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        pytest.param("prefix-256", Outcome.INCONCLUSIVE, id="below-the-ceiling-nothing-follows"),
        pytest.param("prefix-2048", Outcome.CONTRADICTED, id="above-the-ceiling"),
        pytest.param("overlap-20", Outcome.CONTRADICTED, id="above-the-share-of-sharing-requests"),
        pytest.param("overlap-95", Outcome.INCONCLUSIVE, id="nearly-all-share"),
    ],
)
def test_a_stated_hit_rate_is_held_against_its_ceiling(name, outcome):
    taken = [
        bench().record("hit_rate", case, [tables.expected_hit_rate(case)]) for case in readings(name).values()
    ]
    [verdict] = unit.judge([SPHERON[f"spheron/hit-rate-{name}"]], taken)
    assert verdict.verdict is outcome
    assert "as described at most" in verdict.reason
    assert "自有 token 取 1" in verdict.reason_zh


def test_another_stated_figure_changes_the_verdict():
    cases = readings("overlap-20")
    taken = [bench().record("hit_rate", case, [tables.expected_hit_rate(case)]) for case in cases.values()]
    lower = SPHERON["spheron/hit-rate-overlap-20"].model_copy(update={"low": 0.18, "high": 0.18})
    [verdict] = unit.judge([lower], taken)
    assert verdict.verdict is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("seed", [0, 7])
def test_verdicts_do_not_depend_on_the_seed(seed):
    taken = counted({"hits", "theorem"}, seed)
    wanted = {"sglang/hit-rate-range", "sglang/dfs-optimal", "sglang/arena-hit-vicuna"}
    claims = [one for name, one in BASE.claims(["sglang"]).items() if name in wanted]
    assert {v.claim: v.verdict for v in unit.judge(claims, taken)} == {
        "sglang/hit-rate-range": Outcome.HOLDS,
        "sglang/dfs-optimal": Outcome.HOLDS,
        "sglang/arena-hit-vicuna": Outcome.UNTESTED,
    }


@pytest.mark.soak
def test_ten_seeds_give_every_claim_the_same_verdict():
    known = BASE.claims(["sglang", "spheron"])
    claims = [known[name] for name in unit.CLAIMS]
    seen = set()
    for seed in range(10):
        taken = counted({"hits", "theorem", "order", "page-size", "table", "turns"}, seed)
        seen.add(tuple((v.claim, str(v.verdict)) for v in unit.judge(claims, taken)))
    assert len(seen) == 1


def test_a_number_of_another_kind_never_judges_a_claim():
    """Claims of throughput stay open although the chat model yields a throughput ratio too."""
    taken = counted({"turns", "hits"})
    claims = [one for name, one in BASE.claims(["sglang"]).items() if name not in unit.PARTS]
    assert {v.verdict for v in unit.judge(claims, taken)} == {Outcome.UNTESTED}


def order_records(lpm, fcfs):
    """Records of one imaginary run: the same share everywhere."""
    one = bench()
    return [
        one.record("share", unit.Order(pattern=name, policy=policy, pool=pool), [value])
        for name in unit.SHAPES
        for pool in (0.1, 0.25)
        for policy, value in (("lpm", lpm), ("fcfs", fcfs))
    ]


@pytest.mark.parametrize(
    ("lpm", "fcfs", "outcome"),
    [
        pytest.param(0.96, 0.3, Outcome.HOLDS, id="near-the-best-and-ahead-of-arrival-order"),
        pytest.param(0.88, 0.3, Outcome.INCONCLUSIVE, id="between-the-bands"),
        pytest.param(0.70, 0.3, Outcome.CONTRADICTED, id="far-from-the-best"),
        pytest.param(0.96, 0.99, Outcome.INCONCLUSIVE, id="behind-arrival-order"),
    ],
)
def test_verdict_on_the_order_follows_the_records(lpm, fcfs, outcome):
    rule = ClaimRule(metric="share", check="near-optimal")
    [verdict] = unit.judge(
        [claim("fraction-of-optimal", low=0.96, high=0.96, rule=rule)], order_records(lpm, fcfs)
    )
    assert verdict.verdict is outcome


def test_a_claim_about_the_order_is_open_while_a_program_is_missing():
    rule = ClaimRule(metric="share", check="near-optimal")
    taken = [m for m in order_records(0.96, 0.3) if m.case["pattern"] != "rag"]
    [verdict] = unit.judge([claim("fraction-of-optimal", low=0.96, high=0.96, rule=rule)], taken)
    assert verdict.verdict is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("seconds", "outcome"),
    [
        pytest.param(0.01, Outcome.HOLDS, id="cheap"),
        pytest.param(1.0, Outcome.NOT_COMPARABLE, id="dear-on-this-cpu"),
    ],
)
def test_cost_of_the_tree_is_held_against_the_papers_run(seconds, outcome):
    one = bench().record("duration", unit.Overhead(), [seconds] * 5, level=Level.PROXY)
    rule = ClaimRule(metric="duration", check="tree-share")
    [verdict] = unit.judge([claim("tree-overhead", low=0, high=0.003, rule=rule)], [one])
    assert verdict.verdict is outcome


def test_check_refuses_a_replay_that_misses_its_closed_form(monkeypatch):
    from kb.errors import WrongResult

    monkeypatch.setitem(programs.EXPECTED, "json", 0.9)
    with pytest.raises(WrongResult, match=r"hit rate 0\.68"):
        unit.check(unit.Hits(pattern="json"), bench())


def test_timed_work_is_checked():
    prepared = unit.unshared(np.random.default_rng(0), 20)
    found = unit.serve_all(prepared)
    unit.nothing_shared(prepared, found)
    from kb.errors import WrongResult

    with pytest.raises(WrongResult, match="1 tokens found"):
        unit.nothing_shared(prepared, 1)


def test_long_answers_leave_a_cache_little_to_gain_and_short_ones_much():
    taken = counted({"turns"})
    gains = {
        name: [m.samples[0] for m in taken if m.case["pattern"] == name]
        for name in ("long-answers", "short-answers")
    }
    assert max(gains["long-answers"]) < 1.35
    assert min(gains["short-answers"]) > 2.0


def test_a_cache_that_finds_nothing_gains_nothing():
    from kb.repro.sim.prefix_turns import Chat, Device, gain
    from kb.repro.sim.shapes import find_model

    device = Device(22e9, 500e9, 40e12)
    model = find_model("llama-2-7b")
    assert gain(Chat(4, 384, 384), model, device, 0.0) == 1.0
    gains = [gain(Chat(4, 384, answer), model, device, 0.75) for answer in (6, 60, 600)]
    assert gains == sorted(gains, reverse=True)


def test_figures_say_what_was_found_in_both_languages():
    taken: list[Measurement] = order_records(0.96, 0.3)
    taken += [bench().record("hit_rate", case, [tables.expected_hit_rate(case)]) for case in TABLE]
    order, prefix, overlap = unit.figure(taken)
    assert "30% to 96%" in order.title.en
    assert "最长前缀优先 96%" in order.alt.zh
    assert prefix.title.en.startswith("3 of 4 stated hit rates")
    assert overlap.title.zh.startswith("5 个所述命中率中有 4 个")
    assert len(prefix.series) == 3
    assert len(overlap.series) == 5
    assert unit.figure([]) == ()


def test_hits_do_not_depend_on_the_hash_seed():
    """The same trace in two processes whose hashes of bytes differ."""
    program = (
        "import numpy as np; from kb.repro import radixattention as unit;"
        "case = unit.Order(pattern='rag', policy='lpm', pool=0.1);"
        "print(unit.share_of_best(case, np.random.default_rng(3)))"
    )
    answers = set()
    for hash_seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(BASE.root.parents[1])}
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        answers.add(done.stdout)
    assert len(answers) == 1
