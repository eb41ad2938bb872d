"""A run decides about what is new and drafts it once; a draft then belongs to its reviewer."""

import datetime as dt
import json
import os
import signal
import subprocess
import sys

import pytest

from kb.draft import read_draft, read_drafts
from kb.model import DateStamp
from kb.triage import journal
from kb.triage.run import run_triage

from .conftest import BAD, GOOD, make_item, tree


def test_every_item_gets_a_decision_with_the_words_that_led_to_it(shelf):
    shelf.append_items([make_item(**GOOD), make_item("url:hype.example/p", **BAD)])
    report = run_triage(shelf)
    decided = {one.item: one for one in shelf.assessments()}
    assert report.assessed == len(decided) == 2
    assert decided["arxiv:2607.00001"].decision == "keep"
    assert decided["url:hype.example/p"].decision == "drop"
    text = (GOOD["title"] + GOOD["summary"]).lower()
    words = [w for r in decided["arxiv:2607.00001"].rules if r.rule == "on-topic" for w in r.evidence]
    assert words
    assert all(word.lower() in text for word in words)


def test_a_second_run_changes_no_byte_even_later(shelf, monkeypatch):
    shelf.append_items([make_item(**GOOD), make_item("url:hype.example/p", **BAD)])
    run_triage(shelf)
    before = tree(shelf.root)
    monkeypatch.setenv("KB_NOW", "2026-07-09T00:00:00Z")
    assert run_triage(shelf).to_json()["drafts"] == []
    assert tree(shelf.root) == before


def test_deleting_the_cache_changes_nothing(shelf):
    import shutil

    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    before = tree(shelf.root)
    shutil.rmtree(shelf.cache)
    run_triage(shelf)
    assert tree(shelf.root) == before


def test_what_falls_below_is_listed_with_its_reason_in_a_draft(shelf):
    shelf.append_items([make_item(**GOOD), make_item("url:hype.example/p", **BAD)])
    run_triage(shelf)
    [(_, draft)] = read_drafts(shelf)
    assert [entry.item for entry in draft.entries] == ["arxiv:2607.00001"]
    [below] = draft.candidates
    assert below.title == BAD["title"]
    assert "marketing" in below.reason


def test_an_item_that_a_draft_holds_is_not_drafted_again(shelf):
    first, second, *_ = four_works()
    shelf.append_items([first])
    run_triage(shelf)
    shelf.append_items([second])
    run_triage(shelf)
    held = [entry.item for _, draft in read_drafts(shelf) for entry in draft.entries]
    assert sorted(held) == [first.id, second.id]


def test_a_second_draft_of_the_same_day_and_topic_gets_a_number(shelf):
    for number in range(1, 4):
        summary = f"{GOOD['summary']} Variant {number} differs: {'abcdefg'[number] * 40} pages."
        title = f"{'Ragged Paged Split'.split()[number - 1]} KV cache serving, part {number}"
        shelf.append_items(
            [make_item(f"arxiv:2607.0000{number}", title=title, summary=summary[::-1] + summary)]
        )
        run_triage(shelf)
    names = [found.id for found, _ in read_drafts(shelf)]
    assert "kb/2026-07-02-inference-kvcache" in names
    assert len(names) == len(set(names))


def test_a_reviewers_edit_survives_later_runs(shelf):
    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    [(found, _)] = read_drafts(shelf)
    found.path.write_text(found.path.read_text() + "\nNote of a reviewer.\n")
    edited = found.path.read_bytes()
    shelf.append_items([make_item("arxiv:2607.00009", **{**GOOD, "title": "Other pages of KV cache"})])
    run_triage(shelf)
    assert found.path.read_bytes() == edited


def test_a_dry_run_changes_no_byte_and_says_what_it_would_write(shelf):
    shelf.append_items([make_item(**GOOD)])
    before = {path: path.read_bytes() for path in shelf.root.rglob("*") if path.is_file()}
    [draft] = run_triage(shelf, dry_run=True).drafts
    assert {path: path.read_bytes() for path in shelf.root.rglob("*") if path.is_file()} == before
    run_triage(shelf)
    assert (shelf.root / draft["path"]).is_file()


