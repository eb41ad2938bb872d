"""What a clone, its owner and its git can do to a bot (rows 13–34), and what kb does instead."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from kb.lock import lock_folder
from tests.sync.test_cases import fingerprint
from tests.sync.world import BLOCK, PAGE, World, page


def test_row_13_index_lock_of_a_person_stays_and_stops_nothing(world: World):
    lock = world.here / ".git/index.lock"
    lock.write_bytes(b"")
    world.write(PAGE, page("| new |"))
    world.sync()
    assert world.changed() == {PAGE}
    assert lock.exists()


def test_row_13b_a_dead_lock_in_our_own_clone_is_removed(world: World):
    """The kernel lock is ours and no git works there, so the lock's owner is dead."""
    world.sync()
    private = world.private()
    (private / "refs/heads/main.lock").write_bytes(b"")
    (world.base / ".kb/sync/index.999").write_bytes(b"half")
    world.push_edit({"README.md": "x\n"})
    world.write(PAGE, page("| new |"))
    world.sync()
    assert not list(private.rglob("*.lock"))
    assert not list((world.base / ".kb/sync").glob("index.*"))


def test_row_13c_a_lock_whose_git_still_lives_is_left(world: World):
    world.sync()
    private = world.private()
    living = subprocess.Popen(
        ["git", "--git-dir", str(private), "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    lock = private / "refs/heads/main.lock"
    lock.write_bytes(b"")
    world.push_edit({"README.md": "x\n"})
    report = world.sync(code=5)
    assert "main.lock" in report["stderr"]
    assert lock.exists()
    living.communicate(b"", timeout=20)
    world.sync()
    assert not lock.exists()


@pytest.mark.parametrize(
    ("age_s", "alive", "code"),
    [
        pytest.param(86_400, True, 6, id="row-14-old-but-alive"),
        pytest.param(0, False, 0, id="row-14-young-but-dead"),
    ],
)
def test_row_14_age_is_no_proof(world: World, age_s: int, alive: bool, code: int):
    """Only the kernel lock says whether a run on this machine lives."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(world.base)], env=world.kb_environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    holder.stdout.readline()
    record = lock_folder(world.base) / "long.owner"
    owner = json.loads(record.read_text(encoding="utf-8"))
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age_s))
    record.write_text(json.dumps(owner | {"start": then}), encoding="utf-8")
    if not alive:
        holder.kill()
        holder.wait(timeout=20)
        assert record.exists(), "a killed run leaves its record"
    world.sync(code=code)
    holder.kill()
    holder.communicate(timeout=20)


HOLDER = """
import sys
from pathlib import Path
from kb.lock import hold
with hold(Path(sys.argv[1]), "long", "kb ingest", wait_s=1):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_row_15_a_half_made_clone_is_made_again(world: World):
    world.sync()
    private = world.private()
    half = private.with_suffix(".half")
    private.rename(half)
    shutil.rmtree(half / "objects")
    world.write(PAGE, page("| new |"))
    world.sync()
    assert world.changed() == {PAGE}
    assert not half.exists()


def test_row_16_a_rebase_left_in_progress_is_seen_and_not_touched(world: World):
    """rebase-merge is a folder; REBASE_HEAD alone means nothing."""
    (world.here / ".git/rebase-merge").mkdir()
    (world.here / ".git/rebase-merge/head-name").write_text("refs/heads/main\n", encoding="utf-8")
    world.write(PAGE, page("| new |"))
    report = world.sync(env={"KB_OWNED": str(world.here)})
    assert world.changed() == {PAGE}
    assert any("rebase" in note for note in report["notes"])
    assert (world.here / ".git/rebase-merge/head-name").exists()


def test_row_16b_rebase_head_alone_means_nothing(world: World):
    (world.here / ".git/REBASE_HEAD").write_text(world.git("rev-parse", "HEAD") + "\n", encoding="utf-8")
    world.write(PAGE, page("| new |"))
    report = world.sync(env={"KB_OWNED": str(world.here)})
    assert report["notes"] == []
    assert world.git("rev-parse", "HEAD") == world.tip()


def test_row_17_no_pull_into_a_persons_tree_and_no_conflict_markers(world: World):
    world.push_edit({"README.md": "theirs\n"})
    world.write("README.md", "mine\n")
    world.write("inbox/jay/2026-07-01-x.md", "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> topic\n")
    world.write("inbox/jay/2026-07-02-y.md", "Seven equals:\n=======\n")
    report = world.sync(code=4)
    assert world.read("README.md") == "mine\n"
    assert world.changed() == {"inbox/jay/2026-07-02-y.md"}
    assert "conflict markers" in report["queue"][0]["reason"]


def test_row_18_a_dirty_tree_stops_nothing(world: World):
    world.push_edit({"README.md": "theirs\n", "kb.toml": 'zone = "UTC"\n'})
    for path in ("README.md", "kb.toml"):
        world.write(path, 'zone = "Asia/Tokyo"\n')
    world.write(PAGE, page("| new |"))
    assert world.sync()["exit"] == 0
    assert world.changed() == {PAGE}
    assert world.show("README.md") == "theirs\n"


HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push", "pre-rebase", "post-checkout",
    "post-merge", "pre-auto-gc", "post-index-change", "reference-transaction",
)  # fmt: skip


@pytest.mark.parametrize("owned", [False, True], ids=["row-19-persons-clone", "row-20-jobs-clone"])
def test_row_19_20_no_client_hook_runs(world: World, owned: bool):
    """Each would stop the run; prepare-commit-msg runs even under --no-verify elsewhere."""
    for name in HOOKS:
        hook = world.here / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{world.root}/ran-{name}'; exit 1\n", encoding="utf-8")
        hook.chmod(0o755)
    world.write(PAGE, page("| new |"))
    world.sync("--absorb" if owned else "--once", env={"KB_OWNED": str(world.here)} if owned else None)
    assert world.changed() == {PAGE}
    assert not list(world.root.glob("ran-*"))


def test_row_19b_the_servers_hook_decides(world: World):
    world.refuse("published")
    world.write(PAGE, page("| new |"))
    report = world.sync(code=4)
    assert "published is not wanted" in report["queue"][0]["reason"]
    assert world.count() == 1


def test_row_21_run_from_inside_a_hook_of_another_repository(world: World):
    other = world.root / "other"
    world.git("init", "--quiet", str(other), at=world.root)
    git = {
        "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"), "GIT_NAMESPACE": "x", "GIT_PREFIX": "y/",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
    }  # fmt: skip
    world.write(PAGE, page("| new |"))
    world.sync(env=git)
    assert world.changed() == {PAGE}
    assert not list((other / ".git/refs").rglob("*main*"))
    assert not (other / "index").exists()


