"""Two sync jobs and three reviewers on one remote, all at once, and what must hold afterwards.

Reviewers push random edits to the same files and the same blocks: text, block edits, renames, deletions, reverts of the
bot, CRLF, Chinese names. Every piece of text a person writes holds a mark ``human-N``, every line of a job ``job-N``, so
that at the end each can be looked for.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kb.markers import find_blocks
from kb.publish.blocks import Output, update_page
from kb.sync.merge import text_outside
from tests.sync.world import BLOCK, KB, PAGE, World, page

MARK = re.compile(rb"human-\d+")
NAMES = ("推理 引擎", "显存", "cache", "Décode", "e")
JOBS, REVIEWERS = ("job-a", "job-b"), ("ann", "bo", "蔡")


@dataclass
class Soak:
    world: World
    seed: int
    commits: int
    """Commits of reviewers after which everybody stops."""
    deadline: float
    counts: Counter[str] = field(default_factory=Counter)
    pushed: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def next_number(self) -> int:
        with self.lock:
            self.counts["texts"] += 1
            return self.counts["texts"]

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    # Reviewers

    def review(self, name: str) -> None:
        chance = random.Random(f"{self.seed} {name}")
        clone = self.world.root / name
        while not self.stop.is_set():
            self.world.git("fetch", "--quiet", at=clone)
            self.world.git("reset", "--quiet", "--hard", "origin/main", at=clone)
            act = chance.choice([self.edit_page, self.edit_block, self.edit_draft, self.rename, self.delete, self.revert,
                                 self.crlf, self.new_draft, self.edit_page, self.edit_block])  # fmt: skip
            if not act(clone, chance):
                continue
            time.sleep(
                chance.uniform(0, 1.0)
            )  # a person thinks; what is based on an older tip meets a newer one
            if not self.world.git("status", "--porcelain", at=clone) and act != self.revert:
                continue
            if act != self.revert:
                self.world.git("add", "--all", at=clone)
                self.world.git("commit", "--quiet", "-m", f"{name}: {act.__name__}", at=clone)
            self.push(clone, act.__name__)

    def push(self, clone: Path, what: str) -> None:
        for _ in range(5):
            env = self.world.environment
            done = subprocess.run(
                ["git", "-C", str(clone), "push", "--quiet"], env=env, capture_output=True, check=False
            )
            if done.returncode == 0:
                with self.lock:
                    self.pushed.append(self.world.git("rev-parse", "HEAD", at=clone))
                    self.counts[what] += 1
                    if len(self.pushed) >= self.commits or time.monotonic() > self.deadline:
                        self.stop.set()
                return
            self.count("races of reviewers")
            pulled = subprocess.run(
                ["git", "-C", str(clone), "pull", "--quiet", "--rebase"],
                env=env,
                capture_output=True,
                check=False,
            )
            if pulled.returncode:
                subprocess.run(
                    ["git", "-C", str(clone), "rebase", "--abort"], env=env, capture_output=True, check=False
                )
                return

    def base(self, clone: Path) -> Path:
        return clone / self.world.prefix

    def drafts(self, clone: Path) -> list[Path]:
        base = self.base(clone)
        return sorted(p for stage in ("inbox", "review") for p in (base / stage).rglob("*.md"))

    def edit_page(self, clone: Path, chance: random.Random) -> bool:
        place = self.base(clone) / PAGE
        lines = place.read_bytes().split(b"\n")
        lines.insert(chance.choice([1, 2, len(lines) - 1]), b"human-%d says" % self.next_number())
        place.write_bytes(b"\n".join(lines))
        return True

    def edit_block(self, clone: Path, chance: random.Random) -> bool:
        place = self.base(clone) / PAGE
        data = place.read_bytes()
        blocks, _ = find_blocks(data)
        if not blocks:
            return False
        at = chance.choice([blocks[0].inner_start, blocks[0].inner_end])
        place.write_bytes(data[:at] + b"> human-%d notes\n" % self.next_number() + data[at:])
        return True

    def edit_draft(self, clone: Path, chance: random.Random) -> bool:
        drafts = self.drafts(clone)
        if drafts:
            with chance.choice(drafts).open("ab") as out:
                out.write(b"human-%d\n" % self.next_number())
        return bool(drafts)

    def new_draft(self, clone: Path, chance: random.Random) -> bool:
        number = self.next_number()
        place = self.base(clone) / f"inbox/jay/2026-07-01-{chance.choice(NAMES)}-h{number}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"# human-%d\n" % number)
        return True

    def rename(self, clone: Path, chance: random.Random) -> bool:
        drafts = [p for p in self.drafts(clone) if "inbox" in p.parts]
        if drafts:
            old = chance.choice(drafts)
            new = self.base(clone) / "review/jay" / old.name
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)
        return bool(drafts)

    def delete(self, clone: Path, chance: random.Random) -> bool:
        drafts = self.drafts(clone)
        if drafts:
            chance.choice(drafts).unlink()
        return bool(drafts)

    def crlf(self, clone: Path, chance: random.Random) -> bool:
        place = chance.choice([self.base(clone) / PAGE, *self.drafts(clone)])
        data = place.read_bytes()
        place.write_bytes(data.replace(b"\r\n", b"\n") if b"\r\n" in data else data.replace(b"\n", b"\r\n"))
        return True

    def revert(self, clone: Path, chance: random.Random) -> bool:
        bots = self.world.git("log", "-5", "--format=%H", "--grep=Kb-Batch", at=clone).split()
        if not bots:
            return False
        env = self.world.environment
        done = subprocess.run(
            ["git", "-C", str(clone), "revert", "--no-edit", chance.choice(bots)],
            env=env,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            subprocess.run(
                ["git", "-C", str(clone), "revert", "--abort"], env=env, capture_output=True, check=False
            )
        return done.returncode == 0

    # Jobs

    def job(self, name: str) -> None:
        chance = random.Random(f"{self.seed} {name}")
        number = 0
        while not self.stop.is_set():
            number += 1
            self.work(name, number, chance)
            self.sync(name)
            self.count(f"syncs of {name}")

    def work(self, name: str, number: int, chance: random.Random) -> None:
        base = self.base(self.world.root / name)
        with (base / "items/2026-06.jsonl").open("a", encoding="utf-8") as out:
            out.write(f'{{"id":"{name}-{number}"}}\n')
        self.count("lines of jobs")
        if chance.random() < 0.5:
            self.publish(base, f"| {name} | {number} |\n".encode())
        if chance.random() < 0.3:
            place = base / f"inbox/{name}/2026-07-02-{chance.choice(NAMES)}-{number}.md"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"# {name} {number}\n", encoding="utf-8")
        (base / "verdicts/eai.json").write_text(
            f'{{"system": "eai", "verdicts": [], "n": {number}}}\n', encoding="utf-8"
        )

    def publish(self, base: Path, text: bytes) -> None:
        place, stored = base / PAGE, base / f"published/.blocks/{BLOCK}.md"
        data = place.read_bytes()
        _, problems = find_blocks(data)
        if problems:
            return
        update = update_page(data, {BLOCK: Output(text, stored.read_bytes() if stored.exists() else None)})
        place.write_bytes(update.data)
        for block, new in update.bases.items():
            (base / f"published/.blocks/{block}.md").write_bytes(new)

    def sync(self, name: str) -> int:
        clone = self.world.root / name
        env = self.world.kb_environment({"KB_OWNED": str(clone), "KB_SYNC_TRIES": "20"})
        done = subprocess.run(
            [*KB, "-C", str(self.base(clone)), "sync", "--once"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        self.count(f"exit {done.returncode}")
        retried = re.search(r"(\d+) retr", done.stdout)
        with self.lock:
            self.counts["races of jobs"] += int(retried.group(1)) if retried else 0
        if done.returncode not in {0, 3, 7}:
            self.failures.append(done.stdout + done.stderr)
            self.stop.set()
        return done.returncode


def run_soak(world: World, *, commits: int, seconds: float, seed: int) -> Counter[str]:
    """Let everybody work at once, then check what must hold."""
    soak = Soak(world, seed, commits, time.monotonic() + seconds)
    env = world.environment
    for name in (*JOBS, *REVIEWERS):
        subprocess.run(
            ["git", "clone", "--quiet", str(world.remote), str(world.root / name)], env=env, check=True
        )
        world.git("config", "core.autocrlf", "false", at=world.root / name)
    people = [threading.Thread(target=soak.review, args=(name,)) for name in REVIEWERS]
    jobs = [threading.Thread(target=soak.job, args=(name,)) for name in JOBS]
    for thread in (*people, *jobs):
        thread.start()
    for thread in (*people, *jobs):
        thread.join()
    assert not soak.failures, soak.failures[0]
    for name in (*JOBS, *JOBS):
        assert soak.sync(name) in {0, 3}
    check(soak)
    soak.counts["commits of people"] = len(soak.pushed)
    soak.counts["commits of jobs"] = len(bots(world))
    return soak.counts


def bots(world: World) -> list[str]:
    return world.git(
        "log", "--format=%H", "--grep=Kb-Batch: ", "--committer=kb-sync@localhost", "main", at=world.remote
    ).split()


def check(soak: Soak) -> None:
    world = soak.world
    known = set(world.git("rev-list", "main", at=world.remote).split())
    assert set(soak.pushed) <= known, "a person's commit is not reachable"
    for line in (world.remote / "logs/refs/heads/main").read_text(encoding="utf-8").splitlines():
        old, new = line.split()[:2]
        if set(old) != {"0"}:
            world.git("merge-base", "--is-ancestor", old, new, at=world.remote)
    for commit in bots(world):
        check_bot_commit(world, commit)
    names = world.files()
    for path in names:
        assert b"<<<<<<< " not in world.show_bytes(path), path
    lines = set(world.show("items/2026-06.jsonl").splitlines())
    for name in JOBS:
        mine = (soak.base(world.root / name) / "items/2026-06.jsonl").read_text(encoding="utf-8").splitlines()
        assert set(mine) == lines, f"{name} was not brought to the branch"
        assert not list((world.root / name).glob(".git/*.lock"))
        for private in (soak.base(world.root / name) / ".kb/sync").glob("*.git"):
            world.git("fsck", "--no-dangling", at=private)
            assert not list(private.rglob("*.lock"))
    world.git("fsck", "--strict", "--no-dangling", at=world.remote)
    assert not list(world.remote.glob("refs/**/*.lock"))


def check_bot_commit(world: World, commit: str) -> None:
    """A bot's commit has one parent, removes no text of a person, and of the page changes blocks only."""
    parents = world.git("rev-list", "--parents", "-1", commit, at=world.remote).split()[1:]
    assert len(parents) == 1
    raw = subprocess.run(
        ["git", "-C", str(world.remote), "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", *parents, commit],
        env=world.environment, capture_output=True, check=True,
    ).stdout.split(b"\0")  # fmt: skip
    before, after = set(), set()
    for meta, name in zip(raw[0::2], raw[1::2], strict=False):
        path = os.fsdecode(name).removeprefix(world.prefix)
        old, new = (blob(world, oid.decode()) for oid in meta.split(b" ")[2:4])
        before |= set(MARK.findall(old))
        after |= set(MARK.findall(new))
        if path == PAGE:
            assert text_outside(old) == text_outside(new), f"{commit}: text outside blocks"
        if path.endswith(".jsonl") and old:
            assert set(old.splitlines()) <= set(new.splitlines()), f"{commit}: lines of {path}"
    assert before <= after, f"{commit} removed {before - after}"


def blob(world: World, oid: str) -> bytes:
    if not oid.strip("0"):
        return b""
    done = subprocess.run(
        ["git", "-C", str(world.remote), "cat-file", "blob", oid],
        env=world.environment,
        capture_output=True,
        check=True,
    )
    return done.stdout


__all__ = ["page", "run_soak"]
