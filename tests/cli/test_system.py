"""What the operating system refuses is an error a person can act on, and a name cannot steer a terminal."""

import os
import resource
import shutil
import subprocess
import sys

import pytest

KB = [sys.executable, "-c", "import sys; from kb.cli import main; sys.exit(main())"]


@pytest.fixture
def clone(base):
    subprocess.run(["git", "-C", base.root, "init", "--quiet", "--initial-branch=main"], check=True)
    subprocess.run(["git", "-C", base.root, "add", "--all"], check=True)
    subprocess.run(["git", "-C", base.root, "commit", "--quiet", "-m", "start"], check=True)
    remote = base.root.parent / "remote.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", base.root, remote], check=True)
    subprocess.run(["git", "-C", base.root, "remote", "add", "origin", remote], check=True)
    return base


def test_a_file_where_the_cache_belongs(clone, kb):
    """Exit 5 with the path and what helps; no trace, because it is no bug of the program."""
    shutil.rmtree(clone.root / ".kb")
    (clone.root / ".kb").write_text("a file\n", encoding="utf-8")
    done = kb("sync", "--once")
    assert done.code == 5
    assert "not a directory" in done.err
    assert "remedy: run it again after moving away the file" in done.err
    assert (clone.root / ".kb").read_text(encoding="utf-8") == "a file\n"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(base, kb):
    (base.root / "log").chmod(0o500)
    assert kb("init", base.root / "log/other").code == 5


def test_a_full_disk_is_said(base, tmp_path):
    """A file-size limit stands in for the disk: the write fails the same way, and nothing half-written stays."""
    item = tmp_path / "brief.md"
    item.write_text("# x\n" + "A line of the draft.\n" * 5_000, encoding="utf-8")
    before = {p: p.read_bytes() for p in base.root.rglob("*") if p.is_file()}
    done = subprocess.run(
        [*KB, "-C", base.root, "init", tmp_path / "new"], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
    )  # fmt: skip
    assert done.returncode not in {0, 70}, done.stderr
    assert "Traceback" not in done.stderr
    assert {p: p.read_bytes() for p in base.root.rglob("*") if p.is_file()} == before


def test_names_cannot_steer_the_terminal(clone, kb):
    """Control characters of a file name reach neither stdout nor stderr, and a name cannot start a line of its own."""
    folder = clone.root / "inbox/jay"
    folder.mkdir(parents=True)
    (folder / "2026-07-01-\x1b[31mred\npushed 9 paths.md").write_text("# x\n", encoding="utf-8")
    done = kb("sync", "--once")
    assert "\x1b" not in done.out + done.err
    assert not [line for line in done.out.splitlines() if line.startswith("pushed 9")]
    assert "\x1b" not in kb("queue", "list").out