def test_the_same_work_under_a_second_address_is_a_duplicate(shelf):
    copy = make_item(
        "url:mirror.example/kv", **GOOD, first_seen=DateStamp(at="2026-07-02T04:00:00Z", field="kb")
    )
    shelf.append_items([make_item(**GOOD), copy])
    report = run_triage(shelf)
    assert report.decided["duplicate"] == 1
    made = {one.item: one for one in shelf.assessments()}["url:mirror.example/kv"]
    assert made.duplicate_of == ("arxiv:2607.00001",)
    assert made.blocked_by == ("duplicate",)


def test_a_new_version_is_assessed_and_named_and_not_drafted_twice(shelf):
    shelf.append_items([make_item(**GOOD, version="1")])
    run_triage(shelf)
    other = make_item(
        "arxiv:2607.00002", title="Scheduling of KV cache pages in vLLM", summary=GOOD["summary"][::-1]
    )
    shelf.append_items([make_item(**GOOD, version="2"), other])
    report = run_triage(shelf)
    assert report.updated == ["arxiv:2607.00001"]
    held = [entry.item for _, draft in read_drafts(shelf) for entry in draft.entries]
    assert held.count("arxiv:2607.00001") == 1


def four_works():
    """Four that are kept and do not repeat each other."""
    tails = ["pages are moved", "heads are grouped", "scores are dropped", "tokens are merged"]
    text = (
        "H100 runs give {n}.5x over the baseline with vLLM 0.{n}9 at {n}2 concurrent requests. Here {tail}."
    )
    return [
        make_item(
            f"arxiv:2607.1000{n}", title=f"KV cache in which {tail}", summary=text.format(n=n + 1, tail=tail)
        )
        for n, tail in enumerate(tails)
    ]


class TestBudget:
    def held(self, base):
        return [entry.item for _, draft in read_drafts(base) for entry in draft.entries]

    def test_only_so_many_are_drafted_in_a_week_and_the_others_are_listed(self, shelf):
        shelf.append_items(four_works())
        report = run_triage(shelf, budget=3)
        assert len(self.held(shelf)) == 3
        assert report.over_budget == 1
        listed = [c.reason for _, draft in read_drafts(shelf) for c in draft.candidates]
        assert listed == ["beyond the budget"]
        assert [a.blocked_by for a in shelf.assessments() if a.blocked_by] == [("budget",)]

    def test_the_rest_waits_for_the_next_week(self, shelf, monkeypatch):
        shelf.append_items(four_works())
        run_triage(shelf, budget=3)
        before = tree(shelf.root)
        assert run_triage(shelf, budget=3).over_budget == 1
        assert tree(shelf.root) == before
        monkeypatch.setenv("KB_NOW", "2026-07-06T03:05:00Z")
        run_triage(shelf, budget=3)
        assert len(self.held(shelf)) == 4
        last = [one for one in shelf.assessments() if one.draft.startswith("kb/2026-07-06")]
        assert [one.blocked_by for one in last] == [()]


def test_since_leaves_older_items_for_later(shelf):
    old = make_item("arxiv:2606.00001", **GOOD, first_seen=DateStamp(at="2026-06-01T00:00:00Z", field="kb"))
    shelf.append_items([old])
    assert run_triage(shelf, since=dt.date(2026, 6, 10)).assessed == 0
    assert run_triage(shelf).assessed == 1


def test_a_draft_that_a_person_deleted_is_not_written_again_unasked(shelf):
    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    [(found, _)] = read_drafts(shelf)
    found.path.unlink()
    report = run_triage(shelf)
    assert report.drafts == []
    assert report.lost == ["arxiv:2607.00001"]
    assert len(run_triage(shelf, again=True).drafts) == 1