def test_row_22_nothing_of_the_users_git_set_up_counts(world: World):
    hooks = world.root / "hooks"
    hooks.mkdir()
    (hooks / "pre-push").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (hooks / "pre-push").chmod(0o755)
    (world.root / "home/.gitconfig").write_text(
        f"[commit]\n\tgpgsign = true\n[push]\n\tgpgSign = true\n[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n"
        "[user]\n\tname = Somebody\n\temail = somebody@example.org\n\tsigningkey = none\n[fetch]\n\tprune = true\n"
        f'[url "{world.root}/nowhere"]\n\tinsteadOf = {world.remote}\n',
        encoding="utf-8",
    )
    world.write(PAGE, page("| new |"))
    world.sync()
    who = world.git("log", "-1", "--format=%an <%ae> %cn <%ce> %G?", "main", at=world.remote)
    assert who == "kb sync <kb-sync@localhost> kb sync <kb-sync@localhost> N"


@pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="signing is tried with ssh-keygen, which is not installed"
)
def test_row_22b_signing_is_a_setting(world: World):
    key = world.root / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    world.write(PAGE, page("| new |"))
    world.sync(env={"KB_SIGNING_KEY": str(key), "KB_SIGNING_FORMAT": "ssh"})
    assert "gpgsig" in world.git("cat-file", "commit", "main", at=world.remote)


