"""Each unit sees the shape it is named after, says which words it saw, and stays silent where the shape is absent."""

import pytest

from kb.errors import BadConfig
from kb.model import DateStamp
from kb.triage.reading import Neighbour, Reading
from kb.triage.rules import load_unit, unit_names
from kb.triage.score import decide, make_scorer

from .conftest import SHIPPED, make_item

PLAIN = (
    "The garden was quiet. People walked by and talked about the weather of the season and about their dogs."
)


def reading(text, name="url:site.example/post", **rest):
    extra = {key: rest.pop(key) for key in ("neighbours", "shelves") if key in rest}
    return Reading(make_item(name, title=rest.pop("title", "A text"), **rest), text, **extra)


def look(unit, text, options=None, **rest):
    return load_unit(unit)(reading(text, **rest), options or {})


SEEN = [
    pytest.param("quantities", "TTFT falls by 35–37% against vLLM on one H100.", {}, "35–37%", id="range-with-baseline"),
    pytest.param("quantities", "相对自回归解码加速 2.1 倍", {}, "2.1 倍", id="chinese-factor"),
    pytest.param("setup", "Run on one H100 SXM5 80 GB with vLLM 0.18.0 and Llama-3.3-70B.", {}, "H100 SXM5 80 GB", id="gpu"),
    pytest.param("setup", "on a Jetson Orin with 32 concurrent requests", {}, "Jetson Orin", id="board"),
    pytest.param("commands", "Start it with serve --max-num-seqs 64 today.", {}, "--max-num-seqs 64", id="flag"),
    pytest.param("commands", "pip install pagekit", {}, "pip install pagekit", id="install"),
    pytest.param("commands", "set gpu_memory_utilization=0.95", {}, "gpu_memory_utilization=0.95", id="setting"),
    pytest.param("primary", "We measured both engines for a week.", {}, "We measured", id="first-hand"),
    pytest.param("noise", "Wow! Great! Buy now! You and your team will love it! 🚀🚀🚀 #ai #llm #gpu", {}, "hashtags: 3", id="advertisement"),
    pytest.param("thin", "Agents: 31 papers. Serving: 19 papers. Vision: 12 papers.", {}, "31 papers", id="list-of-counts"),
    pytest.param("thin", "智能体 18 篇，推理 9 篇，多模态 21 篇", {}, "18 篇", id="chinese-list"),
    pytest.param("thin", "Watch the reel.", {}, "5 words", id="teaser"),
    pytest.param("density", "vLLM H100 TTFT 35% FP8 KV_cache 128 P99 CUDA 13.0", {"above": 0.1}, "vLLM", id="dense"),
    pytest.param("density", PLAIN, {"below": 0.05}, "0 terms in 21 words", id="vague"),
    pytest.param("unsourced", "It is 3x faster.", {}, "3x", id="factor-alone"),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "text", "options", "word"), SEEN)
def test_a_unit_sees_its_shape_and_quotes_it(unit, text, options, word):
    found = look(unit, text, options)
    assert found is not None
    assert 0 < found.strength <= 1
    assert any(word in piece for piece in found.evidence), found.evidence


SILENT = [
    pytest.param("quantities", "It is much faster than before.", {}, id="no-number"),
    pytest.param("quantities", "In 2026 version 3 of chapter 12 appeared.", {}, id="numbers-without-units"),
    pytest.param("setup", PLAIN, {}, id="no-hardware"),
    pytest.param("commands", PLAIN, {}, id="prose"),
    pytest.param("primary", PLAIN, {}, id="nobody-did-anything"),
    pytest.param("noise", PLAIN, {}, id="calm"),
    pytest.param("thin", PLAIN * 3, {}, id="long-enough"),
    pytest.param("density", PLAIN, {"above": 0.1}, id="not-dense"),
    pytest.param("unsourced", "3x over vLLM on one H100.", {}, id="baseline-and-hardware"),
]


@pytest.mark.parametrize(("unit", "text", "options"), SILENT)
def test_a_unit_is_silent_where_its_shape_is_absent(unit, text, options):
    assert look(unit, text, options) is None


