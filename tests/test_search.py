"""Search finds what a reader types: two characters of Chinese in the middle of a title, an id, ``KV``."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.cli.root import run
from kb.errors import WrongUse
from kb.model import Item
from kb.search import question, search, snippet, tokens
from kb.store import Base


@pytest.fixture
def base(tmp_path) -> Base:
    root = tmp_path / "a base"
    root.mkdir()
    (root / "kb.toml").write_text('language = "zh"\n')
    made = Base(root)
    pages = {
        "inference/kvcache": "# KV Cache 压缩工程陷阱\n\n分页分配器只在一页全空时归还。参见 gen-itgc接口。",
        "inference/scheduling": "# 调度与命中率\n\n显存不够时先抢占谁。",
        "inference/speculative": "# 投机解码\n\n负载升高时收益下降。",
    }
    for name, text in pages.items():
        made.write(made.page_path(name), f"{text}\n<!-- kb:begin {name}/evidence v=1 run=a sum=b -->\n")
    stamp = {"at": "2026-06-10", "field": "published"}
    made.append_items([
        Item(id="arxiv:2606.06302", version=v, source="arxiv", title="Tangram", authors=("李雷",), summary="paged",
             first_seen=stamp, fetched_at="2026-06-10T00:00:00Z") for v in ("1", "2")
    ])  # fmt: skip
    claim = '[[claim]]\nid = "eai/x"\nitem = "arxiv:2606.06302"\nprovenance = "primary"\nstatement = {zh = "页归还率", en = "pages"}\n'
    made.write(root / "claims/eai.toml", claim)
    made.write(
        root / "review/jay/2026-06-10-x.md",
        "---\nkb: draft/1\ncurator: jay\ndate: '2026-06-10'\n---\n## 1 · 审稿中的显存\n",
    )
    made.write(root / "inbox/jay/bad.md", b"\xff\xfe\x00")
    return made


def found(base, words, **rest) -> list[str]:
    return [hit.id for hit in search(base, words, **rest)]


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("工程", "inference/kvcache"),
        ("陷阱", "inference/kvcache"),
        ("显存", "inference/scheduling"),
        ("命中率", "inference/scheduling"),
        ("投机解码", "inference/speculative"),
        ("负载", "inference/speculative"),
        ("阱", "inference/kvcache"),
        ("KV", "inference/kvcache"),
        ("kv 工程", "inference/kvcache"),
        ("ＫＶ", "inference/kvcache"),
        ("gen-itgc", "inference/kvcache"),
        ("itgc", "inference/kvcache"),
        ("2606.06302", "arxiv:2606.06302"),
        ("2606.06302v2", "arxiv:2606.06302"),
        ("arxiv:2606.06302", "arxiv:2606.06302"),
        ("李雷", "arxiv:2606.06302"),
        ("eai/x", "eai/x"),
        ("归还率", "eai/x"),
    ],
)
def test_a_reader_finds(base, words, first):
    """KB-PUBLISH-04"""
    assert first in found(base, words)


@pytest.mark.parametrize("words", ["压工", "陷工 页", "kv 不存在", "缩程"])
def test_characters_that_do_not_stand_together_are_not_a_word(base, words):
    assert "inference/kvcache" not in found(base, words)


def test_a_title_outweighs_a_body(base):
    base.write(base.page_path("a"), "# 别的\n\n" + "命中率 " * 3)
    assert found(base, "命中率")[0] == "inference/scheduling"


def test_a_stage_narrows_the_answer(base):
    assert "jay/2026-06-10-x" in found(base, "显存")
    assert found(base, "显存", stage="review") == ["jay/2026-06-10-x"]
    assert found(base, "显存", stage="published") == ["inference/scheduling"]


def test_the_index_follows_the_files(base):
    assert found(base, "全新词") == []
    base.write(base.page_path("new"), "# 全新词\n")
    assert found(base, "全新词") == ["new"]
    base.page_path("new").unlink()
    assert found(base, "全新词") == []


def test_a_broken_index_is_made_again(base):
    found(base, "显存")
    (base.cache / "search.sqlite").write_bytes(b"no database")
    assert "inference/scheduling" in found(base, "显存")


def test_searching_changes_no_tracked_file(base):
    def tracked():
        return {p: p.stat().st_mtime_ns for p in base.root.rglob("*") if p.is_file() and ".kb" not in p.parts}

    before = tracked()
    found(base, "显存")
    assert tracked() == before


def test_a_snippet_shows_the_word_in_its_place():
    text = "前" * 100 + "显存 KV cache" + "后" * 100
    assert "«显存» «KV» cache" in snippet(text, "显存 kv")
    assert snippet(text, "显存").startswith("…")
    assert snippet(text, "显存").endswith("…")


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None, database=None)
def test_any_question_is_a_query_or_is_refused(words):
    """No input can become FTS5 syntax."""
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE docs USING fts5(title, also, body, chars)")
    asked = question(words)
    if asked:
        index.execute("SELECT * FROM docs WHERE docs MATCH ?", (asked,)).fetchall()
    index.close()


@given(st.text(alphabet="压缩工程陷阱显存", min_size=2, max_size=12), st.data())
@settings(max_examples=200, deadline=None, database=None)
def test_every_part_of_a_title_is_a_phrase_of_it(title, data):
    start = data.draw(st.integers(0, len(title) - 2))
    part = title[start : data.draw(st.integers(start + 2, len(title)))]
    whole, cut = tokens(title), tokens(part)
    assert any(whole[i : i + len(cut)] == cut for i in range(len(whole)))


@pytest.mark.parametrize("words", ["", "   ", '"*', "()"])
def test_a_question_without_a_word_is_refused(base, words):
    with pytest.raises(WrongUse):
        search(base, words)


def test_the_command_prints_hits_and_an_empty_list(base, capsys):
    assert run(["-C", str(base.root), "search", "显存", "--fields", "id", "--json"]) == 0
    assert '"inference/scheduling"' in capsys.readouterr().out
    assert run(["-C", str(base.root), "search", "不存在的词", "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"
