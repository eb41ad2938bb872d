"""Ingest and move together: the stages' cases that need both, on a draft of ours in the shape curators write."""

import hashlib
import multiprocessing
import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/2026-06-12-kv-notes.txt"
DRAFT = "lin/2026-06-12-kv-notes"
SPAWN = multiprocessing.get_context("spawn")


def tree(root):
    return {
        p.relative_to(root).as_posix(): p.read_bytes()
        for p in root.rglob("*")
        if p.is_file() and not {".kb", ".git"} & set(p.parts)
    }


KEYCAPS = [f"{n}\ufe0f\u20e3" for n in range(1, 10)] + ["\U0001f51f", "\U0001f51f+1"]


def draft_of(*entries):
    """A curator's draft in the shape they write: ``(number, arXiv id with version, title)`` for each entry."""
    said = "".join(
        f"{number} {title} — arXiv:{work}（⭐⭐⭐⭐ 重点）\n\n  • 链接：https://arxiv.org/abs/{work}\n"
        f"  • 关键数据：\n  • 吞吐最高 2.6×\n  • 标签：arXiv KV压缩\n  • 建议动作：精读\n\n"
        for number, work, title in entries
    )
    return f"Jay 2026-06-10\n\n知识库草稿 · KV cache\n\n实例：Jay | 产出时间：2026-06-10 | 主题：KV cache\n\n一、高价值条目\n\n{said}"


ELEVEN = draft_of(*((keycap, f"2606.{n:05d}v1", f"Work {n}") for n, keycap in enumerate(KEYCAPS, 1)))


@pytest.fixture
def fresh(tmp_path, kb):
    """An empty root after ``kb init``, committed, and the draft of eleven entries beside it."""
    root = tmp_path / "a base"
    assert kb("init", root).code == 0
    git(root, "init", "-q")
    commit(root)
    (tmp_path / "draft.md").write_text(ELEVEN, encoding="utf-8")
    return root


def git(root, *args):
    return subprocess.run(["git", "-C", root, *args], check=True, capture_output=True, text=True).stdout


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "state")


def test_every_entry_is_a_record_and_the_bytes_stay(fresh, kb):
    """KB-STAGES-01"""
    before = tree(fresh)
    ended = kb("-C", fresh, "ingest", "--file", fresh.parent / "draft.md", "--json")
    assert ended.code == 0, ended.err
    assert (len(ended.json["items"]["new"]), ended.json["sources"][0]["known"]) == (11, 0)
    after = tree(fresh)
    added = set(after) - set(before)
    assert {name.partition("/")[0] for name in added} == {"inbox", "items", "assessments"}
    assert {name.split("/")[1] for name in added if name.startswith("inbox/")} == {"jay"}
    [original] = [name for name in added if name.endswith(".orig")]
    assert after[original] == ELEVEN.encode()
    assert hashlib.sha256(ELEVEN.encode()).hexdigest() in "".join(
        data.decode() for name, data in after.items() if name in added
    )
    rows = kb("-C", fresh, "query", "select n, stage from entries", "--json").json
    assert len(rows) == 11
    assert {row["stage"] for row in rows} == {"inbox"}


def test_a_second_time_changes_nothing_but_what_the_reviewer_did(fresh, kb):
    """KB-STAGES-02"""
    draft = fresh.parent / "draft.md"
    kb("-C", fresh, "ingest", "--file", draft)
    commit(fresh)
    [path] = (fresh / "inbox/jay").glob("*.md")
    path.write_text(path.read_text().replace("吞吐最高 2.6×", "吞吐最高 2.6×（我看过了）", 1))
    mine = git(fresh, "diff")
    ended = kb("-C", fresh, "ingest", "--file", draft, "--json")
    assert (ended.code, ended.json["items"]["new"]) == (0, [])
    assert ended.json["sources"][0]["known"] == 11
    assert git(fresh, "diff") == mine
    assert git(fresh, "status", "--porcelain", "--untracked-files=all").split() == [
        "M",
        str(path.relative_to(fresh)),
    ]
    changed = [line for line in mine.splitlines() if line[0] in "+-" and line[:3] not in {"+++", "---"}]
    assert len(changed) == 2, "one sentence of the reviewer, and nothing else"


def test_a_new_version_brings_its_claims_and_leaves_the_old_ones_where_they_were_read(fresh, kb):
    """KB-STAGES-07"""

    def claim(name, version):
        return f'[[claim]]\nid = "tangram/{name}"\nitem = "arxiv:2606.06302"\nversion = "{version}"\nprovenance = "primary"\nstatement = {{zh = "{name}", en = "{name}"}}\nmetric = "gain"\nunit = "ratio"\nlow = 2.0\nhigh = 2.6\nbound = "up-to"\n'

    def ingest(name, text):
        (fresh.parent / name).write_text(text, encoding="utf-8")
        assert kb("-C", fresh, "ingest", "--file", fresh.parent / name).code == 0

    ingest("first.md", draft_of(("1\ufe0f\u20e3", "2606.06302v1", "Tangram")))
    [draft] = [row["id"] for row in kb("-C", fresh, "list", "drafts", "--json").json]
    assert kb("-C", fresh, "move", draft, "--to", "review", "--reason", "x").code == 0
    claims = fresh / "claims/tangram.toml"
    claims.parent.mkdir(exist_ok=True)
    claims.write_text(claim("a", 1) + claim("b", 1))
    old = tree(fresh)
    second = draft_of(
        ("1\ufe0f\u20e3", "2606.06302v2", "Tangram"), ("2\ufe0f\u20e3", "2606.06303v1", "Other")
    )
    ingest("second.md", second.replace("2026-06-10", "2026-07-02"))
    claims.write_text(claims.read_text() + claim("c", 2) + claim("d", 2))
    versions = kb("-C", fresh, "query", "select id, version from versions order by all", "--json").json
    assert [row["version"] for row in versions if row["id"] == "arxiv:2606.06302"] == ["1", "2"]
    assert {name for name, data in old.items() if tree(fresh).get(name) != data} <= {
        "claims/tangram.toml",
        *(name for name in old if name.startswith(("items/", "assessments/"))),
    }, "the draft in review is as it was; journals only grow"
    assert all(tree(fresh)[name].startswith(data) for name, data in old.items() if name.endswith(".jsonl"))
    assert kb("-C", fresh, "publish").code == 0
    page = (fresh / "published/systems/tangram/index.md").read_text()
    superseded = [line for line in page.splitlines() if "v1" in line and "v2" in line]
    assert len(superseded) == 2, "a and b are told to be read in the version that v2 supersedes"
    told = {row["id"]: row["version"] for row in kb("-C", fresh, "list", "claims", "--json").json}
    assert told == {"tangram/a": "1", "tangram/b": "1", "tangram/c": "2", "tangram/d": "2"}


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
