"""``kill -9`` at random moments: the next run completes, nothing is committed twice, nothing is damaged."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests.sync.world import PAGE, World, page

WAITER = """
import sys
from pathlib import Path
from kb.store import Base
from kb.sync import run, landing, bring, beat, notify
print("ready", flush=True)
sys.stdin.readline()
run.sync(Base(Path(sys.argv[1])))
"""
LONGEST_S = 0.6
"""A sync of this size takes about half as long."""


def killed_sync(world: World, after_s: float, *, with_git: bool, owned: bool) -> int:
    """Start a sync and kill it; with or without the git it runs. Returns how it ended."""
    env = world.kb_environment({"KB_OWNED": str(world.here)} if owned else {})
    process = subprocess.Popen(
        [sys.executable, "-c", WAITER, str(world.base)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdin.write(b"go\n")
    process.stdin.flush()
    time.sleep(after_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL) if with_git else process.kill()
    ended = process.wait(timeout=60)
    process.stdin.close()
    process.stdout.close()
    return ended


def settled(world: World) -> None:
    """Wait until git processes that outlived their kb have ended: a push that was sent is decided by the server."""
    for _ in range(200):
        if not list(world.remote.glob("refs/heads/*.lock")):
            break
        time.sleep(0.01)
    time.sleep(0.05)


def change_something(world: World, number: int) -> None:
    with (world.base / "items/2026-06.jsonl").open("a", encoding="utf-8") as out:
        out.write(f'{{"id":"arxiv:2606.1{number:04}"}}\n')
    world.write(PAGE, page(f"| run {number} |"))
    world.write(f"inbox/jay/2026-07-01-稿-{number}.md", f"# {number}\n")


def run_killed(world: World, moments: int, seed: int) -> dict[str, int]:
    chance = random.Random(seed)
    counts = {"killed": 0, "finished": 0, "pushed before the kill": 0, "recovered": 0}
    for number in range(moments):
        change_something(world, number)
        before, owned = world.count(), chance.random() < 0.5
        ended = killed_sync(world, chance.uniform(0, LONGEST_S), with_git=chance.random() < 0.5, owned=owned)
        settled(world)
        counts["killed" if ended else "finished"] += 1
        counts["pushed before the kill"] += bool(ended) and world.count() > before
        report = world.sync(env={"KB_OWNED": str(world.here)} if owned else None)
        counts["recovered"] += bool(report["recovered"])
        assert world.count() == before + 1, f"moment {number}, seed {seed}: not exactly one commit"
        assert world.changed() == {"items/2026-06.jsonl", PAGE, f"inbox/jay/2026-07-01-稿-{number}.md"}
    assert world.sync()["plan"] == []
    assert f"| run {moments - 1} |" in world.show(PAGE)
    assert len(world.show("items/2026-06.jsonl").splitlines()) == moments + 1
    world.git("fsck", "--strict", "--no-dangling", at=world.remote)
    for private in (world.base / ".kb/sync").glob("*.git"):
        world.git("fsck", "--no-dangling", at=private)
    assert not list(world.here.glob(".git/**/*.lock")) or not list(world.here.glob(".git/index.lock"))
    assert not list((world.base / ".kb/sync").glob("index.*"))
    world.git("fsck", "--no-dangling")
    return counts


def test_a_killed_sync_is_completed_by_the_next_one(nested: World):
    """A fixed share of the moments; the full count runs with `make soak`."""
    counts = run_killed(nested, 4, seed=1)
    assert counts["killed"] >= 1


@pytest.mark.soak
def test_kill_9_at_300_random_moments(nested: World):
    counts = run_killed(nested, 300, seed=20261201)
    print(f"\nkill -9, seed 20261201: {counts}")  # noqa: T201
    assert counts["killed"] > 100
    assert counts["pushed before the kill"] > 0
