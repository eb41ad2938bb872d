"""`kb ingest --file`: a curator's draft becomes records, and nothing that the draft does not say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kb.draft import read_draft
from kb.starter import make_base
from kb.store import Base

DRAFTS = Path(__file__).parent / "drafts"
FIRST = DRAFTS / "2026-03-04-cache-notes.txt"
SECOND = DRAFTS / "2026-03-09-evening-brief.txt"
ENGLISH = DRAFTS / "weekly-digest.md"


def files_of(base):
    """Every tracked file with its bytes."""
    every = (
        p for p in base.root.rglob("*") if p.is_file() and ".kb" not in p.parts and ".git" not in p.parts
    )
    return {base.relative(p): p.read_bytes() for p in every}


def entry(base, draft, n):
    record, _ = read_draft(base.draft_path(draft))
    return next(e for e in record.entries if e.n == n)


def test_every_entry_becomes_a_record_and_the_bytes_are_kept(kb, base):
    """KB-STAGES-01."""
    answer = kb("ingest", "--file", FIRST, "--json")
    assert answer.code == 0, answer.err
    (draft,) = answer.json["drafts"]
    assert (draft["path"], draft["entries"], draft["candidates"]) == (
        "inbox/mei/2026-03-04-cache-notes.md",
        5,
        2,
    )
    assert len(answer.json["items"]["new"]) == 5
    assert answer.json["items"]["updated"] == []
    original = base.root / "inbox/mei/2026-03-04-cache-notes.orig"
    assert original.read_bytes() == FIRST.read_bytes()
    assert not list((base.root / "review").rglob("*.md"))


def test_a_second_run_changes_nothing_not_even_what_a_reviewer_changed(kb, base):
    """KB-STAGES-02."""
    kb("ingest", "--file", FIRST)
    path = base.draft_path("mei/2026-03-04-cache-notes")
    path.write_text(path.read_text().replace("数据完整", "数据完整（已核对）"))
    before = files_of(base)
    again = kb("ingest", "--file", FIRST, "--json")
    assert again.code == 0
    assert again.json["items"] == {"new": [], "updated": []}
    assert again.json["sources"][0]["known"] == 5
    assert files_of(base) == before


def test_a_second_version_joins_the_first_and_replaces_nothing(kb, base):
    """KB-STAGES-07."""
    kb("ingest", "--file", FIRST)
    second = kb("ingest", "--file", SECOND, "--json").json
    assert second["items"]["updated"] == ["arxiv:2601.00011"]
    assert sorted(base.latest_items()["arxiv:2601.00011"]) == ["1", "2"]
    assert entry(base, "mei/2026-03-04-cache-notes", "1").version == 1
    assert entry(base, "mei/2026-03-09-evening-brief", "1.1").version == 2


def test_two_processes_at_once_write_the_draft_once(base):
    """KB-STAGES-09."""
    command = [sys.executable, "-m", "kb", "ingest", "--json", "--file", str(FIRST)]
    if not (Path(__file__).resolve().parents[2] / "kb/__main__.py").is_file():
        command[1:3] = ["-c", "from kb.cli import main; main()"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(os.environ)) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert sorted(len(a["items"]["new"]) for a in answers) == [0, 5]
    assert sorted(a["sources"][0]["known"] for a in answers) == [0, 5]
    assert len(list((base.root / "inbox").rglob("*.md"))) == 1


@pytest.mark.parametrize(
    ("n", "item", "decision", "stars", "action"),
    [
        pytest.param("1", "arxiv:2601.00011", "keep", 5, "read", id="keycap-with-arxiv-id"),
        pytest.param("2", "url:blog.example.com/beta", "keep", 4, "review", id="tracking-parameter-dropped"),
        pytest.param("3", "url:docs.example.org/gamma", "keep", 3, "adopt", id="filed-directly-is-adopt"),
        pytest.param("10", "url:delta.example.net/blog/0.3", "watch", 3, "follow", id="downgraded-is-watch"),
        pytest.param(
            "10+1", "url:epsilon.example.io/compare", "drop", 2, None, id="ten-plus-one-without-action"
        ),
    ],
)
def test_what_an_entry_says(kb, base, n, item, decision, stars, action):
    kb("ingest", "--file", FIRST)
    found = entry(base, "mei/2026-03-04-cache-notes", n)
    assert (found.item, found.decision, found.stars, found.action) == (item, decision, stars, action)
    assert found.credibility is None


@pytest.mark.parametrize(
    ("n", "item", "credibility", "action", "topics"),
    [
        pytest.param("1.1", "arxiv:2601.00011", 4, "read", ("inference/kvcache",), id="flattened-fields"),
        pytest.param(
            "1.2",
            "url:theta.example/blog/serving-benchmarks-2026",
            None,
            "review",
            (),
            id="reference-by-name",
        ),
        pytest.param(
            "2.1", "draft:mei/2026-03-09-evening-brief#2.1", None, None, (), id="no-address-no-work"
        ),
        pytest.param(
            "2.2",
            "url:kappa.example/blog/context-layers",
            None,
            "read",
            ("database/graphs",),
            id="advice-list",
        ),
    ],
)
def test_what_a_flattened_entry_says(kb, base, n, item, credibility, action, topics):
    kb("ingest", "--file", SECOND)
    found = entry(base, "mei/2026-03-09-evening-brief", n)
    assert (found.item, found.credibility, found.action) == (item, credibility, action)
    assert found.decision is None
    assert set(topics) <= set(found.topics)


def test_candidates_keep_their_reasons_and_are_no_items(kb, base):
    kb("ingest", "--file", FIRST)
    record, _ = read_draft(base.draft_path("mei/2026-03-04-cache-notes"))
    assert [(c.title, c.reason) for c in record.candidates] == [
        ("Zeta Reel", "内容极短，仅引流"),
        ("Eta · 周报", "只是罗列，没有分析"),
    ]
    assert len(base.latest_items()) == 5


def test_the_curators_decision_is_kept_with_its_reason(kb, base):
    kb("ingest", "--file", FIRST)
    said = {a.draft.rpartition("#")[2]: (a.by, a.decision, a.reason) for a in base.assessments()}
    assert said["1"] == ("mei", "keep", "数据完整")
    assert said["10"] == ("mei", "watch", "没有基线")


def test_broken_shapes_are_mended_and_listed_with_their_lines(kb, base):
    report = kb("ingest", "--file", SECOND, "--json").json["drafts"][0]
    body = base.draft_path("mei/2026-03-09-evening-brief").read_text()
    assert "| 512 | 80% | 0.9 s |\n| 1024 | 90% | 0.7 s |" in body
    assert (
        "\n- 命中率：从 50% 升到 80%\n- 方案分三步：\n    1. 预留：固定占用\n    2. 分页：按头聚类\n" in body
    )
    assert [u["line"] for u in report["unreadable"]] == [13, 15]
    assert all("torn" in u["why"] for u in report["unreadable"])


def test_code_on_one_line_stays_code_and_is_reported(kb, base):
    report = kb("ingest", "--file", FIRST, "--json").json["drafts"][0]
    body = base.draft_path("mei/2026-03-04-cache-notes").read_text()
    assert "```bash\n# 第一步 export GAMMA=1\n\n# 第二步 gamma serve\n```" in body
    assert "```python\n# 例子 run(shm=True)\n```" in body
    lines = FIRST.read_text().splitlines()
    assert [lines[u["line"] - 1][:5] for u in report["unreadable"]] == ["两步配置：", "共享内存："]


def test_one_heading_per_entry_and_no_element_from_outside(kb, base):
    kb("ingest", "--file", FIRST, "--file", SECOND, "--file", ENGLISH)
    for path in (base.root / "inbox").rglob("*.md"):
        record, body = read_draft(path)
        heads = [
            line.split(" · ")[0][3:] for line in body.splitlines() if line.startswith("## ") and " · " in line
        ]
        assert [h for h in heads if h[0].isdigit()] == [e.n for e in record.entries]
        assert "<script>" not in body


def test_an_english_draft_with_front_matter(kb, base):
    answer = kb("ingest", "--file", ENGLISH, "--json")
    assert answer.code == 0, answer.err
    name = "sam-poe/2026-03-10-weekly-digest"
    first, second = (entry(base, name, n) for n in "12")
    assert (first.item, first.version, first.stars, first.credibility) == ("arxiv:2602.01234", 3, 4, 5)
    assert (first.decision, first.action) == ("keep", "read")
    assert (second.item, second.stars, second.decision) == ("url:mu.example.com/posts/production", 3, "watch")
    assert answer.json["drafts"][0]["candidates"] == 2


def test_same_day_and_name_with_other_bytes_gets_a_number(kb, base, tmp_path):
    (tmp_path / "x").mkdir()
    other = tmp_path / "x" / FIRST.name
    other.write_text(FIRST.read_text() + "\n补充一行。\n")
    kb("ingest", "--file", FIRST)
    assert kb("ingest", "--file", other, "--json").json["drafts"][0]["path"].endswith("cache-notes-2.md")
    assert kb("ingest", "--file", other, "--json").json["items"]["new"] == []


def test_a_known_draft_is_known_wherever_it_stands(kb, base):
    kb("ingest", "--file", FIRST)
    kb("move", "mei/2026-03-04-cache-notes", "--to", "review", "--reason", "looks right")
    again = kb("ingest", "--file", FIRST, "--json").json
    assert again["drafts"][0]["path"] == "review/mei/2026-03-04-cache-notes.md"
    assert not base.draft_path("mei/2026-03-04-cache-notes").exists()


PLAIN = "1️⃣ Title（⭐⭐⭐ x）\n\n  • 链接：https://a.example/b\n"


def test_curator_and_day_come_from_the_options_where_the_text_is_silent(kb, base, tmp_path):
    path = tmp_path / "draft.txt"
    path.write_text(PLAIN)
    before = files_of(base)
    assert kb("ingest", "--file", path).code == 2
    assert files_of(base) == before
    assert (
        kb("ingest", "--file", path, "--curator", "Ann", "--date", "2026-03-05", "--slug", "first").code == 0
    )
    assert base.draft_path("ann/2026-03-05-first").is_file()


def test_an_option_never_overrules_the_text(kb, base):
    answer = kb("ingest", "--file", FIRST, "--curator", "bob")
    assert "the text says Mei" in answer.err
    assert base.draft_path("mei/2026-03-04-cache-notes").is_file()


HEAD = "Mei 2026-03-04\n\n"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        pytest.param("empty.txt", b"", "empty", id="empty"),
        pytest.param("blank.txt", b"\n \n\t\n", "empty", id="only-white-space"),
        pytest.param("binary.txt", bytes(range(256)) * 8, "binary", id="binary"),
        pytest.param("latin.txt", (HEAD + PLAIN).encode() + b"caf\xe9", "UTF-8", id="not-utf-8"),
        pytest.param(
            "control.txt", (HEAD + "a\x1b[2Jb\n" + PLAIN).encode(), "U+001B", id="control-character"
        ),
        pytest.param(
            "yaml.md", b"---\nkb: [draft\n---\n" + (HEAD + PLAIN).encode(), "YAML", id="front-matter-no-yaml"
        ),
        pytest.param(
            "list.md", b"---\n- a\n---\n" + (HEAD + PLAIN).encode(), "mapping", id="front-matter-a-list"
        ),
        pytest.param("open.md", b"---\ncurator: x\n", "never ends", id="front-matter-never-ends"),
        pytest.param(
            "bomb.md",
            b"---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n---\n"
            + PLAIN.encode(),
            "aliases",
            id="yaml-bomb",
        ),
    ],
)
def test_bad_input_is_refused_by_name_and_changes_nothing(kb, base, tmp_path, name, data, says):
    path = tmp_path / name
    path.write_bytes(data)
    before = files_of(base)
    answer = kb("ingest", "--file", path, "--curator", "a", "--date", "2026-01-01")
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert name in answer.err
    assert files_of(base) == before


def test_fifty_megabytes_are_refused_unread(kb, base, tmp_path):
    path = tmp_path / "huge.txt"
    with path.open("wb") as out:
        out.truncate(50_000_000)
    before = files_of(base)
    answer = kb("ingest", "--file", path)
    assert answer.code == 2
    assert "50,000,000" in answer.err
    assert files_of(base) == before


def test_a_symbolic_link_and_a_missing_file_are_refused(kb, base, tmp_path):
    (tmp_path / "link.txt").symlink_to(FIRST)
    assert "symbolic link" in kb("ingest", "--file", tmp_path / "link.txt").err
    assert kb("ingest", "--file", tmp_path / "nowhere.txt").code == 2
    assert kb("ingest", "--file", tmp_path).code == 2


def test_one_bad_file_of_several_stops_no_other(kb, base, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"\0")
    answer = kb("ingest", "--file", tmp_path / "bad.txt", "--file", FIRST, "--json")
    assert answer.code == 2
    assert len(answer.json["drafts"]) == 1
    assert base.draft_path("mei/2026-03-04-cache-notes").is_file()


@pytest.mark.parametrize(
    "given", [("--date", "2026-02-30"), ("--date", "yesterday"), ("--slug", "../x"), ("--slug", "A b")]
)
def test_a_malformed_option_is_refused(kb, base, given):
    before = files_of(base)
    assert kb("ingest", "--file", FIRST, *given).code == 2
    assert files_of(base) == before


def test_a_dry_run_says_the_same_and_writes_nothing(kb, base):
    before = files_of(base)
    planned = kb("ingest", "--file", FIRST, "--dry-run", "--json").json
    assert files_of(base) == before
    assert kb("ingest", "--file", FIRST, "--json").json == planned


def test_a_killed_run_is_completed_by_the_next_to_the_same_bytes(kb, base, monkeypatch, tmp_path_factory):
    """Whatever prefix of the writes happened, a rerun ends where an undisturbed run ends."""
    kb("ingest", "--file", FIRST)
    whole = files_of(base)
    for keep in range(1, 4):
        fresh = Base(tmp_path_factory.mktemp("again") / "base")
        make_base(fresh.root, "en")
        names = ["inbox/mei/2026-03-04-cache-notes.orig", "items/2026-07.jsonl", "assessments/2026-07.jsonl"][
            :keep
        ]
        for i, name in enumerate(names):
            (fresh.root / name).parent.mkdir(parents=True, exist_ok=True)
            cut = len(whole[name]) // 2 if i == keep - 1 and name.endswith("jsonl") else len(whole[name])
            (fresh.root / name).write_bytes(whole[name][:cut])
        monkeypatch.setenv("KB_ROOT", str(fresh.root))
        assert kb("ingest", "--file", FIRST).code == 0
        assert files_of(fresh) == whole


def test_the_seed_drafts(kb, base, shared):
    """Issue 2, “It shows”: 11 entries and 5 candidates, 14 entries, one work with two versions, seven arXiv ids."""
    subprocess.run(["git", "init", "-q", base.root], check=True)
    seeds = sorted((shared / "seeds").glob("*.txt"))
    first, second = (kb("ingest", "--file", path, "--json").json for path in seeds)
    assert (first["drafts"][0]["entries"], first["drafts"][0]["candidates"]) == (11, 5)
    assert second["drafts"][0]["entries"] == 14
    assert second["items"]["updated"] == ["arxiv:2606.06302"]
    assert sorted(base.latest_items()["arxiv:2606.06302"]) == ["1", "2"]
    record, _ = read_draft(base.root / second["drafts"][0]["path"])
    assert len({e.item for e in record.entries if e.item.startswith("arxiv:")}) == 7
    assert record.entries[5].item == "draft:jay/2026-07-02-inference-systems-brief#2.4"
    for command in (["add", "-A"], ["commit", "-qm", "in"]):
        subprocess.run(["git", "-C", base.root, *command], check=True)
    assert kb("ingest", "--file", seeds[0], "--file", seeds[1], "--json").json["items"]["new"] == []
    status = subprocess.run(
        ["git", "-C", base.root, "status", "--porcelain"], check=True, capture_output=True
    )
    assert status.stdout == b""


def test_the_seed_drafts_say_what_the_curator_decided(kb, base, shared):
    """Labels taken from the drafts by hand: decision, stars, credibility and action of all 25 entries."""
    seeds = sorted((shared / "seeds").glob("*.txt"))
    kb("ingest", "--file", seeds[0], "--file", seeds[1])
    names = {
        "2026-06-10": "jay/2026-06-10-inference-kv-serve-supplement",
        "2026-07-02": "jay/2026-07-02-inference-systems-brief",
    }
    rows = [line.split("\t") for line in (shared / "cases/metadata_labels.tsv").read_text().splitlines()[1:]]
    for draft, n, decision, stars, credibility, action, *_ in rows:
        if n.startswith("c"):
            continue
        found = entry(base, names[draft], "10+1" if n == "11" else n)
        said = (
            found.decision or "none",
            str(found.stars),
            str(found.credibility or ""),
            found.action or "none",
        )
        assert said == (decision, stars, credibility, action), (draft, n)
