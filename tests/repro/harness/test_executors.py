"""Cases may be worked through anywhere: the records are the same."""

import pytest

from kb.errors import CannotRun, WrongResult
from kb.repro.harness import executors, run
from kb.repro.harness.run import Options, run_unit
from tests.repro.harness.conftest import TOY


def test_in_any_order_the_records_are_the_same(base, plant, files, monkeypatch):
    unit = plant(TOY.replace("[count(case.n)]", "[count(case.n) + bench.rng(case).normal() * 1e-6]"))
    run_unit(base, unit, Options())
    first = files()
    for name in first:
        if name.startswith(("measurements", "verdicts", "figures")):
            (base.root / name).unlink()
    monkeypatch.setitem(run.EXECUTORS, "local", lambda tasks: map(executors.perform, list(tasks)[::-1]))
    run_unit(base, unit, Options())
    assert files() == first


def test_a_wrong_result_comes_back_as_data(plant):
    unit = plant(TOY.replace("len(range(0, n, 3)) / n", "0.4"))
    import kb.repro.toy as module

    from tests.repro.harness.test_timing import bench

    done = executors.perform(executors.Task(unit.module, "check", module.Case(n=300), bench()))
    assert done.wrong is not None
    assert done.wrong[0] == "count is off"


def test_a_cluster_that_is_not_installed_is_named(base, plant, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(CannotRun) as caught:
        run_unit(base, plant(), Options(executor="ray"))
    assert "kb[cluster]" in caught.value.remedy


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_records_and_the_same_refusals(base, files):
    """A real cluster on this machine, one task per case."""
    ray = pytest.importorskip("ray")
    import shutil
    from pathlib import Path

    from kb.repro.harness.contract import units

    shipped = Path(__file__).resolve().parents[3] / "shared/research-kb/claims"
    for name in ("sd-latency", "eai"):
        shutil.copy(shipped / f"{name}.toml", base.root / "claims")
    unit = units()["moe-coverage"]
    run_unit(base, unit, Options())
    here = files()
    for name in here:
        if name.startswith(("measurements", "verdicts", "figures")):
            (base.root / name).unlink()
    try:
        run_unit(base, unit, Options(executor="ray"))
    finally:
        ray.shutdown()
    assert files() == here
    print(f"ray {ray.__version__}: {len(here)} files equal")  # noqa: T201  make soak shows it


def test_a_refusal_on_a_cluster_stops_the_run(base, plant, monkeypatch):
    """As Ray would: results come through pickling."""
    import pickle

    def far(tasks):
        return (pickle.loads(pickle.dumps(executors.perform(task))) for task in tasks)

    monkeypatch.setitem(run.EXECUTORS, "ray", far)
    with pytest.raises(WrongResult, match="count is off"):
        run_unit(base, plant(TOY.replace("len(range(0, n, 3)) / n", "0.4")), Options(executor="ray"))
