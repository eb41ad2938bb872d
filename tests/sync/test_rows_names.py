"""Names, clocks, crashes and locks (rows 35–41, 44–50), and what kb does about them."""

import json
import shutil
import subprocess
import time
import unicodedata
from pathlib import Path

import pytest

from kb.lock import lock_folder
from kb.sync.refusal import Kind, explain
from tests.sync.world import PAGE, World, page


def test_row_35_chinese_names_arrive_as_they_are(world: World):
    """Created, changed and deleted, whatever core.quotePath says."""
    world.git("config", "core.quotePath", "true")
    names = [
        "inbox/作者/2026-07-01-推理 “引擎”.md",
        "figures/缓存/命中率.svg",
        "published/推理/显存/index.md",
    ]
    for name in names:
        world.write(name, "一\n")
    world.sync()
    assert set(names) <= world.files()
    world.pull()
    world.git("clean", "--quiet", "--force", "-d")
    world.pull(world.here)
    for name in names:
        (world.base / name).unlink()
    world.sync()
    assert not set(names) & world.files()


def test_row_36_decomposed_names_are_the_same_names(world: World):
    """macOS gives NFD; the branch keeps its spelling, new names are composed."""
    name = "inbox/jay/2026-07-01-Décodé.md"
    world.push_edit({name: "# un\n"})
    world.write(unicodedata.normalize("NFD", name), "# un\n")
    assert world.sync()["plan"] == []
    world.write(unicodedata.normalize("NFD", "inbox/jay/2026-07-02-é.md"), "# deux\n")
    world.sync()
    assert "inbox/jay/2026-07-02-é.md" in world.files()
    assert all(unicodedata.is_normalized("NFC", path) for path in world.files())


def test_row_36b_twins_are_set_aside(world: World):
    name = "inbox/jay/2026-07-01-é.md"
    world.write(name, "# composed\n")
    world.write(unicodedata.normalize("NFD", name), "# decomposed\n")
    world.write("inbox/jay/2026-07-02-e.md", "# e\n")
    report = world.sync(code=4)
    assert world.changed() == {"inbox/jay/2026-07-02-e.md"}
    assert "NFC" in report["queue"][0]["reason"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("inbox/jay/2026-06-10-BRIEF.md", "upper and lower case"),
        ("inbox/jay/a:b.md", "character"),
        ("inbox/jay/tab\there.md", "character"),
        ("inbox/jay/con.md", "Windows"),
        ("inbox/jay/dot.", "Windows"),
        ("inbox/jay/2026-06-10-brief.md.d/x.md", ""),
    ],
)
def test_row_37_names_that_cannot_be_checked_out_everywhere(world: World, name: str, why: str):
    world.write(name, "# x\n")
    report = world.sync(code=4 if why else 0)
    assert (name in world.files()) == (not why)
    assert not why or why in report["queue"][0]["reason"]


def test_row_37b_a_file_where_the_branch_has_a_folder(world: World):
    world.push_edit({"figures/eai": "a file\n"})
    world.write("figures/eai/plot.svg", "<svg/>\n")
    world.write("figures/ok/plot.svg", "<svg/>\n")
    report = world.sync(code=4)
    assert "figures/ok/plot.svg" in world.files()
    assert "needs a folder" in report["queue"][0]["reason"]


@pytest.mark.parametrize(
    "said",
    [
        "remote: {\"message\":\"'Issued at' claim ('iat') must be an Integer representing the time\"}",
        "fatal: remote error: JWT token expired, check your clock",
    ],
)
def test_row_38_a_token_refused_for_its_time_names_the_clock(said: str):
    assert "clock" in explain(said).remedy


def test_row_39_order_is_ancestry_never_dates(world: World):
    """A person's commit of 2020 on top hides nothing from sync."""
    job = {"KB_OWNED": str(world.here)}
    world.write("verdicts/eai.json", '{"n": 1}\n')
    world.sync(env=job)
    world.pull()
    world.write("verdicts/eai.json", '{"system": "eai", "verdicts": []}\n', at=world.there)
    dates = {"GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z"}
    subprocess.run(
        ["git", "-C", str(world.there), "commit", "--quiet", "-am", "back"],
        env=world.environment | dates,
        check=True,
    )
    world.git("push", "--quiet", at=world.there)
    world.sync(env=job)
    world.write("verdicts/eai.json", '{"n": 2}\n')
    assert "reverted" in world.sync(env=job, code=3)["queue"][0]["reason"]


