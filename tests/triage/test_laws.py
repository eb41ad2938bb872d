"""Laws of text from outside: escaped text reads as written, signatures know sameness, order never changes a decision."""

import functools
import html
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kb.store import Base
from kb.triage.escape import inline, one_line
from kb.triage.reading import Reading, lower
from kb.triage.sameness import SLOTS, bands, signature, similarity, title_key
from kb.triage.score import make_scorer

from .conftest import SHIPPED, make_item

MD = MarkdownIt("commonmark")
TEXT = st.text(max_size=60)
MARKS = st.text(alphabet="\\`*_[]()<>&|#$~!-+.:/ \n\tab1😀中", max_size=40)
WORDS = st.lists(
    st.sampled_from("page head token cache evict serve draft batch 分页 缓存 调度 显存".split()),
    min_size=12,
    max_size=40,
)


@given(TEXT | MARKS)
@example("a<!-- kb:begin x -->")
@example("1. x\n2. y")
@settings(max_examples=150, deadline=None)
def test_escaped_text_reads_as_it_was_written_and_holds_no_element(text):
    shown = MD.render(f"x {inline(text)}")
    assert re.fullmatch(r"<p>[^<]*</p>\n", shown), shown
    assert html.unescape(shown[3:-5]) == f"x {one_line(text)}".rstrip()


@given(TEXT)
@settings(max_examples=200, deadline=None)
def test_lower_case_keeps_every_position(text):
    assert len(lower(text)) == len(text)


@given(WORDS)
@settings(max_examples=100, deadline=None)
def test_a_text_is_like_itself_and_meets_itself_in_every_band(words):
    signed = signature(" ".join(words))
    if signed:
        assert similarity(signed, signed) == 1
        assert len(signed) == 4 * SLOTS
        assert bands(signed) == bands(signature("  ".join(words).upper()))


@given(WORDS, WORDS)
@settings(max_examples=100, deadline=None)
def test_likeness_is_the_same_from_both_sides(one, other):
    a, b = signature(" ".join(one)), signature(" ".join(other))
    assert similarity(a, b) == similarity(b, a)


def test_likeness_estimates_the_share_of_common_runs():
    words = [f"word{n}" for n in range(200)]
    half = words[:100] + [f"other{n}" for n in range(100)]
    near = similarity(signature(" ".join(words)), signature(" ".join(half)))
    assert 0.15 <= near <= 0.55  # 97 of 297 runs are common: 0.33, with a standard error of 0.08


def test_a_title_key_ignores_case_and_punctuation_and_is_silent_on_short_titles():
    assert title_key("Paged KV Cache: Eviction!") == title_key("paged  kv cache - eviction")
    assert title_key("Update") == ""
    assert title_key("分页缓存驱逐")


@given(
    st.lists(
        st.sampled_from(
            [
                "vLLM serves.",
                "TTFT falls by 31% against vLLM on one H100.",
                "Subscribe now!",
                "缓存命中率提升 2 倍。",
            ]
        ),
        max_size=4,
    ),
    TEXT,
)
@settings(max_examples=40, deadline=None)
def test_a_decision_depends_on_the_text_alone(sentences, tail):
    text = " ".join([*sentences, tail])
    first, second = (
        scorer.assess(Reading(make_item(title="A title"), text), at="2026-07-02T00:00:00Z")
        for scorer in both_orders()
    )
    assert first == second
    assert [rule.rule for rule in first.rules] == sorted(rule.rule for rule in first.rules)


@functools.cache
def both_orders():
    base = Base(SHIPPED)
    rules, topics = base.rules(), base.topics().values()
    return [make_scorer(listed, topics, base.settings.triage) for listed in (rules, rules[::-1])]


def test_many_processes_decide_as_one(shelf):
    from kb.triage.decide import Ask, decide_one, recipe_of
    from kb.triage.kin import Kin
    from kb.triage.many import WORTHWHILE, spread

    recipe = recipe_of(shelf, "2026-07-02T00:00:00Z")
    items = [
        make_item(f"arxiv:2607.{n:05}", title=f"KV cache {n}", summary="vLLM on one H100. " * (n % 5))
        for n in range(820)
    ]
    asks = [Ask(item.model_dump_json(), Kin((), ()), ()) for item in items]
    alone = list(spread(decide_one, asks, recipe.make, 820))
    shared = list(spread(decide_one, asks, recipe.make, 2 * WORTHWHILE))
    assert shared == alone
