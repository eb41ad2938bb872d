"""``kb repro``, ``kb verdict``, ``kb stale`` and ``kb run`` as users type them."""

import hashlib
import json

import pytest

from kb.tables import run_groups
from tests.repro.harness.conftest import CLAIM, TOY, files_of, plant  # noqa: F401  the fixture


@pytest.fixture
def toy(base, plant):  # noqa: F811
    """A base with the toy claim and its reproduction."""
    (base.root / "claims").mkdir(exist_ok=True)
    (base.root / "claims/toy.toml").write_text(CLAIM, encoding="utf-8")
    plant()
    return base


def test_repro_json_is_the_contract_s_document(kb, toy):
    ended = kb("repro", "toy", "--json")
    assert ended.code == 0
    found = ended.json
    assert {
        "run",
        "system",
        "environment",
        "seed",
        "quick",
        "seconds",
        "claims",
        "measurements",
    } <= found.keys()
    assert (found["system"], found["seed"], found["quick"]) == ("toy", 0, False)
    assert found["environment"]["machine"] == "cpu"
    [claim] = found["claims"]
    assert (claim["id"], claim["verdict"], claim["level"]) == ("toy/third", "holds", "derived")
    assert claim["source"] == {"low": 0.33, "high": 0.33, "unit": "fraction", "bound": "about"}
    assert claim["measured"].keys() == {"low", "value", "high", "n", "unit"}
    assert found["measurements"][0]["case"] == {"n": 300}
    [(row, _)] = run_groups(toy)
    assert row.id == found["run"]


def test_list_verdicts_gives_the_same_claim_objects(kb, toy):
    [claim] = kb("repro", "toy", "--json").json["claims"]
    [row] = [row for row in kb("list", "verdicts", "--json").json if row["id"] == "toy/third"]
    shared = {"id", "verdict", "level", "source", "measured", "reason"}
    assert {key: row[key] for key in shared} == {key: claim[key] for key in shared}


