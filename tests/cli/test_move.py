"""`kb move`: a folder is a state, review cannot be skipped, every move is one line of the log."""

import pytest

from kb.model import Interval, Stated, Verdict
from kb.stages import move
from kb.store import Base
from tests.records import draft_text, put_draft

DRAFT = "jay/2026-06-10-kv"
TEXT = draft_text(("1", "arxiv:2606.06302"), ("2", "arxiv:2605.18825"), ("10+1", "url:lmcache.ai"))


def stages_of(base):
    return [d["id"] + "@" + d["stage"] for d in __import__("kb.tables").tables.read_table(base, "drafts")]


@pytest.fixture
def in_inbox(base):
    path = put_draft(base, DRAFT, TEXT)
    path.with_suffix(".orig").write_bytes(b"\xffuntouched")
    return base


def test_review_cannot_be_skipped(in_inbox, kb):
    """KB-STAGES-03"""
    before = sorted(p for p in in_inbox.root.rglob("*") if p.is_file())
    ended = kb("move", DRAFT, "--to", "published", "--reason", "x")
    assert ended.code == 3
    assert "review" in ended.err
    assert sorted(p for p in in_inbox.root.rglob("*") if p.is_file()) == before
    assert in_inbox.log() == []


def test_each_move_is_one_numbered_line_and_an_identical_one_is_none(in_inbox, kb):
    """KB-STAGES-05"""
    for stage in ("review", "inbox", "review"):
        assert kb("move", DRAFT, "--to", stage, "--reason", "because").code == 0
    again = kb("move", DRAFT, "--to", "review", "--reason", "because")
    assert again.code == 0
    assert [(e.seq, e.from_, e.to) for e in in_inbox.log()] == [
        (1, "inbox", "review"),
        (2, "review", "inbox"),
        (3, "inbox", "review"),
    ]


def test_the_untouched_bytes_move_along(in_inbox, kb):
    kb("move", DRAFT, "--to", "review", "--reason", "x")
    kb("move", DRAFT, "--to", "published", "--reason", "x")
    assert (in_inbox.root / "published/drafts/2026-06-10-kv.md").read_text() == TEXT
    assert (in_inbox.root / "published/drafts/2026-06-10-kv.orig").read_bytes() == b"\xffuntouched"
    assert not list((in_inbox.root / "inbox/jay").iterdir())


def test_an_entry_is_taken_out_into_a_draft_of_its_own(in_inbox, kb):
    rows = kb("move", f"{DRAFT}#2", "--to", "review", "--reason", "x", "--json").json
    assert rows[0]["draft"] == f"{DRAFT}-2"
    entries = kb("query", "select id, stage from entries order by id", "--json").json
    assert entries == [
        {"id": f"{DRAFT}#1", "stage": "inbox"},
        {"id": f"{DRAFT}#10+1", "stage": "inbox"},
        {"id": f"{DRAFT}-2#2", "stage": "review"},
    ]
    rest = (in_inbox.root / f"inbox/{DRAFT}.md").read_text()
    cut = '  - {n: "2", item: "arxiv:2605.18825", decision: keep, stars: 4}\n'
    section = "## 2 · about arxiv:2605.18825\n\nwhat it says\n\n"
    assert rest == TEXT.replace(cut, "").replace(section, "")
    assert section in (in_inbox.root / f"review/{DRAFT}-2.md").read_text()


def test_an_entry_keeps_its_old_id_after_it_was_taken_out(in_inbox, kb):
    kb("move", f"{DRAFT}#10+1", "--to", "review", "--reason", "x")
    assert kb("move", f"{DRAFT}#10+1", "--to", "review", "--reason", "x").code == 0
    assert kb("move", f"{DRAFT}#10+1", "--to", "published", "--reason", "x").code == 0
    assert (in_inbox.root / "published/drafts/2026-06-10-kv-10-1.md").is_file()
    assert [e.seq for e in in_inbox.log()] == [1, 2]


def test_all_ids_move_or_none_does(in_inbox, kb):
    put_draft(in_inbox, "jay/2026-06-11-other", draft_text(("1", "arxiv:2606.00001")), "review")
    ended = kb("move", "2026-06-11-other", DRAFT, "--to", "published", "--reason", "x")
    assert ended.code == 3
    assert stages_of(in_inbox) == [f"{DRAFT}@inbox", "jay/2026-06-11-other@review"]


def test_dry_run_changes_nothing(in_inbox, kb):
    rows = kb("move", DRAFT, "--to", "review", "--reason", "x", "--dry-run", "--json").json
    assert rows[0]["path"] == f"review/{DRAFT}.md"
    assert stages_of(in_inbox) == [f"{DRAFT}@inbox"]


def test_two_curators_may_have_accepted_drafts_of_one_name(in_inbox, kb):
    other = "ann/2026-06-10-kv"
    put_draft(in_inbox, other, draft_text(("1", "arxiv:2606.00001"), curator="ann"), "review")
    kb("move", DRAFT, "--to", "review", "--reason", "x")
    for name in (DRAFT, other):
        assert kb("move", name, "--to", "published", "--reason", "x").code == 0
    assert stages_of(in_inbox) == [f"{other}@published", f"{DRAFT}@published"]
    assert kb("move", other, "--to", "review", "--reason", "x").code == 0
    assert stages_of(in_inbox) == [f"{other}@review", f"{DRAFT}@published"]


