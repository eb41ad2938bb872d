"""Nine tokens in ten evicted: what comes back depends on the shape of the survivors, and the rule says so."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kb.cli.root import cli
from kb.repro import paged_eviction
from kb.repro.harness.contract import Reproduction, units
from kb.repro.harness.run import Options, run_unit
from kb.store import Base

UNIT: Reproduction = paged_eviction
SHIPPED = Path(__file__).parents[2] / "shared/research-kb/claims/eai.toml"


@pytest.fixture
def base(tmp_path, monkeypatch):
    monkeypatch.setenv("KB_NOW", "2026-07-02T03:05:00Z")
    (tmp_path / "kb.toml").write_text('zone = "Asia/Shanghai"\n')
    (tmp_path / "claims").mkdir()
    shutil.copy(SHIPPED, tmp_path / "claims")
    return Base(tmp_path)


def edit(base, old, new):
    path = base.root / "claims/eai.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def run(base, **options):
    return run_unit(base, units()["paged-eviction"], Options(**options))


def files_of(base):
    return {p: p.read_bytes() for p in base.root.rglob("*") if p.is_file() and ".kb" not in p.parts}


def verdict_of(report, claim="eai/evict-14400"):
    return next(v for v in report.verdicts if v.claim == claim)


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    """``kb repro paged-eviction --json`` on the shipped claims."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "kb.toml").write_text("")
    (folder / "claims").mkdir()
    shutil.copy(SHIPPED, folder / "claims")
    env = {"KB_NOW": "2026-07-02T03:05:00Z"}
    done = CliRunner().invoke(cli, ["-C", str(folder), "repro", "paged-eviction", "--json"], env=env)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def freed(document, pattern):
    for one in document["measurements"]:
        wanted = {"pattern": pattern, "page_tokens": 16, "context": 16_000, "evicted": 14_400}
        if one["metric"] == "freed_fraction" and wanted.items() <= one["case"].items():
            return one
    raise AssertionError(pattern)


def test_one_random_set_for_all_heads_frees_a_fifth(document):
    one = freed(document, "uniform")
    assert one["expected"] == pytest.approx(0.18515, abs=1e-5)
    assert all(0.157 <= sample <= 0.213 for sample in one["samples"])
    assert np.mean(one["samples"]) == pytest.approx(one["expected"], abs=0.011)


@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [
        pytest.param("per-head-8", 0.0, 0.005, id="eight-heads-choosing-alone-free-nothing"),
        pytest.param("stratified", 0.0, 0.0, id="one-survivor-in-ten-frees-nothing"),
        pytest.param("runs-4", 0.58, 0.64, id="runs-of-four-free-three-fifths"),
        pytest.param("runs-7", 0.69, 0.75, id="runs-of-seven-free-seven-tenths"),
        pytest.param("contiguous", 0.9, 0.9, id="one-stretch-frees-all-that-was-evicted"),
        pytest.param("sink-recent", 0.899, 0.899, id="a-sink-costs-one-page"),
    ],
)
def test_the_shape_of_the_survivors_decides(document, pattern, low, high):
    one = freed(document, pattern)
    assert low <= min(one["samples"])
    assert max(one["samples"]) <= high
    assert low - 1e-9 <= one["expected"] <= high + 1e-9


def test_after_compaction_every_shape_gives_back_what_was_evicted(document):
    for one in document["measurements"]:
        if one["metric"] == "compacted_fraction":
            assert one["samples"] == [one["expected"]] * len(one["samples"])
            ideal = one["case"]["evicted"] / one["case"]["context"]
            tail = one["case"]["page_tokens"] / one["case"]["context"]
            assert ideal - tail <= one["expected"] <= ideal + tail


def test_every_count_stands_beside_its_closed_form(document):
    for one in document["measurements"]:
        if one["case"]["part"] != "device":
            assert one["expected"] is not None, one["case"]
            slack = 0.03 if one["unit"] == "fraction" else 0.08 * one["expected"]
            assert np.mean(one["samples"]) == pytest.approx(one["expected"], abs=slack), one["case"]


def test_the_stated_sentence_is_partly_right(document):
    verdicts = {claim["id"]: claim for claim in document["claims"]}
    evict = verdicts["eai/evict-14400"]
    assert (evict["verdict"], evict["level"]) == ("partly", "derived")
    assert "1 of 5 cases" in evict["reason"]
    assert "per-head-8" in evict["reason"]
    assert evict["source"] == {"low": 0.0, "high": 0.05, "unit": "fraction", "bound": "about"}
    assert evict["measured"]["n"] == 33
    assert verdicts["eai/oom"]["verdict"] == "partly"
    assert verdicts["eai/hole-filling"]["verdict"] == "partly"
    assert verdicts["eai/rkv-contiguous"]["verdict"] == "holds"


