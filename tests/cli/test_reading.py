"""Reading verbs give the shapes of the contract, whole and in the order they promise."""

import json
from pathlib import Path

import pytest

from kb.cli.shared import text_of, width_of
from kb.model import Interval, Stated, Verdict
from kb.store import Base, environment_name
from tests.records import assessment, draft_text, environment, item, measurement, put_draft

ITEM_KEYS = "id version url aliases title submitted updated announced first_seen topics stars decision stage"
ENV = environment_name(environment())
CLAIM_KEYS = ["id", "verdict", "level", "source", "measured", "reason"]


@pytest.fixture
def filled(base):
    base.append_items([item(version="1"), item(version="2", url="https://arxiv.org/abs/2606.06302")])
    base.append_assessments([assessment()])
    put_draft(base, "jay/2026-06-10-kv", draft_text(("4", "arxiv:2606.06302")), "review")
    base.append_measurements("toy", environment(), [measurement(env=ENV), measurement("m2", env=ENV)])
    (base.root / "claims").mkdir()
    (base.root / "claims/toy.toml").write_text(
        "".join(
            f'[[claim]]\nid = "toy/{name}"\nitem = "arxiv:2606.06302"\nprovenance = "primary"\n'
            'statement = {zh = "快", en = "fast"}\nlow = 1.9\nhigh = 2.1\nunit = "ratio"\n'
            for name in "ab"
        )
    )
    measured = Interval(low=2.0, value=2.05, high=2.1, n=4, unit="ratio")
    stated = Stated(low=1.9, high=2.1, unit="ratio", bound="exact")
    base.write_verdicts(
        "toy",
        [
            Verdict(
                claim="toy/a",
                verdict="holds",
                level="derived",
                source=stated,
                measured=measured,
                reason="inside",
            )
        ],
    )
    base.append_log(
        "move", "jay/2026-06-10-kv", who="a", at="2026-07-02T03:05:00Z", from_="inbox", to="review"
    )
    return base


def test_items_have_the_keys_of_the_contract(filled, kb):
    (row,) = kb("list", "items", "--json").json
    assert list(row)[:13] == ITEM_KEYS.split()
    assert (row["version"], row["decision"], row["stage"]) == ("2", "keep", "review")


def test_verdicts_are_the_claim_objects_of_a_run_for_the_whole_base(filled, kb):
    judged, untested = kb("list", "verdicts", "--json").json
    assert list(judged)[:6] == CLAIM_KEYS
    assert judged["source"] == {"low": 1.9, "high": 2.1, "unit": "ratio", "bound": "exact"}
    assert judged["measured"] == {"low": 2.0, "value": 2.05, "high": 2.1, "n": 4, "unit": "ratio"}
    assert (untested["id"], untested["verdict"], untested["measured"]) == ("toy/b", "untested", None)


def test_fields_pick_columns_in_the_order_asked(filled, kb):
    assert kb("list", "verdicts", "--json", "--fields", "verdict,id").json == [
        {"verdict": "holds", "id": "toy/a"},
        {"verdict": "untested", "id": "toy/b"},
    ]
    ended = kb("list", "verdicts", "--fields", "nope")
    assert ended.code == 2
    assert "columns are id, verdict" in ended.err


def test_a_table_in_a_pipe_is_not_cut(filled, kb):
    lines = kb("list", "items").out.splitlines()
    assert lines[0].split() == ["id", "version", "decision", "stars", "stage", "title"]
    assert lines[1].endswith("Paged KV caches under eviction")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("toy/a", "claim", id="claim"),
        pytest.param("arxiv:2606.06302", "item", id="item"),
        pytest.param("2606.06302v2", "item", id="a-bare-id-with-version"),
        pytest.param("https://arxiv.org/pdf/2606.06302", "item", id="an-address"),
        pytest.param("jay/2026-06-10-kv", "draft", id="draft"),
        pytest.param("2026-06-10-kv", "draft", id="the-ending-of-a-draft"),
        pytest.param("jay/2026-06-10-kv#4", "entry", id="entry"),
        pytest.param("inference", "topic", id="topic"),
        pytest.param("arxiv-serving", "source", id="source"),
    ],
)
def test_show_finds_whatever_an_id_names(filled, kb, name, kind):
    ended = kb("show", name, "--json")
    assert (ended.code, ended.json["kind"]) == (0, kind)
    assert kb("show", name).code == 0