def test_what_our_numbers_contradict_is_published_only_with_a_reason(in_inbox, kb):
    claim = '[[claim]]\nid = "tangram/x"\nitem = "arxiv:2606.06302"\nprovenance = "primary"\nstatement = {zh = "快", en = "fast"}\nlow = 2.0\nhigh = 2.6\nunit = "ratio"\n'
    in_inbox.write(in_inbox.root / "claims/tangram.toml", claim)
    said = Stated(low=2.0, high=2.6, unit="ratio")
    ours = Interval(low=1.0, value=1.1, high=1.2, n=30, unit="ratio")
    against = Verdict(
        claim="tangram/x",
        verdict="contradicted",
        level="simulated",
        source=said,
        measured=ours,
        reason="slower",
    )
    in_inbox.write_verdicts("tangram", [against])
    kb("move", DRAFT, "--to", "review", "--reason", "x")
    for blank in ([], ["--reason", "  "]):
        ended = kb("move", DRAFT, "--to", "published", *blank)
        assert ended.code == 3
        assert "our numbers contradict tangram/x" in ended.err
    assert kb("move", f"{DRAFT}#2", "--to", "published").code == 2, "its work is not contradicted, but why?"
    assert stages_of(in_inbox) == [f"{DRAFT}@review"]
    ended = kb("move", DRAFT, "--to", "published", "--reason", "the design is worth reading")
    assert ended.code == 0
    assert "tangram/x" in ended.err
    assert in_inbox.log()[-1].reason == "the design is worth reading"


@pytest.mark.parametrize("stage", ["review", "inbox", "dropped"])
def test_no_move_goes_without_a_reason(in_inbox, kb, stage):
    kb("move", DRAFT, "--to", "review", "--reason", "x")
    here = stages_of(in_inbox)
    ended = kb("move", DRAFT, "--to", stage)
    assert (ended.code, stages_of(in_inbox)) == (0 if stage == "review" else 2, here)


def test_an_address_that_told_of_a_withdrawn_draft_is_given_to_no_other(in_inbox, kb):
    other = "ann/2026-06-10-kv"
    put_draft(in_inbox, other, draft_text(("1", "arxiv:2606.00001"), curator="ann"), "review")
    for stage in ("review", "published", "review"):
        kb("move", DRAFT, "--to", stage, "--reason", "x")
    row = kb("move", other, "--to", "published", "--reason", "x", "--json").json[0]
    assert row["path"] == f"published/drafts/{other}.md"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("jay/2026-06-10-nothing", 2, id="a-draft-that-is-not-there"),
        pytest.param(f"{DRAFT}#7", 2, id="an-entry-that-is-not-there"),
        pytest.param("../../etc/passwd", 2, id="a-path-out-of-the-base"),
    ],
)
def test_an_id_that_matches_nothing_ends_with_2(in_inbox, kb, name, code):
    ended = kb("move", name, "--to", "review", "--reason", "x")
    assert (ended.code, "try: kb" in ended.err) == (code, True)


def test_a_stage_folder_that_leads_out_of_the_base_is_refused(in_inbox, kb, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (in_inbox.root / "review").symlink_to(tmp_path / "elsewhere")
    assert kb("move", DRAFT, "--to", "review", "--reason", "x").code == 2
    assert not any((tmp_path / "elsewhere").rglob("*.md"))


@pytest.mark.parametrize("after", ["the-log-line", "the-new-draft"])
def test_a_move_that_was_killed_is_completed_by_the_same_command(in_inbox, kb, monkeypatch, after):
    """The same files and the same single log line as a move that nobody disturbed."""
    killed = Base(in_inbox.root)

    def die(*_):
        raise KeyboardInterrupt

    written = killed.write

    def die_after_first(path, data):
        written(path, data)
        die()

    monkeypatch.setattr(killed, "write", die if after == "the-log-line" else die_after_first)
    wanted = {"reason": "x", "who": "a", "at": "2026-07-02T03:05:00Z"}
    with pytest.raises(KeyboardInterrupt):
        move(killed, f"{DRAFT}#2", "review", **wanted)
    assert move(in_inbox, f"{DRAFT}#2", "review", **wanted).seq == 1
    assert [e.seq for e in in_inbox.log()] == [1]
    assert (in_inbox.root / f"review/{DRAFT}-2.md").is_file()
    assert '"2"' not in (in_inbox.root / f"inbox/{DRAFT}.md").read_text()


@pytest.mark.parametrize(
    "front",
    [
        pytest.param(
            'entries: [{n: "1", item: "a:1"}, {n: "2", item: "a:2"}, {n: "3", item: "a:3"}]', id="flow"
        ),
        pytest.param(
            'entries:\n- n: "1"\n  item: "a:1"\n- n: "2"\n  item: "a:2"\n- n: "3"\n  item: "a:3"', id="block"
        ),
        pytest.param(
            'entries:\n  - n: "1"\n    item: "a:1"\n\n  # mine\n  - n: "2"\n    item: "a:2"\n  - {n: "3", item: "a:3"}',
            id="mixed-with-a-comment",
        ),
    ],
)
@pytest.mark.parametrize("entry", ["1", "2", "3"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_any_way_to_write_yaml_loses_only_the_entry(front, entry, newline):
    from kb.draft import split_front_matter
    from kb.stages import split_entry

    body = "".join(f"## {n} · t\n\n```sh\n# no heading\n## 2 · nor this\n```\n\n" for n in "123")
    text = f'---\nkb: draft/1\ncurator: j\ndate: "2026-06-10"\n{front}\nmine: kept # so\n---\n{body}'
    text = text.replace("\n", newline)
    alone, rest = split_entry(text, entry, taken_from=f"j/x#{entry}")
    values, left = split_front_matter(rest, "rest")
    assert [e["n"] for e in values["entries"]] == [n for n in "123" if n != entry]
    assert "mine: kept # so" in rest
    assert left == "".join(
        f"## {n} · t\n\n```sh\n# no heading\n## 2 · nor this\n```\n\n" for n in "123" if n != entry
    ).replace("\n", newline)
    assert [e["n"] for e in split_front_matter(alone, "alone")[0]["entries"]] == [entry]
