"""A guide answers a question from the claims its sections name; its prose belongs to people once it is written."""

from __future__ import annotations

import pytest

from kb.model import Claim, Guide, GuideSection, Outcome, Stated, Text, Verdict
from kb.publish.guides import chosen_claims, render_guide
from kb.publish.page import verdict_of

GUIDE = """
title = {zh = "选型", en = "Choice"}
[[sections]]
slug = "pages"
title = {zh = "页", en = "Pages"}
intro = {zh = "先看页。", en = "Pages first."}
claims = ["eai/*"]
show = "SHOW"
"""


def claim(name: str, item: str = "url:x.example") -> Claim:
    return Claim(
        id=name, item=item, statement=Text(zh=f"说 {name}"), low=1, high=2, unit="ratio", provenance="primary"
    )


def pairs(*claims: Claim):
    return [(one, verdict_of(one, {})) for one in claims]


@pytest.mark.parametrize(
    ("show", "line"),
    [
        (
            "findings",
            "- [`eai/evict-14400`](../../systems/eai/index.md#evict-14400) 逐出九成 token 几乎不归还页 → **部分成立**",
        ),
        ("checklist", "- &#91; &#93; "),
        (
            "matrix",
            "| [eai](../../systems/eai/index.md) | [`evict-14400`](../../systems/eai/index.md#evict-14400) 逐出",
        ),
        ("timeline", "| 2026-06-10 | [eai](../../systems/eai/index.md) | [`evict-14400`]"),
    ],
)
def test_a_guide_becomes_a_page_in_the_shape_its_section_asks_for(shelf, show, line):
    shelf.base.write(shelf.root / "guides/choice.toml", GUIDE.replace("SHOW", show))
    assert shelf.kb("publish", "guides/choice") == 0
    text = (shelf.root / "published/guides/choice/index.md").read_text()
    assert text.startswith(
        "# 选型\n\n*Choice*\n\n## 页\n\n先看页。\n\nPages first.\n\n<!-- kb:begin guides/choice/pages "
    )
    assert line.replace("&#91; &#93;", "[ ]") in text
    assert "约 0–5 %" in text or show == "timeline"


def test_a_new_verdict_changes_the_guide_and_its_prose_stays(shelf):
    shelf.base.write(shelf.root / "guides/choice.toml", GUIDE.replace("SHOW", "findings"))
    shelf.kb("publish")
    page = shelf.root / "published/guides/choice/index.md"
    page.write_text(page.read_text().replace("先看页。", "我改写的一段。"))
    shelf.verdict(verdict=Outcome.CONTRADICTED)
    assert shelf.kb("publish") == 0
    assert "我改写的一段。" in page.read_text()
    assert "**不成立**" in page.read_text()


def test_a_pattern_that_matches_nothing_is_named_and_stops_nothing(shelf, capsys):
    shelf.base.write(
        shelf.root / "guides/choice.toml", GUIDE.replace("eai/*", "nosuch/*").replace("SHOW", "matrix")
    )
    assert shelf.kb("publish") == 0
    assert "guides/choice.toml: no claim matches pages: nosuch/*" in capsys.readouterr().err


def test_a_slug_used_twice_is_refused(shelf, capsys):
    text = GUIDE.replace("SHOW", "matrix")
    shelf.base.write(shelf.root / "guides/choice.toml", text + text[text.index("[[sections]]") :])
    assert shelf.kb("publish") == 2
    assert "two sections have the same slug" in capsys.readouterr().err
    assert not shelf.page.exists()


def test_claims_come_pattern_by_pattern_and_once():
    every = pairs(claim("a/x"), claim("a/y"), claim("b/x"))
    section = GuideSection(slug="s", title=Text(), claims=("b/*", "*/x", "a/*"))
    assert [c.id for c, _ in chosen_claims(section, every)] == ["b/x", "a/x", "a/y"]


def test_a_timeline_is_ordered_by_the_date_of_the_source():
    every = pairs(claim("a/none"), claim("a/new", "arxiv:2606.06302"), claim("a/old", "arxiv:2306.14048"))
    section = GuideSection(slug="s", title=Text(), claims=("a/*",), show="timeline")
    text = render_guide(Guide(path="g", title=Text(), sections=(section,)), every, {}, "en")[
        "guides/g/s"
    ].decode()
    dates = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")][2:]
    assert dates == ["| 2023-06", "| 2026-06", "| no date given"]


def test_a_topic_may_not_lie_where_other_pages_do(shelf, capsys):
    shelf.topic("systems/x")
    assert shelf.kb("publish") == 2
    assert "topics/systems/x.toml: not used" in capsys.readouterr().err


def test_the_ledger_counts_every_shown_claim_once(shelf):
    shelf.claim("vllm/default", topics=[])
    shelf.claim("vllm/heard", topics=[], provenance="memory")
    shelf.verdict("vllm/default", verdict=Outcome.BLOCKED, measured=None, level=None, source=Stated())
    shelf.kb("publish")
    text = (shelf.root / "published/ledger/index.md").read_text()
    assert "**共 3 条论断：部分成立 1，受阻 1，未验证 1。**" in text
    assert "| [eai](../systems/eai/index.md) | 2 | · | 1 | · | · | · | · | 1 |" in text
    assert "| [vllm](../systems/vllm/index.md) | 1 | · | · | · | · | · | 1 | · |" in text


def test_a_verdict_record_names_what_a_reader_can_check():
    made = verdict_of(claim("a/x"), {})
    assert made == Verdict.model_validate(made.model_dump())
    assert made.measured is None
