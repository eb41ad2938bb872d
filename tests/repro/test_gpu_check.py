"""What travels to a GPU machine fits its ten minutes, checks before it measures, and comes home verified."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gpu_check(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("gpu_check", ROOT / "scripts/gpu_check.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_check", module)
    spec.loader.exec_module(module)
    return module


def test_the_plan_fits_ten_minutes_and_checks_first(gpu_check):
    steps = gpu_check.plan("out")
    assert sum(step.seconds for step in steps) <= 600
    assert [step.name.partition(" ")[0] for step in steps[:3]] == ["device", "kernels", "bars:"]
    assert all(step.name.startswith("kb repro") for step in steps[3:])


def test_a_plan_that_does_not_fit_says_so(gpu_check, capsys):
    assert gpu_check.show([gpu_check.Step("long", 601, ())]) == 1
    assert "too long" in capsys.readouterr().err


def test_a_kernel_that_disagrees_stops_everything(gpu_check, tmp_path):
    step = gpu_check.Step
    bad = step("kernels agree", 10, (sys.executable, "-c", "import sys; print('off by one'); sys.exit(1)"))
    never = step("kb repro x", 10, (sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"))
    assert gpu_check.perform([bad, never], tmp_path) == 4
    assert not (tmp_path / "ran").exists()
    assert "off by one" in (tmp_path / "report.json").read_text()


def test_digests_of_all_that_is_left_behind_are_told(gpu_check, tmp_path, capsys):
    leave = f"open({str(tmp_path / 'run.json')!r}, 'w').write('x')"
    assert gpu_check.perform([gpu_check.Step("leave", 10, (sys.executable, "-c", leave))], tmp_path) == 0
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {"report.json", "run.json"}
    assert sums["run.json"] == gpu_check._sha256(tmp_path / "run.json")
    assert sums["run.json"] in capsys.readouterr().out


def test_without_a_gpu_a_repro_says_what_to_do(kb, base):
    ended = kb("repro", "moe-coverage", "--gpu")
    assert ended.code == 5
    assert "scripts/gpu_check --dry-run" in ended.err
    assert "cause:" in ended.err


@pytest.mark.soak
def test_the_whole_rehearsal(tmp_path):
    done = subprocess.run(
        [str(ROOT / "scripts/gpu_check"), "--dry-run", "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout)  # noqa: T201  make soak shows it
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("    ok  ") == 6
