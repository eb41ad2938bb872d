"""Files stay within 400 lines and functions within 60, and the check that says so can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts/limits.py"


def run_on(*folders):
    return subprocess.run([sys.executable, SCRIPT, *folders], capture_output=True, text=True, check=False)


def test_the_repository_is_within_the_limits():
    done = run_on()
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        pytest.param("long.py", "x = 1\n" * 401, "401 lines", id="a-file-one-line-too-long"),
        pytest.param(
            "f.py", "def f():\n" + "    x = 1\n" * 60, "f has 61 lines", id="a-function-one-line-too-long"
        ),
        pytest.param("utils.py", "", "says nothing", id="a-module-called-utils"),
    ],
)
def test_what_exceeds_a_limit_is_named_with_its_place(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)
    done = run_on(tmp_path)
    assert done.returncode == 1
    assert f"{name}:1: " in done.stdout
    assert complaint in done.stdout


def test_a_file_at_the_limit_is_fine(tmp_path):
    (tmp_path / "long.py").write_text("def f():\n" + "    x = 1\n" * 59 + "x = 1\n" * 340)
    assert run_on(tmp_path).returncode == 0


def test_a_kernel_may_be_long_but_its_file_may_not(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "k.py").write_text("def kernel():\n" + "    x = 1\n" * 90)
    assert run_on(tmp_path).returncode == 0
