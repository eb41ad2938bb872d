"""A run that is killed at any moment and started again leaves what an undisturbed one leaves, byte for byte."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.repro.harness.conftest import files_of

ROOT = Path(__file__).resolve().parents[3]
CLAIMS = ROOT / "shared/research-kb/claims"


def new_base(folder):
    from kb.store import Base

    (folder / "claims").mkdir(parents=True)
    (folder / "kb.toml").write_text("")
    for name in ("eai.toml", "sd-latency.toml"):
        (folder / "claims" / name).write_bytes((CLAIMS / name).read_bytes())
    return Base(folder)


def without_commit(base):
    """Bytes of all files but for the commit the code was at: somebody may commit while this runs."""
    told = re.compile(rb'"run_facts":\{[^}]*\}')
    return {name: told.sub(b"", data) for name, data in files_of(base).items()}


def start(base, name):
    command = [sys.executable, "-m", "kb", "-C", str(base.root), "repro", name]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, **quiet)


def killed_at_random(tmp_path, name, kills, seed):
    clean, base = new_base(tmp_path / "clean"), new_base(tmp_path / "killed")
    began = time.monotonic()
    assert start(clean, name).wait() == 0
    lasts = time.monotonic() - began
    rng, hits = random.Random(seed), 0
    for _ in range(kills):
        began = time.monotonic()
        run = start(base, name)
        try:
            run.wait(timeout=rng.uniform(0.2, 1.0) * lasts)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            hits += 1
            run.wait()
        else:  # it was done before the blow: the next one finds an empty base again
            lasts = time.monotonic() - began
            for folder in ("measurements", "verdicts", "figures"):
                shutil.rmtree(base.root / folder, ignore_errors=True)
    assert start(base, name).wait() == 0
    left, wanted = without_commit(base), without_commit(clean)
    assert left.keys() == wanted.keys()
    assert [name for name in left if left[name] != wanted[name]] == []
    return hits


def test_two_kills_leave_nothing_behind(tmp_path):
    killed_at_random(tmp_path, "moe-coverage", 2, seed=1)


@pytest.mark.soak
def test_thirty_kills_leave_nothing_behind(tmp_path):
    hits = killed_at_random(tmp_path, "paged-eviction", 30, seed=2)
    print(f"killed {hits} of 30 runs, seed 2")  # noqa: T201  make soak shows it
    assert hits >= 10