SECRETS = {
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n",
    "github": "token ghp_" + "a1" * 18 + "\n",
    "aws": "AKIA" + "ABCD" * 4 + "\n",
    "hugging face": "hf_" + "aB3" * 12 + "\n",
    "password in an address": "see https://ann:hunter22@example.org/x\n",
}


@pytest.mark.parametrize("what", sorted(SECRETS))
def test_row_23_secrets_stay_and_the_rest_goes(world: World, what: str):
    world.write("inbox/jay/2026-07-01-x.md", f"# x\n{SECRETS[what]}")
    world.write(PAGE, page("| new |"))
    report = world.sync(code=4)
    assert world.changed() == {PAGE}
    assert "line 2 holds" in report["queue"][0]["reason"]
    digest = report["queue"][0]["reason"].split("digest ")[1][:16]
    world.sync(env={"KB_NOT_SECRET": digest})
    assert "inbox/jay/2026-07-01-x.md" in world.changed()


def test_row_23b_staged_secrets_private_paths_and_secret_variables_stay(world: World):
    world.write(".env", "KEY=1\n")
    world.git("add", ".env")
    world.write("inbox/jay/2026-07-01-x.md", f"from {world.base}/inbox\n")
    world.write("inbox/jay/2026-07-02-y.md", "the token is correct-horse-battery\n")
    world.write("inbox/jay/2026-07-03-z.md", "fine\n")
    world.sync(code=4, env={"MY_API_TOKEN": "correct-horse-battery"})
    assert world.changed() == {"inbox/jay/2026-07-03-z.md"}


def test_row_24_an_ignored_inbox_is_carried(world: World):
    world.write(".gitignore", ".kb/\ninbox/\n")
    world.write("inbox/jay/2026-07-01-x.md", "# x\n")
    world.sync()
    assert world.changed() == {"inbox/jay/2026-07-01-x.md"}


def test_row_25_crlf_here_and_lf_there_is_no_change(world: World):
    world.git("config", "core.autocrlf", "true")
    for path in (
        "items/2026-06.jsonl",
        PAGE,
        "verdicts/eai.json",
        "inbox/jay/2026-06-10-brief.md",
        "kb.toml",
    ):
        world.write(path, world.read(path).replace("\n", "\r\n"))
    report = world.sync()
    assert report["plan"] == []
    assert report["yours"] == []
    world.write("verdicts/eai.json", '{\r\n"n": 1}\r\n')
    world.write("inbox/jay/2026-07-01-x.md", "# x\r\ny\r\n")
    world.sync()
    assert world.show_bytes("verdicts/eai.json") == b'{\n"n": 1}\n'
    assert world.show_bytes("inbox/jay/2026-07-01-x.md") == b"# x\ny\n"


def test_row_26_a_page_with_crlf_changes_only_in_its_block(world: World):
    crlf = page("| old |").replace("\n", "\r\n")
    world.push_edit({PAGE: crlf})
    world.pull(world.here)
    world.write(PAGE, page("| new |"))
    world.sync()
    old, new = crlf.encode().splitlines(keepends=True), world.show_bytes(PAGE).splitlines(keepends=True)
    assert all(line.endswith(b"\r\n") for line in new)
    assert sum(one != other for one, other in zip(old, new, strict=True)) == 2, "the marker's sum and the row"


def test_row_27_no_change_of_content_no_commit(world: World):
    world.write(PAGE, page("| new |"))
    world.sync()
    for path in world.base.rglob("*.*"):
        if path.is_file() and ".git" not in path.parts:
            os.utime(path)
    report = world.sync(env={"KB_NOW": "2027-01-01T00:00:00Z"})
    assert report["plan"] == []
    assert world.count() == 2


