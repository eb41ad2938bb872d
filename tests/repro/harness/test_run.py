"""A run stores everything or nothing, goes on where it was stopped, and cannot be talked into a better result."""

import json

import pytest

from kb.errors import CannotRun, WrongResult
from kb.repro.harness import run as running
from kb.repro.harness.run import Options, run_unit
from tests.repro.harness.conftest import CLAIM, TOY


def run(base, unit, **options):
    return run_unit(base, unit, Options(**options))


def edit_claim(base, old, new):
    assert old in CLAIM
    (base.root / "claims/toy.toml").write_text(CLAIM.replace(old, new), encoding="utf-8")


def test_a_right_run_stores_samples_verdicts_figures_and_what_was_declared(base, plant, files):
    report = run(base, plant())
    assert [v.verdict for v in report.verdicts] == ["holds"]
    assert {name.partition("/")[0] for name in files()} == {
        "claims", "kb.toml", "measurements", "verdicts", "figures",
    }  # fmt: skip
    [verdict] = base.verdicts().values()
    assert verdict.level == "derived"
    assert set(verdict.digests) == {"source", "claim", "rule", "code", "inputs", "environment"}
    taken = list(base.measurements("toy"))
    assert [m.samples for m in taken] == [(100 / 300,), (200 / 600,), (300 / 900,)]
    assert all(m.rule in base.declared_rules() for m in taken)
    assert taken[0].env in base.environments()


def test_a_wrong_fast_path_stores_nothing(base, plant, files):
    """Planting a wrong kernel: the check sees it before anything is measured."""
    before = files()
    wrong = plant(TOY.replace("len(range(0, n, 3)) / n", "0.34"))
    with pytest.raises(WrongResult) as caught:
        run(base, wrong)
    assert caught.value.exit_code == 5
    assert "0.34 is not" in caught.value.cause
    assert files() == before
    assert not list((base.root / ".kb/runs").glob("*"))


def test_a_result_that_turns_wrong_while_measuring_stores_nothing(base, plant, files):
    before = files()
    late = "    if case.n == 900:\n        raise WrongResult('late', cause='c', remedy='r')\n    yield bench.record"
    with pytest.raises(WrongResult):
        run(base, plant(TOY.replace("    yield bench.record", late)))
    assert files() == before


def test_a_glance_stores_nothing_and_its_verdict_is_its_own(base, plant, files):
    run(base, plant())
    before = files()
    edit_claim(base, "0.33", "0.2")
    report = run(base, plant(), quick=True)
    assert [v.verdict for v in report.verdicts] == ["partly"]
    (base.root / "claims/toy.toml").write_text(CLAIM, encoding="utf-8")
    assert files() == before


def test_a_rule_edited_after_the_run_is_not_judged_by_the_old_samples(base, plant):
    from kb.repro.harness.verdicts import refresh

    unit = plant(TOY.replace("len(range(0, n, 3)) / n", "len(range(0, n, 3)) / n"))
    run(base, unit)
    edit_claim(base, 'metric = "share"\n', 'metric = "share"\nholds = [0.0, 1.0]\n')
    text = CLAIM.rstrip() + "\nholds = [0.0, 1.0]\n"
    (base.root / "claims/toy.toml").write_text(text, encoding="utf-8")
    [verdict] = refresh(base, ["toy"])
    assert verdict.verdict == "inconclusive"
    assert "edited after the samples were taken (holds" in verdict.reason
    [verdict] = run(base, unit).verdicts
    assert verdict.verdict == "holds"


def test_a_killed_sweep_goes_on_where_it_stopped_and_ends_with_the_same_records(
    base, plant, files, monkeypatch
):
    monkeypatch.setattr("kb.repro.harness.checkpoint.FLUSH_S", 0.0)
    unit = plant()
    run(base, unit)
    undisturbed = files()
    for name in undisturbed:
        if name.partition("/")[0] not in {"claims", "kb.toml"}:
            (base.root / name).unlink()
    measured = []
    stop = "    if case.n == 900 and bench.killed:\n        raise KeyboardInterrupt\n    seen.append(case.n)\n    yield bench.record"
    unit_killed = plant(TOY.replace("    yield bench.record", stop) + "\n\nseen = []\n")
    import kb.repro.toy as module

    module.seen = measured
    monkeypatch.setattr("kb.repro.harness.bench.Bench.killed", True, raising=False)
    monkeypatch.setattr(running, "code_digest", lambda _: "same")
    with pytest.raises(KeyboardInterrupt):
        run(base, unit_killed)
    assert files().keys() == {"claims/toy.toml", "kb.toml"}
    monkeypatch.setattr("kb.repro.harness.bench.Bench.killed", False)
    run(base, unit_killed)
    assert measured == [300, 600, 900]
    resumed = [m.samples for m in base.measurements("toy")]
    assert resumed == [(100 / 300,), (200 / 600,), (300 / 900,)]


