"""A network ingest killed at any moment and run again leaves the bytes of one that nobody disturbed.

`kill -9` falls at the k-th time the program opens a file for writing, renames, removes, makes a folder or syncs, and at random
instants; feeds, pages and arXiv are replayed, triage included. 300 moments by `make soak`, a few by default.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "shared/research-kb"
SEED = 20260702
CHILD = """
import os, signal, sys
base, at = sys.argv[1], int(sys.argv[2])
count = 0

def listen(event, args):
    global count
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "sqlite3.connect") and str(args[0]).startswith(base):
        if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(listen)
from kb.cli.root import run
code = run(["-C", base, "ingest", "--since", "2026-06-01"])
print("MOMENTS", count)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def replay():
    server = subprocess.Popen(
        [sys.executable, "-m", "kb.ingest.replay"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    yield server.stdout.readline().strip()
    server.terminate()
    server.communicate(timeout=10)


def fresh(folder):
    base = folder / "base"
    shutil.rmtree(base, ignore_errors=True)
    for name in ("topics", "rules", "sources"):
        shutil.copytree(SHIPPED / name, base / name)
    shutil.copy(SHIPPED / "kb.toml", base / "kb.toml")
    return base


def start(base, replay, at=0):
    environment = {
        **os.environ,
        "KB_NOW": "2026-07-02T03:05:00Z",
        "KB_REPLAY": replay,
        "XDG_RUNTIME_DIR": str(base.parent),
    }
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(base), str(at)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, cwd=ROOT,
    )  # fmt: skip


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return int(out.split("MOMENTS ")[1])


def files(base):
    found = {
        path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()
    }
    return {name: data for name, data in found.items() if not name.startswith(".kb/")}


def killed_at(folder, replay, moments, delays):
    base = fresh(folder)
    began = time.monotonic()
    total = finish(start(base, replay))
    length = time.monotonic() - began
    undisturbed = files(base)
    assert any(name.startswith("items/") for name in undisturbed)
    assert any(name.startswith("inbox/") for name in undisturbed)
    chance = random.Random(SEED)
    kills = 0
    for at in [chance.randint(1, total) for _ in range(moments)]:
        base = fresh(folder)
        process = start(base, replay, at)
        process.communicate(timeout=120)
        kills += process.returncode == -9
        finish(start(base, replay))
        assert files(base) == undisturbed, f"killed at moment {at} of {total}"
    while kills < moments + delays:  # a moment may lie after the end of a run; it does not count
        base = fresh(folder)
        process = start(base, replay)
        delay = chance.uniform(0, length)
        time.sleep(delay)
        process.kill()
        process.communicate(timeout=120)
        kills += process.returncode == -9
        finish(start(base, replay))
        assert files(base) == undisturbed, f"killed after {delay:.3f} s"
    return kills, total


def test_two_moments(tmp_path, replay):
    kills, _ = killed_at(tmp_path, replay, 1, 1)
    assert kills == 2


@pytest.mark.soak
def test_three_hundred_moments(tmp_path, replay):
    kills, total = killed_at(tmp_path, replay, 250, 50)
    sys.stdout.write(f"{kills} kills, seed {SEED}, {total} moments to choose from\n")
    assert kills == 300
