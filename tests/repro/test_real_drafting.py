"""Drafting for a real model: what counts as a pass, that the shortcut is the loop, and that the text stays the verifier's."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import CannotRun
from kb.model import Level
from kb.repro import real_drafting as unit
from kb.repro.engines import drafting, small_model
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import Reproduction
from kb.store import Base

UNIT: Reproduction = unit
BASE = Base(Path(__file__).parents[2] / "shared/research-kb")
NOW = dt.datetime(2026, 7, 1, tzinfo=dt.UTC).isoformat()
HAS_WEIGHTS = small_model.weights_file().is_file()


def bench():
    words = dict.fromkeys(("rule", "code", "inputs", "env"), "-")
    return Bench(Declared(repro="real-drafting", seed=0, level=Level.PROXY, at=NOW, **words))


def replayed(right, length):
    """The loop written out: every pass looks at the drafts one by one."""
    out, at = [], 0
    while at + length <= len(right):
        accepted = 0
        while accepted < length and right[at + accepted]:
            accepted += 1
        if at + accepted + 1 > len(right):
            break
        out.append((length, accepted))
        at += accepted + 1
    return out


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 6))
def test_passes_are_those_of_the_loop_written_out(right, length):
    assert drafting.model_passes(right, length) == replayed(right, length)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 5))
def test_a_look_up_returns_what_followed_the_last_occurrence(text, count):
    drafts = drafting.looked_up(text, count)
    assert len(drafts) <= count
    if drafts:
        begins = [at for at in range(1, len(text)) if text[at : at + len(drafts)] == drafts]
        assert any(text[at - 1] == text[-1] for at in begins)
    else:
        assert text[-1] not in text[:-1]


@pytest.mark.parametrize(
    ("passes", "rate"),
    [
        pytest.param([(3, 3), (3, 3)], 1.0, id="all-accepted"),
        pytest.param([(3, 0), (3, 0)], 0.0, id="none-accepted"),
        pytest.param([(3, 1), (3, 3)], 0.8, id="drafts-behind-the-first-wrong-one-are-not-looked-at"),
        pytest.param([], 0.0, id="nothing-drafted"),
    ],
)
def test_acceptance_is_the_share_of_the_drafts_that_were_looked_at(passes, rate):
    assert drafting.conditional_rate(passes) == pytest.approx(rate)


def test_without_the_weights_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(small_model, "weights_file", lambda: Path("nowhere.gguf"))
    with pytest.raises(CannotRun, match="not run") as caught:
        unit.check(unit.Steps(), bench())
    assert caught.value.remedy == small_model.INSTALL


def records(tokens, expected):
    for case in unit.cases({}):
        if isinstance(case, unit.Acceptance):
            formula = None if case.pattern == "lookup" else expected
            yield bench().record(
                "tokens_per_pass", case, [tokens - 1, tokens, tokens + 1] * 5, expected=formula
            )


@pytest.mark.parametrize(
    ("tokens", "expected", "outcome"),
    [
        pytest.param(3.0, 3.1, "holds", id="within-every-interval"),
        pytest.param(3.0, 1.1, "not-comparable", id="far-off-on-another-scale"),
    ],
)
def test_the_verdict_follows_the_passes(tokens, expected, outcome):
    claim = BASE.claims(["sd-latency"])["sd-latency/expected-tokens"]
    [verdict] = unit.judge([claim], list(records(tokens, expected)))
    assert verdict.verdict == outcome
    assert verdict.reason_zh


def test_figures_name_what_was_measured_in_both_languages():
    steps = unit.Steps().model_dump()
    times = [
        bench()
        .record("duration", unit.Steps(), [0.01 * tokens] * 3)
        .model_copy(update={"case": {**steps, "timed": f"{batch}x{tokens}"}})
        for batch in (1, 8)
        for tokens in (1, 8)
    ]
    per_pass, cost = unit.figure([*records(3.0, 3.1), *times])
    assert "3.0 to 3.0 tokens" in per_pass.title.en
    assert "8.0 times as long" in cost.title.en
    assert "未在 GPU 上运行" in cost.alt.zh
    assert unit.figure([]) == ()


@pytest.mark.soak
@pytest.mark.skipif(not HAS_WEIGHTS, reason=f"no weights here: {small_model.INSTALL}")
@pytest.mark.parametrize("drafter", ["lookup", "3-bit", "25-layers"])
def test_speculative_text_is_the_verifiers_own(drafter):
    pytest.importorskip("torch")
    model = small_model.load()
    prompt = model.encode(small_model.text("en"))[:40]
    [own] = drafting.greedy(model, [prompt], 20)
    draft = drafting.looked_up
    if drafter != "lookup":
        draft = drafting.drafter(unit.drafting_model(drafter), unit.DRAFTERS[drafter][1])
    written, passes = drafting.speculate(model, draft, prompt, 20, 4)
    assert written == own
    assert sum(accepted + 1 for _, accepted in passes) >= 19