def test_again_applies_changed_rules_to_what_no_draft_holds(shelf):
    shelf.append_items([make_item("url:hype.example/p", **BAD)])
    run_triage(shelf)
    assert run_triage(shelf, again=True).assessed == 0
    for path in (shelf.root / "rules").glob("*.toml"):
        path.unlink()
    (shelf.root / "rules/all.toml").write_text('kind = "words"\nweight = 9\nen = ["secret"]\n')
    assert run_triage(shelf).assessed == 0
    assert run_triage(shelf, again=True).decided["keep"] == 1


def test_bad_lines_are_skipped_and_reported(shelf):
    shelf.append_items([make_item(**GOOD)])
    path = next((shelf.root / "items").iterdir())
    path.write_bytes(b'{"id": "x"}\nnot json\n' + path.read_bytes())
    assert run_triage(shelf).assessed == 1
    assert len(shelf.problems) == 2


def test_a_rewritten_history_is_read_from_the_start(shelf):
    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    path = next((shelf.root / "items").iterdir())
    other = make_item("arxiv:2607.00005", title="Speculative decoding under load", summary=GOOD["summary"])
    path.write_text(json.dumps(other.to_json()) + "\n" + path.read_text())
    assert run_triage(shelf).assessed == 1


def test_a_journal_left_behind_is_finished_first_and_gives_the_same_bytes(shelf, monkeypatch):
    items = [make_item(**GOOD), make_item("url:hype.example/p", **BAD)]
    shelf.append_items(items)
    run_triage(shelf)
    whole = tree(shelf.root)
    draft = next(name for name in whole if name.startswith("inbox/"))
    lines = whole["assessments/2026-07.jsonl"].splitlines(keepends=True)
    left = [json.dumps({"write": draft, "text": whole[draft].decode()}, ensure_ascii=False)]
    left += ['{"append":' + line.decode().strip() + "}" for line in lines]
    for done in (0, 1):
        (shelf.root / draft).unlink()
        (shelf.root / "assessments/2026-07.jsonl").write_bytes(b"".join(lines[:done]) + lines[done][:20])
        journal.journal_path(shelf).write_text("\n".join(left) + "\n", encoding="utf-8")
        assert run_triage(shelf).resumed
        assert tree(shelf.root) == whole


@pytest.mark.parametrize("moments", [2, pytest.param(60, marks=pytest.mark.soak)])
def test_killed_at_any_moment_a_rerun_gives_the_bytes_of_an_undisturbed_run(shelf, moments, tmp_path):
    import shutil

    shelf.append_items(
        [
            make_item(
                f"arxiv:2607.2{n:04}", **{**GOOD, "title": f"{GOOD['title']} {n} {'ab'[n % 2] * (n % 7)}"}
            )
            for n in range(40)
        ]
    )
    start = tmp_path / "start"
    shutil.copytree(shelf.root, start)
    run_triage(shelf)
    whole = tree(shelf.root)
    code = "from kb.store import Base; from kb.triage.run import run_triage; from pathlib import Path; import sys; print('go', flush=True); run_triage(Base(Path(sys.argv[1])))"
    for moment in range(moments):
        root = tmp_path / f"killed-{moment}"
        shutil.copytree(start, root)
        ran = subprocess.Popen([sys.executable, "-c", code, root], env={**os.environ}, stdout=subprocess.PIPE)
        ran.stdout.readline()
        try:
            ran.wait(timeout=0.02 + 0.35 * moment / moments)
        except subprocess.TimeoutExpired:
            ran.send_signal(signal.SIGKILL)
        ran.communicate()
        run_triage(type(shelf)(root))
        assert tree(root) == whole


def test_every_draft_it_writes_can_be_read_and_split(shelf):
    from kb.stages import split_entry

    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    [(found, draft)] = read_drafts(shelf)
    record, _ = read_draft(found.path)
    assert record == draft
    for entry in draft.entries:
        alone, rest = split_entry(found.path.read_text(), entry.n, taken_from=f"{found.id}#{entry.n}")
        assert f"## {entry.n} · " in alone
        assert f"## {entry.n} · " not in rest
