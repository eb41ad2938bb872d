"""The lens is the files as SQL: same rows, same types; a hostile statement reads nothing else and changes nothing."""

import json

import pytest

from kb.errors import CannotRun, WrongUse
from kb.lens import columns_of, filter_rows, query
from kb.model import Item
from kb.tables import TABLES, read_table
from tests.records import assessment, draft_text, environment, item, measurement, put_draft


@pytest.fixture
def filled(base):
    base.append_items(
        [item(version="1"), item(version="2"), item("url:example.org/post", aliases=("doi:10.1/x",))]
    )
    base.append_assessments([assessment(), assessment(by="jay", decision="watch", stars=3)])
    put_draft(base, "jay/2026-06-10-kv", draft_text(("1", "arxiv:2606.06302")), "review")
    base.append_measurements(
        "toy", environment(), [measurement(), measurement("m2", case={"page_tokens": 32})]
    )
    (base.root / "claims").mkdir()
    (base.root / "claims/toy.toml").write_text(
        '[[claim]]\nid = "toy/a"\nitem = "arxiv:2606.06302"\nprovenance = "primary"\n'
        'statement = {zh = "快", en = "fast"}\nlow = 1.9\nhigh = 2.1\nunit = "ratio"\n'
    )
    return base


@pytest.mark.parametrize("name", TABLES)
def test_a_table_holds_exactly_the_rows_of_the_files(filled, name):
    answer = query(filled, f"select * from {name}")
    assert answer.rows == read_table(filled, name)
    assert answer.columns == tuple(columns_of(TABLES[name].row))


def test_an_item_is_one_row_with_its_versions_and_the_decision_of_a_person(filled):
    row = query(
        filled, "select version, versions, decision, stars, stage from items where id like 'arxiv%'"
    ).rows
    assert row == [
        {"version": "2", "versions": ["1", "2"], "decision": "watch", "stars": 3, "stage": "review"}
    ]


def test_claims_nothing_was_run_for_are_untested(filled):
    assert query(filled, "select id, verdict, measured from verdicts").rows == [
        {"id": "toy/a", "verdict": "untested", "measured": None}
    ]


def test_nested_columns_keep_their_types(filled):
    rows = query(
        filled, "select first_seen.field f, len(aliases) n from versions where len(aliases) > 0"
    ).rows
    assert rows == [{"f": "fetched", "n": 1}]
    assert query(filled, "select \"case\"->>'page_tokens' p from measurements order by 1").rows == [
        {"p": "16"},
        {"p": "32"},
    ]