def test_repro_list_names_what_each_needs(kb, toy):
    assert kb("repro", "list", "--json").json == [
        {"name": "toy", "systems": ["toy"], "claims": ["toy/third"], "levels": ["derived"], "needs": [],
         "title": "A toy: what share of the numbers below n is divisible by three?"}
    ]  # fmt: skip
    assert "toy" in kb("repro", "list").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param(["repro"], 2, "NAMEs or --all", id="neither-a-name-nor-all"),
        pytest.param(["repro", "toy", "--all"], 2, "not both", id="both"),
        pytest.param(["repro", "tyo"], 2, "did you mean toy?", id="a-slip"),
        pytest.param(["repro", "toy", "--gpu"], 5, "no number was taken", id="no-gpu"),
        pytest.param(["repro", "toy", "--timeout", "0"], 2, "timeout", id="no-time"),
        pytest.param(["repro", "toy", "--quick", "--out", "x"], 2, "too few samples", id="a-glance-is-not-kept"),
        pytest.param(["repro", "compare", "a", "b"], 2, "no such run", id="no-such-run"),
        pytest.param(["verdict", "toy/nothing"], 2, "no such claim", id="no-such-claim"),
        pytest.param(["verdict", "toy/third"], 2, "no verdict", id="not-judged-yet"),
        pytest.param(["verdict", "toy/third", "--overrule", "holds"], 2, "--reason", id="overruled-without-a-reason"),
        pytest.param(
            ["verdict", "toy/third", "--overrule", "holds", "--reason", "r"], 2, "nothing was measured",
            id="overruled-to-what-needs-numbers",
        ),
        pytest.param(["run", "show", "zzz"], 2, "no such run", id="show-nothing"),
        pytest.param(["run", "import", "absent.json"], 2, "no such file", id="import-nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_says_why_and_what_next(kb, toy, words, code, said):
    before = files_of(toy)
    ended = kb(*words)
    assert ended.code == code
    assert said in ended.err
    assert files_of(toy) == before


def test_a_wrong_result_ends_with_five_and_stores_nothing(kb, toy, plant):  # noqa: F811
    plant(TOY.replace("len(range(0, n, 3)) / n", "0.4"))
    before = files_of(toy)
    ended = kb("repro", "toy", "--json")
    assert (ended.code, ended.out) == (5, "")
    assert "count is off" in ended.err
    assert files_of(toy) == before


def test_all_goes_on_where_one_cannot_run(kb, toy, plant):  # noqa: F811
    plant(TOY.replace("NEEDS = ()", 'NEEDS = ("gpu",)'), name="gpu_toy")
    ended = kb("repro", "--all", "--json")
    assert ended.code == 4
    assert [one["repros"] for one in ended.json] == [["toy"]]
    assert "needs a GPU" in ended.err


def test_check_stores_nothing_and_finds_drift(kb, toy, plant):  # noqa: F811
    kb("repro", "toy")
    assert kb("repro", "toy", "--check").code == 0
    before = files_of(toy)
    plant(TOY.replace("[count(case.n)]", "[0.01]"))
    ended = kb("repro", "toy", "--check")
    assert ended.code == 1
    assert "drift: toy/third: holds → contradicted" in ended.err
    assert files_of(toy) == before


def test_a_verdict_never_changes_the_exit_code(kb, toy, plant):  # noqa: F811
    plant(TOY.replace("[count(case.n)]", "[0.01]"))
    ended = kb("repro", "toy", "--json")
    assert (ended.code, ended.json["claims"][0]["verdict"]) == (0, "contradicted")


def test_a_dry_run_says_what_would_run(kb, toy):
    before = files_of(toy)
    assert kb("repro", "toy", "--dry-run", "--json").json == [
        {"repro": "toy", "cases": 3, "claims": 1, "cannot": ""}
    ]
    assert files_of(toy) == before


def test_stale_names_causes_and_ends_with_one(kb, toy):
    kb("repro", "toy")
    assert kb("stale").code == 0
    assert kb("stale", "--json").json == []
    (toy.root / "claims/toy.toml").write_text(CLAIM + "holds = [0.3, 0.4]\n", encoding="utf-8")
    ended = kb("stale", "--why", "--json")
    assert ended.code == 1
    assert ended.json == [
        {
            "claim": "toy/third",
            "cause": "rule",
            "why": "its rule was edited after the run",
            "next": "kb repro toy",
        }
    ]


def test_a_person_overrules_with_a_reason_and_takes_it_back(kb, toy):
    kb("repro", "toy")
    ended = kb(
        "verdict", "toy/third", "--overrule", "not-comparable", "--reason", "thirds of what?", "--json"
    )
    [verdict] = ended.json
    assert verdict["verdict"] == "not-comparable"
    assert verdict["overruled"]["rule_says"] == "holds"
    assert verdict["measured"] is not None
    assert "thirds of what?" in verdict["reason"]
    assert [entry.act for entry in toy.log()] == ["overrule"]
    kb("repro", "toy")
    assert kb("verdict", "toy/third", "--json").json[0]["verdict"] == "not-comparable"
    kb("verdict", "toy/third", "--overrule", "none", "--reason", "settled")
    assert kb("verdict", "toy/third", "--json").json[0]["verdict"] == "holds"


def test_refresh_judges_again_without_running(kb, toy):
    kb("repro", "toy")
    stored = (toy.root / "verdicts/toy.json").read_bytes()
    (toy.root / "verdicts/toy.json").unlink()
    before = files_of(toy)
    kb("verdict", "toy", "--refresh", "--dry-run")
    assert files_of(toy) == before
    assert kb("verdict", "--refresh").code == 0
    assert (toy.root / "verdicts/toy.json").read_bytes() == stored


def test_explain_shows_rule_cases_and_digests(kb, toy):
    kb("repro", "toy")
    out = kb("verdict", "toy/third", "--explain").out
    for word in ("a third comes back", "metric = share", "reason", "code", "environment"):
        assert word in out


def test_a_run_goes_out_and_comes_home(kb, toy, tmp_path):
    kb("repro", "toy")
    [(row, _)] = run_groups(toy)
    shown = kb("run", "show", row.id[:8], "--json").json
    assert len(shown[0]["measurements"]) == 3
    path = tmp_path / "out.json"
    exported = kb("run", "export", row.id, "--out", path, "--json").json
    assert exported["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    again = kb("run", "import", path, "--expect", exported["sha256"], "--json").json
    assert [(one["new"], one["known"]) for one in again] == [(0, 3)]
    path.write_text(path.read_text().replace("0.333", "0.334", 1))
    assert kb("run", "import", path).code == 2


def test_out_writes_an_archive_and_not_the_base(kb, toy, tmp_path):
    before = files_of(toy)
    ended = kb("repro", "toy", "--out", tmp_path / "there")
    [path] = (tmp_path / "there").iterdir()
    assert hashlib.sha256(path.read_bytes()).hexdigest() in ended.err
    assert json.loads(path.read_text())["runs"][0]["repro"] == "toy"
    assert files_of(toy) == before


def test_two_machine_classes_are_not_compared_unless_told(kb, toy, plant, monkeypatch):  # noqa: F811
    from kb.repro.harness import run as running

    plant(
        TOY.replace(
            "[count(case.n)]", "[count(case.n) + bench.rng(case, k).normal() * 0.01 for k in range(20)]"
        )
    )
    kb("repro", "toy")
    real = running.machine.observe
    monkeypatch.setattr(
        running.machine, "observe", lambda *a, **k: real(*a, **k).model_copy(update={"cpu": "another"})
    )
    kb("repro", "toy", "--seed", "1")
    (one, _), (two, _) = run_groups(toy)
    ended = kb("repro", "compare", one.id, two.id)
    assert ended.code == 2
    assert "unlike machines: cpu" in ended.err
    assert "another" in ended.err
    rows = kb("repro", "compare", one.id, two.id, "--across", "--json").json
    assert len(rows) == 3
    assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows)
    assert [v.measured.n for v in toy.verdicts().values()] == [60]


def test_help_shows_the_verb_as_it_is_typed(kb):
    out = kb("repro", "--help").out
    assert out.startswith("Usage: kb repro [OPTIONS] NAME")
    assert "kb repro compare RUN RUN" in out