def test_a_torn_checkpoint_is_measured_again(base, plant, monkeypatch):
    from kb.repro.harness.checkpoint import Checkpoint

    path = base.root / ".kb/runs/name.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(
        '{"at": "2026-01-01T00:00:00Z"}\n{"case": "a", "taken": [{"no": "measurement"}]}\n{"case": "b", "ta'
    )
    found = Checkpoint.open(base, "name", "2026-07-02T00:00:00Z", enabled=True)
    assert found.found == {}


def test_a_time_limit_keeps_what_was_finished(base, plant, monkeypatch):
    monkeypatch.setattr("kb.repro.harness.checkpoint.FLUSH_S", 0.0)
    unit = plant(
        TOY.replace("    yield bench.record", "    import time; time.sleep(0.3)\n    yield bench.record")
    )
    with pytest.raises(CannotRun, match="stopped in measure after 1 of 3"):
        run(base, unit, timeout_s=0.25)
    assert [v.verdict for v in run(base, unit).verdicts] == ["holds"]


def test_a_case_that_cannot_run_is_left_out_and_named(base, plant):
    text = TOY.replace(
        "def measure(case, bench):\n",
        "def measure(case, bench):\n    if case.n == 900:\n        raise CannotRun('x', cause='out of memory', remedy='r')\n",
    )
    report = run(base, plant(text))
    assert list(report.blocked.values()) == ["out of memory"]
    assert len(report.measurements) == 2
    assert report.verdicts[0].verdict == "holds"


def test_where_no_case_can_run_the_claim_is_blocked_with_the_reason(base, plant):
    text = TOY.replace(
        "def check(case, bench):\n",
        "def check(case, bench):\n    raise CannotRun('x', cause='no weights', remedy='r')\n",
    )
    with pytest.raises(CannotRun, match="nothing was measured"):
        run(base, plant(text))
    [verdict] = base.verdicts().values()
    assert verdict.verdict == "blocked"
    assert "no weights" in verdict.reason
    assert verdict.measured is None


def test_another_seed_adds_samples_and_the_same_seed_adds_none(base, plant):
    random = TOY.replace("[count(case.n)]", "[count(case.n) + bench.rng(case).normal() * 1e-6]")
    unit = plant(random)
    assert run(base, unit, seed=1).num_new == 3
    assert run(base, unit, seed=1).num_new == 0
    report = run(base, unit, seed=2)
    assert report.num_new == 3
    assert report.verdicts[0].measured.n == 6


def test_the_same_numbers_found_again_on_another_day_change_no_page(base, plant, monkeypatch):
    """KB-EDITS-10 from the run on: touched code measures again, and what the pages say stays byte for byte."""
    from kb.publish.run import make_plan, publish

    monkeypatch.setenv("KB_NOW", "2026-07-02T03:05:00Z")
    run(base, plant())
    publish(base)
    monkeypatch.setenv("KB_NOW", "2026-12-24T03:05:00Z")
    assert run(base, plant(TOY + "\n# touched\n")).num_new == 3
    [verdict] = base.verdicts().values()
    assert (verdict.at[:10], verdict.since[:10]) == ("2026-12-24", "2026-07-02")
    assert make_plan(base).changes == []
    run(base, plant(TOY.replace("300, 600", "301, 600")))
    [verdict] = base.verdicts().values()
    assert verdict.since[:10] == "2026-12-24"
    assert make_plan(base).changes


def test_the_tree_it_was_run_from_is_recorded(base, plant, monkeypatch):
    monkeypatch.setattr("kb.repro.harness.environment.code_state", lambda: {"commit": "abc", "dirty": True})
    run(base, plant())
    assert all(m.run_facts == {"commit": "abc", "dirty": True} for m in base.measurements("toy"))


def test_no_record_names_the_host_or_the_user(base, plant, files, monkeypatch):
    import getpass
    import socket

    run(base, plant())
    text = json.dumps({name: data.decode() for name, data in files().items()})
    for name in {socket.gethostname(), getpass.getuser()} - {"root", "kb"}:
        assert name not in text