def test_filling_holes_saves_much_after_a_small_eviction_and_little_after_a_large_one(document):
    factors = {m["case"]["name"]: m["expected"] for m in document["measurements"] if m["metric"] == "factor"}
    assert factors["evict-6-percent"] > 15
    assert factors["evict-90-percent"] == pytest.approx(1.11, abs=0.01)


def test_compacting_once_in_128_steps_moves_little_beside_what_the_steps_read(document):
    """R9: at most a hundredth of the traffic, and filling holes moves a fraction of that."""
    shares = {
        m["case"]["name"]: m
        for m in document["measurements"]
        if m["metric"] == "share" and m["case"]["part"] == "periodic"
    }
    assert max(shares["keep-order"]["samples"]) < 0.01
    assert np.mean(shares["fill-holes"]["samples"]) < np.mean(shares["keep-order"]["samples"]) / 10
    [claim] = [c for c in document["claims"] if c["id"] == "eai/compaction-interval"]
    assert (claim["verdict"], claim["measured"]) == ("untested", None)
    assert "not observed in an engine" in claim["reason"]


def test_only_h2o_needs_scores_that_a_fused_kernel_would_have_to_write(document):
    """R10: a last window costs a fraction of a percent of the prompt's attention, the whole history half of it."""
    shares = {
        m["case"]["name"]: m
        for m in document["measurements"]
        if m["metric"] == "share" and m["case"]["part"] == "scores"
    }
    assert shares["h2o"]["samples"][0] == pytest.approx(0.5, abs=0.001)
    assert 0 < shares["r-kv"]["samples"][0] < shares["snapkv"]["samples"][0] < 0.005
    assert shares["streamingllm"]["samples"] == [0.0]
    for one in shares.values():
        assert one["samples"][0] == pytest.approx(one["expected"], rel=1e-9)
    [claim] = [c for c in document["claims"] if c["id"] == "eai/needs-scores"]
    assert (claim["verdict"], claim["level"]) == ("partly", "derived")
    assert "h2o 50.00%" in claim["reason"]


@pytest.mark.parametrize(
    ("queries", "outcome"),
    [
        pytest.param({"a": 16_384, "b": 16_384, "c": 0}, "holds", id="all-that-look-need-the-kernel"),
        pytest.param({"a": 16, "c": 0}, "contradicted", id="none-does"),
    ],
)
def test_the_verdict_on_scores_follows_the_counts(base, monkeypatch, queries, outcome):
    monkeypatch.setattr(paged_eviction, "QUERIES", queries)
    monkeypatch.setattr(paged_eviction, "PATTERNS", ("uniform",))
    assert verdict_of(run(base, quick=True), "eai/needs-scores").verdict == outcome


def test_another_number_of_survivors_changes_the_verdict(base):
    """Evicting 500 tokens frees next to nothing in every shape: then the sentence is right."""
    edit(base, 'evicted = "14400"', 'evicted = "500"')
    assert verdict_of(run(base, quick=True)).verdict == "holds"


def test_hardly_any_survivors_contradict_it(base):
    edit(base, 'evicted = "14400"', 'evicted = "15990"')
    assert verdict_of(run(base, quick=True)).verdict == "contradicted"


def test_another_stated_number_changes_the_verdict(base):
    edit(base, "low = 0.0\nhigh = 0.05", "low = 0.9\nhigh = 0.9")
    edit(base, "holds = [0.0, 0.05]", "holds = [0.81, 0.99]")
    verdict = verdict_of(run(base, quick=True))
    assert verdict.verdict == "partly"
    assert "contiguous 0.9" in verdict.reason.partition("outside")[0]


def test_a_stated_number_outside_the_declared_band_is_not_judged(base):
    edit(base, "low = 0.0\nhigh = 0.05", "low = 0.9\nhigh = 0.9")
    verdict = verdict_of(run(base, quick=True))
    assert verdict.verdict == "inconclusive"
    assert "does not contain the stated 0.9" in verdict.reason


def test_a_rerun_changes_no_byte_and_quick_changes_no_file(base, monkeypatch):
    monkeypatch.setattr(paged_eviction, "DRAWS", 2)
    monkeypatch.setattr(
        paged_eviction, "PATTERNS", ("uniform", "per-head-8", "runs-4", "runs-7", "contiguous")
    )
    run(base)
    first = files_of(base)
    assert {path.parent.name for path in first} >= {"paged-eviction", "env", "rules", "verdicts"}
    run(base)
    run(base, quick=True)
    assert files_of(base) == first
    figures_show_counts_beside_closed_forms_in_both_languages(base)


def figures_show_counts_beside_closed_forms_in_both_languages(base):
    names = {figure.name: figure for figure in base.figures()}
    assert set(names) == {"freed-by-page-size", "freed-by-eviction"}
    for figure in names.values():
        assert all([figure.title.zh, figure.title.en, figure.alt.zh, figure.alt.en])
        assert {series.predicted for series in figure.series} == {True, False}
        assert all(series.label.zh and series.label.en for series in figure.series)