def test_columns_of_the_same_name_are_told_apart(filled):
    row = query(filled, "select a.id, b.id from items a join items b using (id) limit 1").rows[0]
    assert list(row) == ["id", "id_2"]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("select * from read_text('/etc/passwd')", id="reads-a-file"),
        pytest.param("select * from '/etc/passwd'", id="reads-a-file-by-its-name"),
        pytest.param("select * from glob('/*')", id="lists-a-folder"),
        pytest.param("select * from read_csv('http://127.0.0.1/x')", id="reaches-the-network"),
        pytest.param("copy items to '/tmp/kb-test-out.csv'", id="writes-a-file"),
        pytest.param("attach '/tmp/kb-test.db'", id="attaches-a-database"),
        pytest.param("export database '/tmp/kb-test-export'", id="exports"),
        pytest.param("install httpfs", id="installs"),
        pytest.param("load json", id="loads"),
        pytest.param("set memory_limit = '64GB'", id="lifts-the-limit"),
        pytest.param("reset lock_configuration", id="unlocks"),
        pytest.param("select * from rows", id="reads-a-variable-of-this-program"),
        pytest.param("drop table items", id="drops"),
        pytest.param("delete from items", id="deletes"),
        pytest.param("select 1; drop table items", id="two-statements"),
        pytest.param("pragma database_size", id="pragma"),
        pytest.param("call pragma_version()", id="call"),
        pytest.param("", id="empty"),
        pytest.param("-- nothing", id="a-comment"),
        pytest.param("selec 1", id="no-sql"),
        pytest.param("select \0", id="a-null-byte"),
        pytest.param("select nothing from items", id="no-such-column"),
        pytest.param("select cast('x' as int)", id="fails-while-running"),
    ],
)
def test_a_statement_that_does_not_read_the_base_is_refused(filled, statement):
    before = {p: p.read_bytes() for p in filled.root.rglob("*") if p.is_file()}
    with pytest.raises(WrongUse) as caught:
        query(filled, statement)
    assert caught.value.exit_code == 2
    assert caught.value.cause
    assert {p: p.read_bytes() for p in filled.root.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        pytest.param("select count(*) from range(10000000000) a, range(100000) b", "time", id="time"),
        pytest.param("select list(range) from range(1000000000)", "memory", id="memory"),
        pytest.param("select * from range(1000002)", "rows", id="rows"),
    ],
)
def test_a_statement_that_asks_for_too_much_is_stopped(base, statement, what):
    with pytest.raises(CannotRun, match="no answer") as caught:
        query(base, statement, time_limit_s=0.3 if what == "time" else 20)
    assert what in caught.value.cause


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("stars >", id="unfinished"),
        pytest.param("true) union select * from items --", id="closes-the-bracket"),
        pytest.param("true; drop table items", id="a-second-statement"),
        pytest.param("nothing = 1", id="no-such-column"),
    ],
)
def test_where_is_one_boolean_expression(filled, where):
    with pytest.raises(WrongUse):
        filter_rows(filled, "items", where)


def test_where_sees_the_json_columns(filled, kb):
    ended = kb(
        "list", "items", "--json", "--where", "decision = 'watch' and list_contains(topics, 'inference')"
    )
    assert [row["id"] for row in ended.json] == ["arxiv:2606.06302"]
    assert kb("list", "items", "--json", "--where", "false").out == "[]\n"


def test_deleting_the_cache_loses_nothing(filled, kb):
    import shutil

    before = {name: read_table(filled, name) for name in TABLES}
    shutil.rmtree(filled.cache)
    assert {name: query(filled, f"select * from {name}").rows for name in TABLES} == before


@pytest.mark.parametrize("form", ["json", "nl", "csv", "table"])
def test_every_format_gives_the_same_values(filled, kb, form):
    ended = kb("query", "select id, versions, stars from items order by id", "--format", form)
    assert ended.code == 0
    expected = [["arxiv:2606.06302", ["1", "2"], 3], ["url:example.org/post", [""], None]]
    if form == "json":
        assert [list(row.values()) for row in ended.json] == expected
    elif form == "nl":
        assert [list(json.loads(line).values()) for line in ended.out.splitlines()] == expected
    elif form == "csv":
        assert ended.out.splitlines()[1] == 'arxiv:2606.06302,"[""1"", ""2""]",3'
    else:
        assert ended.out.splitlines()[1].split() == ["arxiv:2606.06302", "1,", "2", "3"]


def test_text_from_outside_stays_text(base, kb):
    """A title with quotes, control characters and markup neither ends a string nor moves the cursor."""
    title = "'; drop table items; --\u202e\x1b[2J\x07 <b>\\"
    base.append_items([item(title=title)])
    assert query(base, "select title from items").rows == [{"title": title}]
    shown = kb("list", "items").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_line_that_cannot_be_read_is_skipped_and_reported(filled, kb):
    path = filled.root / "items/2026-07.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id": "x"}\nnot json\n')
    assert len(kb("list", "items", "--json").json) == 2
    assert len(kb("status", "--json").json["problems"]) == 2


def test_columns_cover_every_field_of_a_record():
    assert columns_of(Item)["first_seen"] == {
        "at": "VARCHAR",
        "field": "VARCHAR",
        "zone": "VARCHAR",
        "assumed": "BOOLEAN",
    }
    assert columns_of(Item)["aliases"] == ["VARCHAR"]
    assert columns_of(Item)["losses"] == "JSON"
