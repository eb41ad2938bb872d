"""How git-writing bots lose races and branches (rows 1–12, 42–43 of the failure table), and what kb does instead."""

import re
import subprocess
import time

import pytest

from kb.config import load_user
from kb.store import Base
from kb.sync.commit import UnplannedCommit, prove
from kb.sync.git import Git
from kb.sync.place import find_place
from kb.sync.push import Lease, push
from kb.sync.refusal import Kind, explain
from tests.sync.world import BLOCK, KB, PAGE, World, environment, page


def parts(world: World):
    """The private clone and the place of a world, as sync opens them."""
    with environment(world.kb_environment()):
        place = find_place(Base(world.base), load_user())
    return Git(place.private), place


def test_row_01_a_push_between_our_fetch_and_our_push(world: World):
    """The same plan is rebuilt on the new tip and pushed again."""
    world.write(PAGE, page("| new |"))
    world.moving_remote(1)
    report = world.sync()
    assert report["retries"] == 1
    assert [entry["path"] for entry in report["plan"]] == [PAGE]
    assert world.changed() == {PAGE}
    assert world.count() == 3


def test_row_02_two_pushes_at_once_are_the_same_race(world: World):
    """The server answers "is at X but expected Y"."""
    world.write(PAGE, page("| new |"))
    world.moving_remote(3)
    assert world.sync()["retries"] == 3
    said = "! [remote rejected] x -> main (cannot lock ref 'refs/heads/main': is at 1234 but expected 5678)"
    assert explain(said).kind is Kind.RACE


def test_row_03_many_writers_finish_within_one_run_each(world: World):
    """Three jobs start at once; nobody waits for the next schedule."""
    clones = [world.root / f"job{number}" for number in range(3)]
    running = []
    for number, clone in enumerate(clones):
        world.git("clone", "--quiet", str(world.remote), str(clone), at=world.root)
        world.write(f"inbox/jay/2026-07-0{number + 1}-x.md", f"# {number}\n", at=clone)
    started = time.monotonic()
    for clone in clones:
        env = world.kb_environment({"KB_SYNC_TRIES": "20"})
        running.append(subprocess.Popen([*KB, "-C", str(clone), "sync"], env=env, stdout=subprocess.DEVNULL))
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert time.monotonic() - started < 60
    assert {f"inbox/jay/2026-07-0{n}-x.md" for n in (1, 2, 3)} <= world.files()
    assert world.git("rev-list", "--merges", "main", at=world.remote) == ""


def test_row_04_a_normal_race_is_not_called_a_failure(world: World):
    world.write(PAGE, page("| new |"))
    world.moving_remote(2)
    done = world.kb("sync", "--once")
    assert "2 retries" in done.stdout
    assert "expected" in done.stdout
    assert "nothing was lost" in done.stdout
    assert not re.search(r"fail|error|refused", done.stdout + done.stderr)


def test_row_05_the_lease_names_the_commit(world: World):
    """A background fetch moved our idea of the branch; the push is still refused and the person's commit stays."""
    world.sync()
    git, place = parts(world)
    old = world.tip()
    persons = world.push_edit({"README.md": "by a person\n"})
    git.output("fetch", "--quiet", str(world.remote), "+refs/heads/main:refs/heads/main")
    tree = git.text("rev-parse", f"{old}^{{tree}}")
    env = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    commit = git.text("commit-tree", tree, "-p", old, "-m", "stale", env=env)
    refusal = push(git, place, commit, Lease("refs/heads/main", old))
    assert refusal is not None
    assert refusal.kind is Kind.RACE
    assert world.tip() == persons


@pytest.mark.parametrize("how", ["behind", "checked out older", "stashed"])
def test_row_06_a_stale_tree_reverts_nobody(world: World, how: str):
    """Whatever lies here from an older commit is no change."""
    world.write("verdicts/eai.json", '{"system": "eai", "verdicts": [1]}\n')
    world.write("inbox/jay/2026-07-01-x.md", "# x\n")
    world.sync()
    world.push_edit(
        {"README.md": "new\n", "verdicts/other.json": "{}\n", PAGE: page("| old |", intro="Better.")}
    )
    if how == "checked out older":
        world.git("clean", "--quiet", "--force", "-d", "inbox")
        world.git("reset", "--quiet", "--hard")
        world.pull(world.here)
        world.git("checkout", "--quiet", "HEAD~2")
    elif how == "stashed":
        world.git("stash", "--include-untracked", "--quiet")
    before = world.tip()
    world.write("figures/eai/f.json", "{}\n")
    world.sync()
    assert world.changed() == {"figures/eai/f.json"}
    assert world.git("rev-parse", "main^", at=world.remote) == before
    assert world.show("README.md") == "new\n"
    assert world.show("verdicts/eai.json") == '{"system": "eai", "verdicts": [1]}\n'
    assert "Better." in world.show(PAGE)
    assert "inbox/jay/2026-07-01-x.md" in world.files()


