"""The comparison with other prefix caches says why it cannot run; where the driver is at hand, ours hits what it must."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRIVER = ROOT.parent / "shared" / "bench" / "radix_driver.py"


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script):
    return subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)


def test_without_the_driver_it_exits_5_with_cause_and_remedy(tmp_path):
    folder = tmp_path / "kb" / "benchmarks"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "benchmarks" / "radix.py", folder)
    done = run(folder / "radix.py")
    assert done.returncode == 5
    assert "cause:" in done.stderr
    assert "remedy:" in done.stderr


def test_without_the_peers_it_exits_5_and_names_the_command_that_fetches_them(tmp_path):
    folder = tmp_path / "kb" / "benchmarks"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "benchmarks" / "radix.py", folder)
    driver = tmp_path / "shared" / "bench" / "radix_driver.py"
    driver.parent.mkdir(parents=True)
    driver.touch()
    done = run(folder / "radix.py")
    assert done.returncode == 5
    assert "--setup" in done.stderr


@pytest.mark.skipif(not DRIVER.exists(), reason=f"{DRIVER} is not here; it is no part of the product")
@pytest.mark.parametrize("interface", ["TokenSlots", "PageTables"])
def test_hit_tokens_are_those_of_a_plain_page_dictionary(interface):
    """Two small workloads of the driver, nothing evicted: every design must find the same tokens."""
    driver = load(DRIVER, "radix_driver")
    ours = getattr(load(ROOT / "benchmarks" / "radix_adapters.py", "radix_adapters"), interface)
    for data in (driver.gen_w1(60), driver.gen_w2(10, 5)):
        found = [driver.run_w12(cls, 16, data, 60_000)["hit_tokens"] for cls in (ours, driver.PageDict)]
        assert found[0] == found[1] > 0