def test_a_run_is_shown_with_its_measurements(filled, kb):
    (row,) = kb("list", "runs", "--json").json
    assert (row["measurements"], row["samples"], row["machine"]) == (2, 4, "cpu")
    shown = kb("show", row["id"][:8], "--json").json
    assert (shown["kind"], shown["measurements"]) == ("run", ["m1", "m2"])


def test_history_tells_what_happened_in_order(filled, kb):
    lines = kb("show", "2606.06302", "--history", "--json").json["history"]
    assert [line["what"] for line in lines] == ["seen", "seen", "assessed"]
    assert [line["what"] for line in kb("show", "2026-06-10-kv", "--history", "--json").json["history"]] == [
        "move"
    ]


def test_status_counts(filled, kb):
    status = kb("status", "--json").json
    assert status["stages"] == {"inbox": 0, "review": 1, "published": 0, "dropped": 0}
    assert status["verdicts"]["holds"] == 1
    assert status["verdicts"]["untested"] == 1
    assert (status["items"], status["claims"], status["held"]) == (1, 2, [])
    assert [lock["held"] for lock in status["locks"]] == [False, False]


def test_status_fits_one_screen_and_needs_no_git(filled, kb):
    lines = kb("status").out.splitlines()
    assert len(lines) <= 12
    assert "not in git" in lines[0]
    assert "review 1 (oldest 22 d)" in lines[1]
    assert "holds 1 · untested 1" in kb("status").out


def test_status_names_held_blocks(filled, kb):
    filled.write(filled.proposal_path("inference/evidence"), "new\n")
    assert kb("status", "--json").json["held"] == ["inference/evidence"]
    assert "kb review" in kb("status").out


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_new_base_can_be_read_by_every_reading_verb(tmp_path, kb, monkeypatch, lang):
    monkeypatch.delenv("KB_ROOT", raising=False)
    root = tmp_path / "新 base"
    written = kb("init", root, "--lang", lang, "--json").json["written"]
    assert "kb.toml" in written
    status = kb("-C", root, "status", "--json").json
    assert (status["language"], status["problems"]) == (lang, [])
    for table in ("sources", "topics", "rules"):
        assert kb("-C", root, "query", f"select * from {table}", "--json").json


def test_init_touches_nothing_that_is_there(base, kb):
    (base.root / "README.md").write_text("mine")
    before = {p: p.read_bytes() for p in base.root.rglob("*") if p.is_file()}
    ended = kb("init", base.root)
    assert (ended.code, "already" in ended.out) == (0, True)
    (base.root / "kb.toml").unlink()
    assert kb("init", base.root, "--dry-run", "--json").json["written"] == ["kb.toml"]
    kb("init", base.root)
    assert (base.root / "README.md").read_text() == "mine"
    assert {p: p.read_bytes() for p in base.root.rglob("*") if p.is_file()} == before


def test_init_where_a_file_stands_is_refused(tmp_path, kb):
    (tmp_path / "f").touch()
    assert kb("init", tmp_path / "f").code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(kb, shell):
    assert "_KB_COMPLETE" in kb("completion", shell).out


def test_explain_lists_every_code(kb):
    assert [row["code"] for row in json.loads(kb("explain", "--json").out)] == [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        70,
        130,
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (16000.0, "16000"),
        (0.185154, "0.185154"),
        (1 / 3, "0.333333"),
        (1e300, "1e+300"),
        (None, ""),
        (True, "True"),
    ],
)
def test_a_cell_shows_six_digits_and_json_all(value, shown):
    assert text_of(value) == shown


def test_columns_line_up_under_chinese_and_combining_characters(kb, base):
    base.append_items([item(title="显存"), item("url:example.org/a", title="cafe\u0301")])
    rows = kb("list", "items", "--fields", "title,id").out.splitlines()
    assert [row.index(row.split()[-1]) for row in rows[1:]] == [5, 8]
    assert {width_of(row[: row.rindex(row.split()[-1])]) for row in rows[1:]} == {7}


def test_a_new_base_starts_with_the_rules_and_thresholds_of_the_shipped_one(base):
    shipped = Base(Path(__file__).resolve().parents[2] / "shared/research-kb")
    assert base.settings.triage == shipped.settings.triage
    assert base.rules() == shipped.rules()