@pytest.mark.parametrize("wrong", ["no parent", "another parent", "more paths", "fewer paths"])
def test_row_07_a_commit_that_is_not_one_planned_step_never_leaves(world: World, wrong: str):
    world.sync()
    git, _ = parts(world)
    tip = world.tip()
    world.push_edit({"README.md": "x\n"})
    git.output("fetch", "--quiet", str(world.remote), "+refs/heads/main:refs/heads/main")
    new = world.tip()
    tree = git.text("rev-parse", f"{new}^{{tree}}")
    blob = git.text("rev-parse", f"{new}:README.md")
    env = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    parents = {"no parent": [], "another parent": ["-p", new]}.get(wrong, ["-p", tip])
    commit = git.text("commit-tree", tree, *parents, "-m", "x", env=env)
    planned = {"more paths": {}, "fewer paths": {"README.md": blob, "other.md": blob}}.get(
        wrong, {"README.md": blob}
    )
    with pytest.raises(UnplannedCommit):
        prove(git, tip, commit, planned)
    prove(git, tip, git.text("commit-tree", tree, "-p", tip, "-m", "x", env=env), {"README.md": blob})


def test_row_08_a_branch_with_a_foreign_commit_is_left_alone(world: World):
    """A person works on the batch branch: the next batch opens another one."""
    world.protect()
    world.write(PAGE, page("| one |"))
    first = world.sync(code=3)["protected"]
    world.git("fetch", "--quiet", "origin", first, at=world.there)
    world.git("checkout", "--quiet", "-b", "mine", "FETCH_HEAD", at=world.there)
    world.write("README.md", "mine\n", at=world.there)
    world.git("commit", "--quiet", "-am", "on the bot's branch", at=world.there)
    world.git("push", "--quiet", "origin", f"HEAD:{first}", at=world.there)
    theirs = world.git("rev-parse", "HEAD", at=world.there)
    world.write(PAGE, page("| two |"))
    second = world.sync(code=3)["protected"]
    assert second != first
    assert world.git("rev-parse", first, at=world.remote) == theirs


def test_row_09_the_check_is_the_push_itself(world: World):
    """A person edits the same block while our push is under way: their text stays, ours is held, the rest goes on."""
    world.write(PAGE, page("| new |"))
    world.write("verdicts/eai.json", '{"system": "eai", "verdicts": [1]}\n')
    world.moving_remote(1, PAGE, page("| old, says a person |"))
    report = world.sync(code=3)
    assert world.show(PAGE) == page("| old, says a person |")
    assert world.changed() == {"verdicts/eai.json"}
    assert [(item["path"], item["block"], item["state"]) for item in report["queue"]] == [
        (PAGE, BLOCK, "held")
    ]
    assert world.read(PAGE) == page("| new |"), "the file here is as it was"


def revert(world: World) -> None:
    world.pull()
    world.git("revert", "--no-edit", "HEAD", at=world.there)
    world.git("push", "--quiet", at=world.there)


def test_row_10_a_persons_revert_holds_until_released(world: World):
    world.write(PAGE, page("| new |"))
    world.write(f"published/.blocks/{BLOCK}.md", "| new |\n")
    world.sync(env={"KB_OWNED": str(world.here)})
    revert(world)
    world.sync(env={"KB_OWNED": str(world.here)})
    assert world.read(PAGE) == page("| old |"), "the job's clone was brought to the revert"
    world.write(PAGE, page("| new again |"))
    world.write(f"published/.blocks/{BLOCK}.md", "| new again |\n")
    report = world.sync(code=3)
    assert report["batches"] == []
    assert {item["state"] for item in report["queue"]} == {"held"}
    assert "reverted" in report["queue"][0]["reason"]
    with environment(world.kb_environment()):
        Base(world.base).append_log(
            "release", BLOCK, who="ann", at="2026-12-01T00:00:00Z", reason="right after all"
        )
    world.sync()
    assert "| new again |" in world.show(PAGE)


@pytest.mark.parametrize("path", ["verdicts/eai.json", "inbox/jay/2026-07-01-x.md"])
def test_row_10b_a_persons_removal_holds_too(world: World, path: str):
    """The removed file is not brought back by the next run that would write it again."""
    world.write(path, '{"one": 1}\n')
    job = {"KB_OWNED": str(world.here)}
    world.sync(env=job)
    world.push_edit({path: None})
    world.sync(env=job)
    assert not (world.base / path).exists()
    world.write(path, '{"two": 2}\n')
    report = world.sync(code=3)
    assert path not in world.files()
    assert "removed it" in report["queue"][0]["reason"]