class TestWhereItStands:
    @pytest.mark.parametrize(
        ("name", "text", "strength"),
        [
            ("url:docs.pageserve.dev/tuning", "Tuning PageServe.", 1.0),
            ("url:pageserve.com/blog/news", "PageServe is out.", 0.5),
            ("url:research.chipmaker.example/x", "How chips work.", 0.5),
            ("url:page-serve.io/x", "PageServe explained", 0.5),
        ],
    )
    def test_official_is_a_site_named_in_the_text_or_where_engineers_publish(self, name, text, strength):
        assert look("official", text, name=name).strength == strength

    @pytest.mark.parametrize(
        "name", ["url:forum.pageserve.com/t/1", "arxiv:2607.00001", "url:other.example/post"]
    )
    def test_official_is_neither_a_forum_nor_a_paper_nor_a_stranger(self, name):
        assert look("official", "PageServe", name=name) is None

    def test_manual_is_a_host_or_a_path_of_documentation(self):
        assert look("manual", "x", name="url:docs.x.example/a")
        assert look("manual", "x", name="url:x.example/docs/a")
        assert look("manual", "x", name="url:x.example/documentary") is None

    def test_forum_is_a_part_of_the_host(self):
        assert look("forum", "x", name="url:forums.x.example/t/1")
        assert look("forum", "x", name="url:forumulas.example/t/1") is None

    def test_primary_is_whole_for_a_paper(self):
        assert look("primary", PLAIN, name="arxiv:2607.00001").strength == 1

    def test_undated_is_a_post_without_a_date_and_no_manual(self):
        assert look("undated", "x", announced=None)
        assert look("undated", "x", announced=DateStamp(at="2026-07-01", field="p")) is None
        assert look("undated", "x", announced=None, name="url:docs.x.example/a") is None

    def test_topic_is_what_the_shelves_say(self):
        assert look("topic", "x", {"missing": True})
        assert look("topic", "x") is None
        shelves = (("inference", ("vLLM",)),)
        assert look("topic", "x", shelves=shelves).evidence == ("vLLM",)
        assert look("topic", "x", {"missing": True}, shelves=shelves) is None

    def test_novelty_falls_with_the_likeness_of_an_earlier_item(self):
        near = look("novelty", "x", neighbours=(Neighbour("arxiv:1", 0.7),))
        far = look("novelty", "x", neighbours=(Neighbour("arxiv:1", 0.3),))
        assert near.strength > far.strength > 0
        assert near.evidence == ("arxiv:1 (70%)",)
        assert look("novelty", "x", neighbours=(Neighbour("arxiv:1", 0.1),)) is None


def test_every_unit_is_used_by_a_shipped_rule():
    from kb.store import Base

    assert {rule.unit for rule in Base(SHIPPED).rules() if rule.kind == "code"} == set(unit_names())


def test_a_rule_with_an_unknown_unit_is_refused_with_the_names_there_are():
    with pytest.raises(BadConfig, match="no-such"):
        load_unit("no-such")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a game-changing trick", ["game-changing"]),
        ("game changers everywhere", ["game changer"]),
        ("endgame changing", []),
        ("用vLLM部署，效果绝了", ["绝了"]),
        ("GAME-CHANGER", ["GAME-CHANGER"]),
        ("ｇａｍｅ-ｃｈａｎｇｅｒ", ["game-changer"]),
    ],
)
def test_words_stand_alone_in_latin_script_and_anywhere_in_chinese(text, words):
    from kb.triage.phrases import Phrases

    phrases = Phrases(["game-changer", "game changer", "game-changing", "绝了"])
    assert phrases.find(reading(text, title="x")) == words


def test_thresholds_of_the_base_make_decision_and_stars():
    from kb.config import TriageSettings

    settings = TriageSettings(keep=4, watch=1, stars=(0, 2, 4, 6))
    found = [(str(d), s) for d, s in (decide(x, settings) for x in (-1, 0, 1, 2, 4, 6))]
    assert found == [("drop", 1), ("drop", 2), ("watch", 2), ("watch", 3), ("keep", 4), ("keep", 5)]


def test_the_weight_of_a_word_rule_counts_each_distinct_word_up_to_its_most():
    from kb.config import TriageSettings
    from kb.model import WordRule

    rule = WordRule(name="loud", weight=-2, en=("wow", "great", "super"), max=2)
    scorer = make_scorer([rule], [], TriageSettings())
    [fired] = scorer.assess(reading("wow wow great super"), at="2026-07-02T00:00:00Z").rules
    assert fired.weight == -4
    assert fired.evidence == ("wow", "great")


class TestShelves:
    """An item goes where its words are: title first, narrow before general, several at once."""

    def shelves(self, title, text, forced=()):
        from kb.store import Base
        from kb.triage.shelves import find_shelves, make_shelves

        made = make_shelves(Base(SHIPPED).topics().values())
        return [path for path, _ in find_shelves(reading(text, title=title), made, forced)]

    @pytest.mark.parametrize(
        ("title", "text", "first"),
        [
            ("Evicting the KV cache in LLM serving", "With vLLM, TTFT falls.", "inference/kvcache"),
            (
                "vLLM against SGLang",
                "TTFT and tok/s of two inference engines; prefix caching is on.",
                "inference",
            ),
            (
                "Self-speculative decoding with a small drafter",
                "A draft model on an edge device.",
                "inference/speculative",
            ),
            ("图数据库与多跳推理", "知识图谱上的图检索。", "database/graphrag"),
            ("大模型推理服务的抢占调度", "尾延迟与排队。", "inference/scheduling"),
        ],
    )
    def test_the_first_topic_is_the_narrowest_that_fits(self, title, text, first):
        assert self.shelves(title, text)[0] == first

    def test_a_text_of_two_fields_stands_on_two_shelves(self):
        found = self.shelves("KV cache for agents", "Agents call tools; prefix caching keeps their context.")
        assert {"inference/kvcache", "agent"} <= set(found)

    def test_a_foreign_text_stands_nowhere_unless_its_source_says_so(self):
        assert self.shelves("Sourdough", "Dough rises faster at altitude.") == []
        assert self.shelves("Sourdough", "Dough rises faster.", forced=("backend",)) == ["backend"]
