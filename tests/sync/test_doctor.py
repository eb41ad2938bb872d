"""Each finding of the doctor: provoked for real, with its evidence and a command that helps; fixes lose no text."""

import importlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from kb.lock import lock_folder
from kb.sync.doctor import check_names
from kb.sync.doctor.checks.file_system import NETWORK, find_mount
from tests.sync.world import PAGE, World, page


def doctor(
    world: World, *names: str, at: Path | None = None, env: dict[str, str] | None = None
) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for finding in json.loads(world.kb("doctor", *names, "--json", code=None, at=at, env=env).stdout):
        found.setdefault(finding["check"], []).append(finding)
    return found


@pytest.mark.parametrize("name", check_names())
def test_every_check_keeps_the_contract(name: str, world: World):
    unit = importlib.import_module(f"kb.sync.doctor.checks.{name}")
    assert unit.TITLE
    for finding in doctor(world, name)[name]:
        assert finding["evidence"]
        assert finding["state"] in {"ok", "note", "warn", "fail"}
        assert finding["fix"] or finding["state"] in {"ok", "note"}


def test_a_healthy_clone_needs_nothing(world: World):
    """Exit 0; every check says what it saw."""
    world.push_edit({".gitattributes": "*.jsonl merge=union\n"})
    world.pull(world.here)
    world.sync(env={"KB_SCHEDULED": "1"})
    done = world.kb("doctor", code=0)
    assert "WARN" not in done.stdout
    assert len(done.stdout.splitlines()) >= len(check_names())


def test_kb_sync_10_every_condition_is_a_finding_and_markdown_still_syncs(world: World):
    """Shallow clone, detached HEAD, dirty submodule, an LFS rule for *.png and no git-lfs."""
    library = world.root / "library"
    world.git("init", "--quiet", "--template=", str(library), at=world.root)
    world.git("commit", "--quiet", "--allow-empty", "-m", "x", at=library)
    world.push_edit({".gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n"})
    world.git(
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(library),
        "review/library",
        at=world.there,
    )
    world.git("commit", "--quiet", "-m", "submodule", at=world.there)
    world.git("push", "--quiet", at=world.there)
    shallow = world.root / "shallow"
    world.git("-c", "protocol.file.allow=always", "clone", "--quiet", "--depth=1", "--recurse-submodules",
              f"file://{world.remote}", str(shallow), at=world.root)  # fmt: skip
    world.git("checkout", "--quiet", "--detach", at=shallow)
    (shallow / "review/library/dirt").write_text("x\n", encoding="utf-8")
    world.write("figures/eai/plot.png", b"\x89PNG\0", at=shallow)
    world.write(PAGE, page("| new |"), at=shallow)
    report = world.sync("--dry-run", at=shallow, code=4)
    assert [entry["path"] for entry in report["plan"]] == [PAGE]
    assert "review/library" in {entry["path"] for entry in report["left_out"]}
    found = doctor(world, "shallow", "detached_head", "submodules", "filters", at=shallow)
    for name in ("shallow", "detached_head", "submodules", "filters"):
        [finding] = found[name]
        assert (finding["state"], bool(finding["fix"])) == ("warn", True), name
    world.sync(at=shallow, code=4)
    assert world.changed() == {PAGE}


def test_a_half_done_rebase_and_a_lock(world: World):
    (world.here / ".git/rebase-merge").mkdir()
    (world.here / ".git/index.lock").write_bytes(b"")
    said = [finding["evidence"] for finding in doctor(world, "unfinished")["unfinished"]]
    assert len(said) == 2
    assert "rebase" in said[0]
    assert (world.here / ".git/index.lock").exists(), "age is no proof: never removed"


def test_autocrlf_without_a_rule(world: World):
    world.git("config", "core.autocrlf", "true")
    assert doctor(world, "line_endings")["line_endings"][0]["state"] == "warn"
    world.write(".gitattributes", "* text=auto eol=lf\n")
    assert doctor(world, "line_endings")["line_endings"][0]["state"] == "ok"


def test_row_24_an_ignored_inbox_is_a_finding(world: World):
    world.write(".gitignore", ".kb/\ninbox/\n")
    [finding] = doctor(world, "ignored")["ignored"]
    assert "inbox/ is ignored" in finding["evidence"]