def test_row_40_moments_are_utc_whatever_the_zone(world: World):
    world.write(PAGE, page("| new |"))
    world.sync(env={"TZ": "Asia/Shanghai"})
    last = json.loads((world.base / ".kb/sync/last.json").read_text(encoding="utf-8"))
    assert last["at"] == "2026-12-01T00:00:00Z"
    assert world.git("log", "-1", "--format=%cI", "main", at=world.remote) == "2026-12-01T00:00:00+00:00"


def test_row_41_a_schedule_that_fell_silent_raises_an_alarm(world: World):
    """The record is on the remote, so every clone sees its age."""
    world.sync(env={"KB_SCHEDULED": "1"})
    beat = json.loads(world.git("log", "-1", "--format=%B", "refs/kb/heartbeat", at=world.remote))
    assert beat["scheduled_at"] == "2026-12-01T00:00:00Z"
    later = {"KB_NOW": "2026-12-03T00:00:00Z"}
    world.sync(at=world.there, env=later)
    assert json.loads(world.kb("status", "--json", at=world.there, env=later).stdout)["sync"]["alarm"] == (
        "the scheduled job was last heard of 48 h ago"
    )
    assert "ALARM" in world.kb("status", env=later).stdout
    assert "ALARM" not in world.kb("status").stdout