@pytest.mark.parametrize(
    "committed", [True, False], ids=["row-28-rule-on-the-branch", "row-29-rule-only-here"]
)
def test_row_28_29_no_filtered_path_is_carried(world: World, committed: bool):
    """git-lfs is not installed: git itself would store raw bytes, or a pointer without its object."""
    rule = "*.png filter=lfs diff=lfs merge=lfs -text\n"
    if committed:
        world.push_edit({".gitattributes": rule})
    else:
        world.write(".gitattributes", rule)
    world.write("figures/eai/plot.png", b"\x89PNG\0\1")
    world.write("figures/eai/plot.svg", "<svg/>\n")
    report = world.sync(code=4)
    assert world.changed() == {"figures/eai/plot.svg"}
    assert "filter lfs" in report["queue"][0]["reason"]


def test_row_30_a_detached_head_does_not_matter(world: World):
    world.git("checkout", "--quiet", "--detach")
    world.write(PAGE, page("| new |"))
    world.sync()
    assert world.changed() == {PAGE}
    assert world.git("rev-parse", "--abbrev-ref", "HEAD") == "HEAD"


def test_row_31_a_submodule_is_never_in_the_plan(world: World):
    library = world.root / "library"
    world.git("init", "--quiet", str(library), at=world.root)
    world.git("commit", "--quiet", "--allow-empty", "-m", "x", at=library)
    world.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "review/library"
    )
    world.git("commit", "--quiet", "-m", "submodule")
    world.git("push", "--quiet")
    world.git("commit", "--quiet", "--allow-empty", "-m", "y", at=world.here / "review/library")
    shutil.copytree(library, world.base / "inbox/nested")
    world.write("inbox/nested/x.md", "# x\n")
    world.write(PAGE, page("| new |"))
    world.git("add", "--all")
    before = fingerprint(world)
    report = world.sync()
    assert world.changed() == {PAGE}
    assert {entry["path"] for entry in report["left_out"]} == {"inbox/nested", "review/library"}
    assert fingerprint(world)["index"] == before["index"]


def test_row_32_a_shallow_clone_works(world: World):
    world.push_edit({"README.md": "one\n"})
    world.push_edit({"README.md": "two\n"})
    shallow = world.root / "shallow"
    world.git("clone", "--quiet", "--depth=1", f"file://{world.remote}", str(shallow), at=world.root)
    world.write(PAGE, page("| new |"), at=shallow)
    world.sync(at=shallow)
    assert world.changed() == {PAGE}
    world.write("README.md", "unpushed\n", at=shallow)
    world.git("commit", "--quiet", "-am", "unpushed", at=shallow)
    world.write(PAGE, page("| newer |"), at=shallow)
    world.sync(at=shallow)
    assert world.changed() == {PAGE}


def test_row_33_unrelated_histories_are_never_joined(world: World):
    world.sync()
    shutil.rmtree(world.remote)
    stranger = world.root / "stranger"
    world.git("init", "--quiet", "--initial-branch=main", str(stranger), at=world.root)
    world.git("commit", "--quiet", "--allow-empty", "-m", "other", at=stranger)
    world.git("clone", "--quiet", "--bare", str(stranger), str(world.remote), at=world.root)
    world.write(PAGE, page("| new |"))
    tip = world.tip()
    assert "rewritten" in world.sync(code=3)["stderr"]
    shutil.rmtree(world.base / ".kb")
    assert "no history in common" in world.sync(code=3)["stderr"]
    assert world.tip() == tip


@pytest.mark.skipif(os.getuid() != 0, reason="giving a folder to another user needs root")
def test_row_34_dubious_ownership_is_an_error_with_its_remedy(world: World):
    subprocess.run(["chown", "-R", "12345", str(world.here)], check=True)
    world.write(PAGE, page("| new |"))
    report = world.sync(code=5)
    assert "safe.directory" in report["stderr"]
    assert "never *" in report["stderr"]
    (world.root / "home/.gitconfig").write_text(f"[safe]\n\tdirectory = {world.here}\n", encoding="utf-8")
    world.sync()
    assert world.changed() == {PAGE}
    assert BLOCK in world.show(PAGE)
