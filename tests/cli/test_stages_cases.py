"""Ingest and move together: the stages' cases that need both, on a draft of ours in the shape curators write."""

import multiprocessing
import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/2026-06-12-kv-notes.txt"
DRAFT = "lin/2026-06-12-kv-notes"
SPAWN = multiprocessing.get_context("spawn")


def tree(root):
    return {
        p.relative_to(root).as_posix(): p.read_bytes()
        for p in root.rglob("*")
        if p.is_file() and ".kb" not in p.parts
    }


def test_every_entry_is_a_record_and_the_bytes_stay(base, kb):
    """KB-STAGES-01"""
    before = set(tree(base.root))
    ended = kb("ingest", "--file", EXAMPLE, "--json")
    assert ended.code == 0
    assert len(ended.json["items"]["new"]) == 3
    assert ended.json["sources"][0]["known"] == 0
    added = set(tree(base.root)) - before
    assert {name.partition("/")[0] for name in added} == {"inbox", "items", "assessments"}
    originals = [name for name in added if name.endswith(".orig")]
    assert [tree(base.root)[name] for name in originals] == [EXAMPLE.read_bytes()]


def test_a_second_time_changes_nothing_but_what_the_reviewer_did(base, kb):
    """KB-STAGES-02"""
    kb("ingest", "--file", EXAMPLE)
    path = base.root / f"inbox/{DRAFT}.md"
    path.write_text(path.read_text().replace("重点", "重点（我看过了）"))
    before = tree(base.root)
    ended = kb("ingest", "--file", EXAMPLE, "--json")
    assert (ended.code, ended.json["items"]["new"]) == (0, [])
    assert ended.json["sources"][0]["known"] == 3
    assert tree(base.root) == before


def ingest_once(root, start, answers):
    import contextlib
    import io
    import json
    import os

    os.environ |= {"KB_ROOT": str(root), "KB_NOW": "2026-07-02T03:05:00Z"}
    from kb.cli.root import run

    start.wait(30)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = run(["ingest", "--file", str(EXAMPLE), "--json"])
    answers.put((code, len(json.loads(out.getvalue())["items"]["new"])))


def test_two_processes_at_once_leave_each_record_once(base, kb):
    """KB-STAGES-09"""
    start, answers = SPAWN.Barrier(2), SPAWN.Queue()
    both = [SPAWN.Process(target=ingest_once, args=(base.root, start, answers)) for _ in range(2)]
    for process in both:
        process.start()
    got = sorted(answers.get(timeout=60) for _ in both)
    for process in both:
        process.join()
    assert got == [(0, 0), (0, 3)]
    assert len(kb("query", "select id from versions", "--json").json) == 3


def test_moving_a_draft_moves_the_stage_of_its_items(base, kb):
    kb("ingest", "--file", EXAMPLE)
    kb("move", DRAFT, "--to", "review", "--reason", "x")
    kb("move", f"{DRAFT}#2", "--to", "published", "--reason", "the others can wait")
    stages = {row["id"]: row["stage"] for row in kb("list", "items", "--json", "--fields", "id,stage").json}
    assert stages["arxiv:2606.06302"] == "published"
    assert stages["arxiv:2605.11186"] == "review"
    assert kb("move", DRAFT, "--to", "inbox", "--reason", "x").code == 0
    assert not list((base.root / "review").rglob("*.*"))


def test_a_draft_that_was_moved_is_not_taken_in_again(base, kb):
    kb("ingest", "--file", EXAMPLE)
    kb("move", DRAFT, "--to", "review", "--reason", "x")
    before = tree(base.root)
    assert kb("ingest", "--file", EXAMPLE, "--json").json["items"]["new"] == []
    assert tree(base.root) == before


@pytest.mark.parametrize("by", ["kb-move", "git-mv"])
def test_a_draft_may_be_moved_by_hand(base, kb, by):
    """A folder is a state: what `git mv` did counts as much as `kb move`."""
    kb("ingest", "--file", EXAMPLE)
    if by == "kb-move":
        kb("move", DRAFT, "--to", "review", "--reason", "x")
    else:
        shutil.move(base.root / "inbox", base.root / "review")
    assert {row["stage"] for row in kb("list", "items", "--json").json} == {"review"}
    assert kb("move", DRAFT, "--to", "review", "--reason", "x").code == 0