def test_row_44_a_restart_forgets_nothing(world: World):
    """A batch that was begun and did not arrive is pushed; what was set aside stays known."""
    world.write("inbox/jay/2026-07-01-x.md", "AKIA" + "ABCD" * 4 + "\n")
    world.write(PAGE, page("| new |"))
    dead = world.root / "dead.git"
    world.remote.rename(dead)
    world.sync(code=5)
    dead.rename(world.remote)
    (world.base / ".kb/sync").mkdir(exist_ok=True, parents=True)
    line = {
        "batch": "0123456789abcdef",
        "state": "pushing",
        "tip": world.tip(),
        "commit": "0" * 40,
        "paths": 1,
    }
    (world.base / ".kb/sync/journal.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    report = world.sync(code=4)
    assert report["recovered"] == ""
    assert world.changed() == {PAGE}
    assert "inbox/jay/2026-07-01-x.md" in world.kb("queue", "list").stdout


def test_kb_sync_11_row_45_one_bad_item_is_set_aside(world: World):
    """After n tries, with its reason; what is behind it is pushed; exit 4; retry and drop work."""
    world.refuse("2026-07-02-bad")
    names = [
        f"inbox/jay/2026-07-0{number}-{word}.md" for number, word in enumerate(("a", "bad", "c", "d", "e"), 1)
    ]
    for name in names:
        world.write(name, f"# {name}\n")
    report = world.sync(code=4)
    assert set(names) - world.files() == {names[1]}
    [item] = json.loads(world.kb("queue", "list", "--json").stdout)
    assert (item["path"], item["state"], item["tries"]) == (names[1], "set-aside", 3)
    assert "2026-07-02-bad is not wanted" in item["reason"]
    assert report["queue"][0]["id"] == item["id"]
    commits = world.count()
    world.sync(code=4)
    world.hook("update", "exit 0")
    world.sync(code=4)
    assert world.count() == commits, "set aside means not tried again by itself"
    world.kb("queue", "retry", item["id"])
    world.sync()
    assert names[1] in world.files()


def test_row_45b_dropped_items_stay_here_and_are_not_planned(world: World):
    bad = world.write("inbox/jay/2026-07-01-x.md", "AKIA" + "ABCD" * 4 + "\n")
    world.sync(code=4)
    world.kb("queue", "drop", "inbox/jay/2026-07-01-x.md")
    assert world.sync()["queue"] == []
    assert bad.exists()
    bad.write_text("clean now\n", encoding="utf-8")
    world.sync()
    assert "inbox/jay/2026-07-01-x.md" in world.files()


def test_row_45c_a_server_that_refuses_everything_is_not_the_items_fault(world: World):
    world.hook("pre-receive", "echo 'policy: closed today' >&2; exit 1")
    for number in range(8):
        world.write(f"inbox/jay/2026-07-0{number + 1}-x.md", f"# {number}\n")
    report = world.sync(code=7)
    assert "closed today" in report["refusal"]
    assert {item["state"] for item in report["queue"]} == {"waiting"}
    world.hook("pre-receive", "exit 0")
    world.sync()
    assert world.count() == 2


def test_row_46_a_crash_between_push_and_bookkeeping_is_recognised(world: World):
    world.write(PAGE, page("| new |"))
    batch = world.sync()["batches"][0]["id"]
    assert (
        world.git("log", "-1", "--format=%(trailers:key=Kb-Batch,valueonly)", "main", at=world.remote)
        == batch
    )
    journal = world.base / ".kb/sync/journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines()
    journal.write_text(lines[0] + "\n", encoding="utf-8")
    world.git("update-ref", "-d", "refs/kb/base", at=world.private())
    report = world.sync()
    assert report["recovered"] == batch
    assert world.count() == 2


def test_row_46b_the_journal_can_be_lost(world: World):
    world.write(PAGE, page("| new |"))
    world.write("items/2026-06.jsonl", world.read("items/2026-06.jsonl") + '{"id":"x"}\n')
    world.sync()
    shutil.rmtree(world.base / ".kb")
    world.push_edit({"items/2026-06.jsonl": world.show("items/2026-06.jsonl") + '{"id":"y"}\n'})
    assert world.sync()["plan"] == []
    assert world.count() == 3


@pytest.mark.parametrize("damage", ["empty object", "no objects", "empty ref", "not a repository"])
def test_row_47_a_damaged_private_clone_is_rebuilt_and_kept(world: World, damage: str):
    job = {"KB_OWNED": str(world.here)}
    world.write(PAGE, page("| new |"))
    world.sync(env=job)
    private = world.private()
    if damage == "empty object":
        world.git("unpack-objects", at=private, given="", check=False)
        for pack in private.glob("objects/pack/*"):
            pack.chmod(0o600)
            pack.write_bytes(b"")
        for loose in private.glob("objects/??/*"):
            loose.chmod(0o600)
            loose.write_bytes(b"")
    elif damage == "no objects":
        shutil.rmtree(private / "objects")
    elif damage == "empty ref":
        (private / "refs/heads/main").write_bytes(b"")
    else:
        shutil.rmtree(private)
        private.mkdir()
    world.write(PAGE, page("| newer |"))
    world.sync(env=job)
    assert world.changed() == {PAGE}
    assert "| newer |" in world.show(PAGE)
    assert damage == "empty ref" or list(private.parent.glob("*.damaged-*"))


def test_row_48_a_second_sync_ends_within_two_seconds_naming_the_first(world: World):
    started = world.root / "started"
    world.hook("pre-receive", f"touch '{started}'; sleep 6")
    world.write(PAGE, page("| new |"))
    first = world.start_kb("sync", "--once")
    deadline = time.monotonic() + 30
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    then = time.monotonic()
    report = world.sync(code=6)
    assert time.monotonic() - then < 2
    assert f"pid {first.pid}" in report["stderr"]
    assert "since 2" in report["stderr"]
    shown = json.loads(world.kb("lock", "show", "--json").stdout)
    assert [row["pid"] for row in shown if row["state"] == "held"] == [first.pid]
    first.kill()
    first.communicate()
    world.hook("pre-receive", "exit 0")
    world.sync(code=None)
    assert world.changed() == {PAGE}, "the lock was free at once"


def test_row_49_a_lock_of_another_machine_is_broken_by_hand_only(world: World):
    folder = lock_folder(world.base)
    folder.mkdir(parents=True, exist_ok=True)
    owner = {
        "pid": 1,
        "host": "elsewhere",
        "start": "2020-01-01T00:00:00Z",
        "what": "kb sync",
        "boot": "other",
    }
    (folder / "long.owner").write_text(json.dumps(owner), encoding="utf-8")
    world.write(PAGE, page("| new |"))
    report = world.sync(code=6)
    assert "elsewhere" in report["stderr"]
    assert "kb lock break" in report["stderr"]
    assert "left by another machine" in world.kb("lock", "show").stdout
    assert "broke long" in world.kb("lock", "break").stdout
    world.sync()
    assert world.changed() == {PAGE}


def test_row_49b_a_container_that_started_anew_is_the_same_machine(world: World):
    folder = lock_folder(world.base)
    folder.mkdir(parents=True, exist_ok=True)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    owner = {
        "pid": 1,
        "host": "old-container",
        "start": "2020-01-01T00:00:00Z",
        "what": "kb sync",
        "boot": boot,
    }
    (folder / "long.owner").write_text(json.dumps(owner), encoding="utf-8")
    world.sync()


def test_row_50_a_lock_on_the_remote_is_reported_never_removed(world: World):
    lock = world.remote / "refs/heads/main.lock"
    lock.write_bytes(b"")
    world.write(PAGE, page("| new |"))
    report = world.sync(code=7)
    assert "main.lock" in report["refusal"]
    assert "never removes a lock on a server" in report["refusal"]
    assert lock.exists()
    lock.unlink()
    world.sync()
    assert explain("Unable to create '/x/main.lock': File exists").kind is Kind.REMOTE_LOCK
