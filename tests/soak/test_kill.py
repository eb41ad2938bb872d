"""Killed at any moment and run again, a base equals, byte for byte, one that nobody disturbed.

`kill -9` falls at two kinds of moment: at a random instant, and at the k-th time the program opens, renames or removes a file
of the base, where a crash would hurt most. Both are drawn with a fixed seed that is printed.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "shared/research-kb"
EXAMPLE = ROOT / "docs/examples/2026-06-12-kv-notes.txt"
SEED = 20260702
SHORT = ("turboquant", "turboquant")
"""Reproduction and the system of its claims: takes a second and draws a figure."""
LONG = ("paged-eviction", "eai")
CHILD = """
import os, signal, sys
base, at, commands = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
count = 0

def listen(event, args):
    global count
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate") and str(args[0]).startswith(base):
        if event == "open" and not (isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(listen)
from kb.cli.root import run
for command in commands:
    code = run(["-C", base, *command])
    if code:
        sys.exit(code)
print("MOMENTS", count)
"""


def start(base, repro, at=0):
    """The three commands in one process that kills itself at moment ``at``; 0 for never."""
    commands = (["ingest", "--file", str(EXAMPLE)], ["repro", repro], ["publish"])
    environment = {**os.environ, "KB_NOW": "2026-07-03T01:00:00Z", "XDG_RUNTIME_DIR": str(base.parent)}
    environment["GIT_DIR"] = (
        os.devnull
    )  # a run records the commit of its code, which may move during this test
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(base), str(at), repr(commands)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
    )  # fmt: skip


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    return int(out.split("MOMENTS ")[1])


def fresh(folder, system):
    """A base as `kb` finds it before its first run, with the claims of one system."""
    base = folder / "base"
    shutil.rmtree(base, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", folder / "empty.git"], check=True)
    for name in ("topics", "rules", "sources"):
        if (SHIPPED / name).is_dir():
            shutil.copytree(SHIPPED / name, base / name)
    (base / "claims").mkdir(parents=True)
    shutil.copy(SHIPPED / "kb.toml", base / "kb.toml")
    shutil.copy(SHIPPED / f"claims/{system}.toml", base / f"claims/{system}.toml")
    return base


def tree(base):
    return {
        path.relative_to(base).as_posix(): path.read_bytes()
        for path in sorted(base.rglob("*"))
        if path.is_file() and path.relative_to(base).parts[0] != ".kb"
    }


class Undisturbed:
    """The tree of a run nobody disturbed, how many moments it had, and how long it took."""

    def __init__(self, folder, repro, system):
        self.repro, self.system = repro, system
        base = fresh(folder, system)
        began = time.monotonic()
        self.moments = finish(start(base, repro))
        self.took = time.monotonic() - began
        self.tree = tree(base)
        parts = {name.partition("/")[0] for name in self.tree}
        assert parts >= {"items", "inbox", "measurements", "verdicts", "figures", "published"}
        finish(start(base, repro))
        assert tree(base) == self.tree, "a second undisturbed run changes something"

    def kill_and_rerun(self, folder, kind, share):
        """Kill a run, run it again, compare; True if the kill came in time."""
        base = fresh(folder, self.system)
        process = start(base, self.repro, at=1 + int(share * self.moments) if kind == "file" else 0)
        if kind == "instant":
            time.sleep(share * self.took)
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        assert process.returncode in {-signal.SIGKILL, 0}
        finish(start(base, self.repro))
        found = tree(base)
        assert found.keys() == self.tree.keys(), f"{kind} at {share:.3f}"
        assert [name for name in self.tree if found[name] != self.tree[name]] == [], f"{kind} at {share:.3f}"
        return process.returncode != 0


def draws(count):
    """Moments of ``count`` kills: (kind, share of the run)."""
    chance = random.Random(SEED)
    return [("file", chance.random()) if n % 2 else ("instant", chance.random()) for n in range(count)]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return Undisturbed(tmp_path_factory.mktemp("undisturbed"), *SHORT)


@pytest.mark.parametrize(("kind", "share"), [("instant", 0.7), ("file", 0.35), ("file", 0.8)])
def test_a_killed_run_is_completed_by_running_it_again(tmp_path, short, kind, share):
    short.kill_and_rerun(tmp_path, kind, share)


@pytest.mark.soak
def test_two_hundred_kills(tmp_path, capsys):
    run = Undisturbed(tmp_path, *LONG)
    killed = sum(run.kill_and_rerun(tmp_path, kind, share) for kind, share in draws(200))
    with capsys.disabled():
        sys.stdout.write(
            f"\nkill -9: {killed} of 200 runs died (seed {SEED}, {run.moments} file moments, "
            f"{run.took:.1f} s a run); after the rerun all 200 equal an undisturbed run\n"
        )