def test_fix_mends_only_what_cannot_lose_text(world: World):
    """The union rule is appended and the cache ignores itself; whatever stood there stays."""
    world.write(".gitignore", "")
    world.write(".gitattributes", "*.svg text")
    files = {p: p.read_bytes() for p in world.base.rglob("*.md")}
    assert doctor(world, "union_merge")["union_merge"][0]["fixable"]
    world.kb("doctor", "--fix", code=None)
    assert world.read(".gitattributes") == "*.svg text\n*.jsonl merge=union\n"
    assert doctor(world, "union_merge")["union_merge"][0]["state"] == "ok"
    assert doctor(world, "ignored")["ignored"][0]["state"] == "ok"
    assert all(path.read_bytes() == data for path, data in files.items())


def test_row_37_twins_and_forbidden_names(world: World):
    world.write("inbox/jay/A.md", "1\n")
    world.write("inbox/jay/a.md", "2\n")
    world.write("inbox/jay/a:b.md", "3\n")
    said = {finding["evidence"] for finding in doctor(world, "names")["names"]}
    assert any("upper and lower case" in text for text in said)
    assert any("a:b" in text for text in said)


def test_row_49_a_network_file_system_is_recognised():
    """Lines as Linux writes them in /proc/self/mountinfo."""
    text = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "41 22 0:39 / /srv/nfs\\040share rw,relatime shared:2 - nfs4 host:/share rw,vers=4.2\n"
        "42 22 0:40 / /srv rw - tmpfs tmpfs rw\n"
    )
    assert find_mount(text, Path("/srv/nfs share/kb"))[0] in NETWORK
    assert find_mount(text, Path("/srv/kb")) == ("tmpfs", "/srv")
    assert find_mount(text, Path("/home/kb")) == ("ext4", "/")


def test_row_49_a_lock_of_another_machine(world: World):
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
    [finding] = doctor(world, "locks")["locks"]
    assert "elsewhere" in finding["evidence"]
    assert "kb lock break long" in finding["fix"]


def test_row_41_a_silent_schedule(world: World):
    """Never heard of, heard of, overdue; another clone sees it on the remote."""
    assert "no scheduled job" in doctor(world, "heartbeat")["heartbeat"][0]["evidence"]
    world.sync(env={"KB_SCHEDULED": "1"})
    assert doctor(world, "heartbeat", at=world.there)["heartbeat"][0]["state"] == "ok"
    late = doctor(world, "heartbeat", at=world.there, env={"KB_NOW": "2026-12-02T03:00:00Z"})["heartbeat"][0]
    assert late["state"] == "fail"
    assert "27 h ago" in late["evidence"]


def test_a_remote_that_is_gone_or_takes_no_push(world: World):
    world.remote.rename(world.root / "elsewhere.git")
    [finding] = doctor(world, "remote")["remote"]
    assert (finding["state"], bool(finding["fix"])) == ("fail", True)
    (world.root / "elsewhere.git").rename(world.remote)
    assert doctor(world, "remote")["remote"][0]["state"] == "ok"
    world.git("config", "remote.origin.pushurl", str(world.root / "nowhere"))
    assert "takes no push" in doctor(world, "remote")["remote"][0]["evidence"]


def test_leftover_batch_branches_are_listed(world: World):
    world.git("push", "--quiet", "origin", "main:refs/heads/kb/batch-0123456789abcdef")
    assert "kb/batch-0123456789abcdef" in doctor(world, "remote")["remote"][0]["evidence"]


def test_row_47_a_damaged_private_clone(world: World):
    world.sync()
    for part in [*world.private().glob("objects/??/*"), *world.private().glob("objects/pack/*.pack")]:
        part.chmod(0o600)
        part.write_bytes(b"")
    assert doctor(world, "private_clone")["private_clone"][0]["state"] == "warn"
    world.sync()
    assert "set aside" in doctor(world, "private_clone")["private_clone"][0]["evidence"]


def test_what_waits_in_the_queue(world: World):
    world.write("inbox/jay/2026-07-01-x.md", "AKIA" + "ABCD" * 4 + "\n")
    world.sync(code=4)
    assert "1 set-aside" in doctor(world, "queue")["queue"][0]["evidence"]


def test_chinese_search_is_tried_on_a_real_page(world: World):
    world.write("published/inference/显存/index.md", "# 显存与缓存的命中率\n\n正文。\n")
    [finding] = doctor(world, "search")["search"]
    assert finding["state"] == "ok"
    assert "published/inference/显存/index.md" in finding["evidence"]


@pytest.mark.skipif(os.getuid() != 0, reason="giving a folder to another user needs root")
def test_row_34_another_owner(world: World):
    subprocess.run(["chown", "-R", "12345", str(world.here)], check=True)
    assert "dubious ownership" in doctor(world, "owner")["owner"][0]["evidence"]


def test_a_name_that_is_no_check(world: World):
    world.kb("doctor", "no-such-check", code=2)