def test_row_10c_lines_a_person_removed_stay_removed(world: World):
    job = {"KB_OWNED": str(world.here)}
    start = world.read("items/2026-06.jsonl")
    world.write("items/2026-06.jsonl", start + '{"id":"spam"}\n{"id":"good"}\n')
    world.sync(env=job)
    world.push_edit({"items/2026-06.jsonl": start + '{"id":"good"}\n'})
    world.sync(env=job)
    world.write("items/2026-06.jsonl", world.read("items/2026-06.jsonl") + '{"id":"spam"}\n{"id":"fresh"}\n')
    world.sync(code=3)
    assert world.show("items/2026-06.jsonl") == start + '{"id":"good"}\n{"id":"fresh"}\n'


def test_row_11_a_leftover_batch_branch_blocks_nothing(world: World):
    world.git("push", "--quiet", "origin", "main:refs/heads/kb/batch-0123456789abcdef")
    world.protect()
    world.write(PAGE, page("| new |"))
    report = world.sync(code=3)
    assert report["protected"].startswith("kb/batch-")
    assert "kb/batch-0123456789abcdef" in report["notes"][0]


def test_row_12_the_second_update_starts_from_the_tip_again(world: World):
    world.protect()
    world.write(PAGE, page("| one |"))
    world.sync(code=3)
    world.hook("update", "exit 0")
    world.push_edit({"README.md": "moved on\n"})
    world.protect()
    world.write("verdicts/eai.json", '{"system": "eai", "verdicts": [1]}\n')
    branch = world.sync(code=3)["protected"]
    assert world.git("rev-parse", f"{branch}^", at=world.remote) == world.tip()
    assert world.changed(branch) == {PAGE, "verdicts/eai.json"}


def test_row_42_a_protected_branch_gets_a_batch_branch(world: World):
    """It is named, offered once, and gone from the plan when merged."""
    world.protect()
    world.write(PAGE, page("| new |"))
    done = world.kb("sync", "--once", code=3)
    [branch] = [
        b for b in world.git("branch", "--format=%(refname:short)", at=world.remote).split() if b != "main"
    ]
    assert f"merge {branch}" in done.stdout
    assert world.sync(code=3)["batches"] == [], "the same content is not offered twice"
    world.hook("update", "exit 0")
    world.git("push", "--quiet", str(world.remote), f"{branch}:main", at=world.remote)
    assert world.sync()["plan"] == []


def test_row_43_the_queue_survives_a_target_that_moves(world: World):
    """The branch moves while a refused item is being narrowed down."""
    world.refuse("2026-07-03-bad")
    world.hook("pre-receive", world_moves(world, 2))
    for name in ("2026-07-01-a", "2026-07-02-b", "2026-07-03-bad"):
        world.write(f"inbox/jay/{name}.md", f"# {name}\n")
    report = world.sync(code=4)
    assert {"inbox/jay/2026-07-01-a.md", "inbox/jay/2026-07-02-b.md"} <= world.files()
    assert [item["path"] for item in report["queue"]] == ["inbox/jay/2026-07-03-bad.md"]


def world_moves(world: World, times: int) -> str:
    world.moving_remote(times)
    return (world.remote / "hooks/pre-receive").read_text(encoding="utf-8").removeprefix("#!/bin/sh\n")


def test_the_remote_moves_on_every_attempt(world: World):
    """Exit 7 in the time limit, nothing lost: the next run carries all of it."""
    world.write(PAGE, page("| new |"))
    world.moving_remote(99)
    started = time.monotonic()
    report = world.sync(code=7)
    assert time.monotonic() - started < 30
    assert report["batches"] == []
    assert "races lost" in report["refusal"]
    assert world.read(PAGE) == page("| new |")
    assert world.kb("queue", "list").stdout.count("waiting") == 1
    world.hook("pre-receive", "exit 0")
    world.sync()
    assert world.changed() == {PAGE}


def test_a_base_in_a_folder_changes_nothing_beside_it(nested: World):
    world = nested
    (world.here / "inbox").mkdir()
    (world.here / "inbox/outside.md").write_text("not of the base\n", encoding="utf-8")
    (world.here / "items.txt").write_text("x\n", encoding="utf-8")
    world.write("inbox/jay/2026-07-01-x.md", "# x\n")
    world.sync()
    assert world.git("diff-tree", "-r", "--name-only", "main^", "main", at=world.remote) == (
        "shared/research-kb/inbox/jay/2026-07-01-x.md"
    )
