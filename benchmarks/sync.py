"""How long `kb sync` takes on a repository of 20,000 files: 1,000 changed, nothing changed, first run.

    python benchmarks/sync.py [--files N] [--changed N] [--rounds N]

Makes a bare remote and a clone in a temporary folder, runs the command as a user does (a new process each time) and
prints seconds. Target: 1,000 changed of 20,000 ≤ 5 s, no change ≤ 1 s, on 2 cores.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--changed", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = make_repository(Path(folder), given.files)
        print(
            f"{given.files} files, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {git('--version').strip()}"
        )
        print(f"{'first run, nothing changed':32} {timed_sync(clone)}")
        for number in range(given.rounds):
            for index in range(given.changed):
                odd = 2 * index + 1
                path = clone / f"figures/r{odd % 100}/f{odd}.json"
                path.write_text(f'{{"round": {number}, "figure": {index}}}\n', encoding="utf-8")
            print(f"{f'{given.changed} changed':32} {timed_sync(clone)}")
            print(f"{'nothing changed':32} {timed_sync(clone)}")
        count = git("-C", str(clone), "rev-list", "--count", "refs/kb/upstream").strip()
        assert count == str(1 + given.rounds), f"{count} commits on the branch"
    return 0


def make_repository(folder: Path, files: int) -> Path:
    """A bare remote and a clone that holds a base of so many files."""
    remote, clone = folder / "remote.git", folder / "clone"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git("init", "--quiet", "--initial-branch=main", str(clone))
    (clone / "kb.toml").write_text('zone = "UTC"\n', encoding="utf-8")
    (clone / ".gitignore").write_text(".kb/\n", encoding="utf-8")
    for index in range(files - 2):
        place = clone / (
            f"figures/r{index % 100}/f{index}.json"
            if index % 2
            else f"review/c{index % 50}/2026-01-01-d{index}.md"
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"file {index}\n" * 20, encoding="utf-8")
    git("-C", str(clone), "add", "--all")
    git(
        "-C",
        str(clone),
        "-c",
        "user.name=b",
        "-c",
        "user.email=b@example.org",
        "commit",
        "--quiet",
        "-m",
        "start",
    )
    git("-C", str(clone), "remote", "add", "origin", str(remote))
    git("-C", str(clone), "push", "--quiet", "-u", "origin", "main")
    return clone


def timed_sync(clone: Path) -> str:
    """Seconds of one ``kb sync --once``, the start of Python included: on the wall, and of processor time."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-c",
        "import sys; from kb.cli import main; sys.exit(main())",
        "-C",
        str(clone),
        "sync",
        "--once",
    ]
    subprocess.run(
        command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{wall:6.2f} s, of which {busy:5.2f} s of processor time"


def git(*args: str) -> str:
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
