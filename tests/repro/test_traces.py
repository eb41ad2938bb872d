"""Statistics of public traces are counted from their files, and blocked, with the reason, where there are none."""

from pathlib import Path

import pytest

from kb.errors import CannotRun
from kb.model import Level, Outcome
from kb.repro import traces
from kb.repro.harness.bench import Bench, Declared
from kb.repro.harness.contract import Reproduction
from kb.store import Base

UNIT: Reproduction = traces
ROOT = Path(__file__).parents[2]
CLAIMS = Base(ROOT / "shared/research-kb").claims()
REAL = ROOT.parent / "shared/traces"


def bench():
    return Bench(Declared("traces", 0, Level.DERIVED, "r", "c", "i", "e", "2026-07-02T03:05:00Z"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two tiny files in the shape of the public ones."""
    monkeypatch.setenv("KB_DATA_DIR", str(tmp_path))
    azure, mooncake = tmp_path / "azure-2023", tmp_path / "mooncake-fast25"
    azure.mkdir()
    mooncake.mkdir()
    for name in ("conv", "code"):
        path = azure / f"AzureLLMInferenceTrace_{name}.csv"
        path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nt,10,100\nt,20,300\n")
    lines = ['{"input_length": 1000, "hash_ids": [1, 2]}', '{"input_length": 3000, "hash_ids": [1, 2, 3, 4]}']
    (mooncake / "conversation_trace.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def counted():
    return {
        case.claim: one.samples[0] for case in traces.cases(CLAIMS) for one in traces.measure(case, bench())
    }


def test_means_and_reuse_are_counted(folder):
    """Two of six pages were seen before; the first request finds an empty cache."""
    assert counted() == {
        "azure-2023/conv-shape": 200.0,
        "azure-2023/code-shape": 200.0,
        "mooncake/conversation-shape": 2000.0,
        "mooncake/prefix-reuse-ceiling": pytest.approx(2 / 6),
    }


def test_other_files_give_other_verdicts(folder):
    taken = [one for case in traces.cases(CLAIMS) for one in traces.measure(case, bench())]
    outcomes = {v.claim: v.verdict for v in traces.judge([CLAIMS[c] for c in traces.CLAIMS], taken)}
    assert outcomes["azure-2023/conv-shape"] is Outcome.HOLDS
    assert outcomes["azure-2023/code-shape"] is not Outcome.HOLDS


@pytest.mark.parametrize("value", [None, "/nowhere"], ids=["no-folder-named", "folder-without-the-file"])
def test_without_the_files_the_claims_are_blocked_and_say_why(value, monkeypatch):
    monkeypatch.delenv("KB_DATA_DIR", raising=False)
    if value:
        monkeypatch.setenv("KB_DATA_DIR", value)
    case = next(iter(traces.cases(CLAIMS)))
    with pytest.raises(CannotRun) as error:
        traces.check(case, bench())
    assert "KB_DATA_DIR" in error.value.cause


@pytest.mark.skipif(not REAL.is_dir(), reason="../shared/traces is absent")
def test_the_public_files_have_the_stated_shape(monkeypatch):
    monkeypatch.setenv("KB_DATA_DIR", str(REAL))
    taken = [one for case in traces.cases(CLAIMS) for one in traces.measure(case, bench())]
    verdicts = traces.judge([CLAIMS[c] for c in traces.CLAIMS], taken)
    assert {v.verdict for v in verdicts} == {Outcome.HOLDS}
