"""Means over trace files: counted from the file, blocked without it."""

import json
import shutil
from pathlib import Path

import pytest

from kb.errors import CannotRun, WrongResult
from kb.repro import traces
from kb.repro.harness.contract import Scope, units
from kb.repro.harness.run import Options, run_unit
from kb.store import Base
from tests.repro.harness.test_timing import bench

SHIPPED = Path(__file__).parents[2] / "shared/research-kb"
CONV, CODE = (f"azure-2023/AzureLLMInferenceTrace_{name}.csv" for name in ("conv", "code"))
MOONCAKE = "mooncake-fast25/conversation_trace.jsonl"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with small traces of the same shape."""
    for name, rows in ((CONV, [100, 300]), (CODE, [10, 20, 30])):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"0,1,{n}\n" for n in rows))
    path = tmp_path / "data" / MOONCAKE
    path.parent.mkdir(parents=True)
    lines = [{"input_length": 1000, "hash_ids": [1, 2]}, {"input_length": 3000, "hash_ids": [1, 2, 3, 4]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv("KB_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        pytest.param("azure-2023/conv-shape", 200.0, id="mean-of-a-column"),
        pytest.param("azure-2023/code-shape", 20.0, id="of-the-other-file"),
        pytest.param("mooncake/conversation-shape", 2000.0, id="mean-prompt"),
        pytest.param("mooncake/prefix-reuse-ceiling", 2 / 6, id="pages-seen-before"),
    ],
)
def test_each_statistic_is_counted_from_its_file(folder, claim, value):
    file, statistic = traces.STATISTICS[claim]
    assert statistic(folder / file) == pytest.approx(value)


def test_every_data_file_is_an_input(folder):
    assert set(traces.data()) == {folder / name for name in (CONV, CODE, MOONCAKE)}


def test_a_file_that_is_absent_blocks_and_an_empty_one_is_wrong(folder):
    shipped = Base(SHIPPED).claims(["azure-2023", "mooncake"])
    case = next(iter(traces.cases(Scope(shipped))))
    (folder / case.file).write_text("")
    with pytest.raises(WrongResult, match="empty"):
        traces.check(case, bench())
    (folder / case.file).unlink()
    with pytest.raises(CannotRun) as caught:
        traces.check(case, bench())
    assert "kb data fetch" in caught.value.next_command


def test_small_traces_of_another_shape_contradict_what_is_said_of_the_large_ones(folder, base):
    (base.root / "claims").mkdir(exist_ok=True)
    for name in ("azure-2023", "mooncake"):
        shutil.copy(SHIPPED / f"claims/{name}.toml", base.root / "claims")
    report = run_unit(base, units()["traces"], Options())
    found = {v.claim: v.verdict for v in report.verdicts if v.measured is not None}
    assert found["azure-2023/code-shape"] != "untested"
    assert "contradicted" in found.values()
