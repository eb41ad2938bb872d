"""The command-level cases KB-SYNC, against real repositories."""

import hashlib

from tests.sync.world import BLOCK, PAGE, World, page


def fingerprint(world: World) -> dict[str, object]:
    """Everything of a person's clone that sync must leave alone: files, index, branch, hooks, remote-tracking refs."""
    git = world.here / ".git"
    files = {
        str(p.relative_to(world.here)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(world.here.rglob("*"))
        if p.is_file() and ".git" not in p.parts and ".kb" not in p.parts
    }
    return {
        "files": files,
        "index": (git / "index").read_bytes(),
        "head": world.git("rev-parse", "HEAD"),
        "branch": world.git("symbolic-ref", "HEAD"),
        "tracking": world.git("rev-parse", "refs/remotes/origin/main"),
        "status": world.git("--no-optional-locks", "status", "--porcelain", "--untracked-files=no"),
        "hooks": {p.name: (p.read_bytes(), p.stat().st_mode) for p in (git / "hooks").glob("*")},
        "config": (git / "config").read_bytes(),
        "stash": world.git("stash", "list"),
    }


def test_kb_sync_01_a_race_is_retried_by_itself(nested: World):
    """Remote has both commits in a line; exit 0; output says 1 retry."""
    nested.write(PAGE, page("| new |"))
    nested.moving_remote(1)
    done = nested.kb("sync", "--once", code=0)
    assert "1 retry" in done.stdout
    assert nested.subjects() == ["kb sync: 1 changed", "person 1", "start"]
    assert nested.git("rev-list", "--merges", "main", at=nested.remote) == ""
    assert nested.changed() == {PAGE}
    assert "| new |" in nested.show(PAGE)
    assert nested.show("human-1.txt") == "move 1\n"


def test_kb_sync_04_a_persons_clone_is_exactly_as_before(world: World):
    """Dirty file, another staged, a failing pre-commit hook, commit.gpgsign on: commit holds only planned paths."""
    hook = world.here / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran; exit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    (world.root / "home/.gitconfig").write_text("[commit]\n\tgpgsign = true\n", encoding="utf-8")
    world.git("config", "commit.gpgsign", "true")
    world.write("kb.toml", 'zone = "UTC"\nlanguage = "zh"\n')
    world.write("README.md", "half-written\n")
    world.write("claims/eai.toml", "# staged\n")
    world.git("add", "claims/eai.toml")
    world.write(PAGE, page("| new |", intro="A person is writing here."))
    world.write("verdicts/eai.json", '{"system": "eai", "verdicts": [1]}\n')
    before = fingerprint(world)
    report = world.sync()
    assert fingerprint(world) == before
    assert world.changed() == {PAGE, "verdicts/eai.json"}
    assert "Introduction by a person." in world.show(PAGE), "text outside the block is the person's to commit"
    assert "| new |" in world.show(PAGE)
    assert {entry["path"] for entry in report["yours"]} == {"kb.toml", "README.md", PAGE, "claims/eai.toml"}
    assert not (world.here / "ran").exists()


def test_kb_sync_07_chinese_names_deleted_and_renamed(nested: World):
    """Remote has the deletion and the rename; a second run makes no commit."""
    nested.push_edit(
        {
            "inbox/jay/2026-06-10-推理 引擎.md": "# 一\n",
            "inbox/jay/2026-06-11-显存.md": "# 二\n",
            "published/缓存/笔记.md": "# 三\n",
        }
    )
    nested.pull(nested.here)
    (nested.base / "inbox/jay/2026-06-11-显存.md").unlink()
    (nested.base / "review/jay").mkdir(parents=True)
    nested.git(
        "mv",
        nested.prefix + "inbox/jay/2026-06-10-推理 引擎.md",
        nested.prefix + "review/jay/2026-06-10-推理 引擎.md",
    )
    (nested.base / "published/缓存/笔记.md").rename(nested.base / "published/缓存/记.md")
    nested.sync()
    files = nested.files()
    assert {"review/jay/2026-06-10-推理 引擎.md", "published/缓存/记.md"} <= files
    assert not files & {
        "inbox/jay/2026-06-10-推理 引擎.md",
        "inbox/jay/2026-06-11-显存.md",
        "published/缓存/笔记.md",
    }
    assert nested.show("review/jay/2026-06-10-推理 引擎.md") == "# 一\n"
    commits = nested.count()
    assert nested.sync()["plan"] == []
    assert nested.count() == commits


def test_kb_sync_07b_the_same_change_again_after_the_branch_moved_on(nested: World):
    """What was carried is not carried twice, and a person's later text wins over the file that still lies here."""
    nested.write("inbox/jay/2026-06-12-新.md", "# 草稿\n")
    nested.sync()
    nested.push_edit({"inbox/jay/2026-06-12-新.md": "# 草稿，改过\n"})
    report = nested.sync()
    assert report["plan"] == []
    assert nested.show("inbox/jay/2026-06-12-新.md") == "# 草稿，改过\n"
    assert report["behind"] == 1
    assert BLOCK in nested.show(PAGE)
