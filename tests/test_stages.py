"""Moves as a law: whatever is tried in whatever order, every draft stands in one place with its bytes, and the log tells how."""

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.draft import list_drafts
from kb.errors import NeedsPerson
from kb.stages import STEPS, move
from kb.starter import make_base
from kb.store import Base
from kb.vocab import STAGES
from tests.records import draft_text, put_draft

DRAFTS = ("jay/2026-06-10-kv", "ann/2026-06-10-kv", "ann/2026-06-11-sd")
MOVES = st.lists(st.tuples(st.sampled_from(DRAFTS), st.sampled_from(STAGES)), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stages")


@settings(max_examples=15)
@given(moves=MOVES)
def test_any_sequence_of_moves_loses_and_doubles_nothing(folder, moves):
    shutil.rmtree(folder / "base", ignore_errors=True)
    make_base(folder / "base", "en")
    base = Base(folder / "base")
    texts = {name: draft_text(("1", "arxiv:2606.00001"), curator=name.split("/")[0]) for name in DRAFTS}
    for name, text in texts.items():
        put_draft(base, name, text).with_suffix(".orig").write_bytes(name.encode())
    stages = dict.fromkeys(DRAFTS, "inbox")
    done = 0
    for name, stage in moves:
        legal = stage == stages[name] or stage in STEPS[stages[name]]
        try:
            seq = move(base, name, stage, reason="x", who="a", at="2026-07-02T03:05:00Z").seq
        except NeedsPerson:
            assert not legal
            continue
        assert legal
        assert (seq is None) == (stage == stages[name])
        done += seq is not None
        stages[name] = stage
    found = list_drafts(base)
    assert {draft.id: draft.stage for draft in found} == stages
    assert len(found) == len(DRAFTS)
    for draft in found:
        assert draft.path.read_text(encoding="utf-8") == texts[draft.id]
        assert draft.path.with_suffix(".orig").read_bytes() == draft.id.encode()
    assert [entry.seq for entry in base.log()] == list(range(1, done + 1))
    assert stages == dict.fromkeys(DRAFTS, "inbox") | {entry.target: entry.to for entry in base.log()}


def test_review_is_the_only_way_to_published():
    assert {stage for stage, reachable in STEPS.items() if "published" in reachable} == {"review"}
