"""A draft shows what is in the records, counted, and nothing from outside can act in it."""

import re
from collections import Counter

import pytest
import yaml
from markdown_it import MarkdownIt

from kb.draft import read_draft, read_drafts, split_front_matter
from kb.triage.escape import address, code, inline, one_line
from kb.triage.run import run_triage

from .conftest import BAD, GOOD, make_item

HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="script"),
    pytest.param("<img src=x onerror=alert(1)>", id="image-with-handler"),
    pytest.param("--> <!-- kb:begin inference/evidence v=1 run=x sum=y -->", id="block-marker"),
    pytest.param("---\nkb: draft/1\ncurator: evil\n---", id="front-matter"),
    pytest.param('"]}\ndecision: keep\n- {n: "99", item: "evil"}', id="yaml-injection"),
    pytest.param("a | b | c\n|---|---|", id="table"),
    pytest.param("## 99 · a heading of its own\n\n# And another", id="heading"),
    pytest.param("```\n# fence\n```", id="fence"),
    pytest.param("`code` ``more`` ``", id="backticks"),
    pytest.param("[click](javascript:alert(1)) ![x](https://evil.example/pixel.png)", id="link-and-image"),
    pytest.param("[ref]: https://evil.example", id="reference-definition"),
    pytest.param("&lt;b&gt; &#60;b&#62;", id="entities"),
    pytest.param("\u202eevil\u202c \u2066x\u2069 \u200b", id="direction-and-zero-width"),
    pytest.param("\x1b[31mred\x07\x00", id="terminal"),
    pytest.param("\ud800 lone", id="lone-surrogate"),
    pytest.param("{{ 7 * 7 }} {% raw %} {# c #}", id="template"),
    pytest.param("*bold* _em_ ~~gone~~ __strong__", id="emphasis"),
    pytest.param("https://evil.example www.evil.example", id="bare-address"),
    pytest.param("- item\n- item\n1. one\n> quote", id="lists-and-quote"),
    pytest.param("a\u2028b\u2029c\x85d", id="odd-line-ends"),
    pytest.param("$x$ $$y$$ \\(z\\)", id="mathematics"),
    pytest.param("!include ../../etc/passwd", id="yaml-tag"),
    pytest.param("x" * 5000, id="very-long"),
]
MD = MarkdownIt("gfm-like", {"linkify": False})


def shape(body):
    """Headings, tables and raw HTML of a text, as a reader of Markdown sees them."""
    tokens = MD.parse(body)
    kinds = Counter(
        t.type for t in tokens if t.type in {"heading_open", "table_open", "html_block", "fence", "hr"}
    )
    inner = Counter(c.type for t in tokens for c in t.children or ())
    return kinds, {
        k: inner[k]
        for k in ("html_inline", "link_open", "image", "code_inline", "strong_open", "em_open", "s_open")
    }


def drafted(base, title, summary):
    base.append_items([make_item("url:kv.example/post", title=title, summary=summary)])
    run_triage(base)
    [(found, draft)] = read_drafts(base)
    return draft, split_front_matter(found.path.read_text(encoding="utf-8"), "x")[1], found


@pytest.mark.parametrize("payload", HOSTILE)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hostile_title_or_summary_is_text_and_nothing_else(shelf, payload, language):
    settings = shelf.root / "kb.toml"
    settings.write_text(settings.read_text().replace('"en"', f'"{language}"'))
    title, summary = GOOD["title"], GOOD["summary"]
    payload_in_json = payload.encode("utf-8", "replace").decode() if "\ud800" in payload else payload
    draft, body, found = drafted(
        shelf, f"{title} {payload_in_json}"[:400], f"{payload_in_json[:120]} 3x. {summary}"[:500]
    )
    assert [entry.item for entry in draft.entries] == ["url:kv.example/post"]
    assert draft.curator == "kb"
    kinds, inner = shape(body)
    tables = 3 if draft.candidates == () else 4
    assert kinds == {"heading_open": 11, "table_open": tables + 1}
    assert (
        inner["html_inline"]
        == inner["image"]
        == inner["strong_open"]
        == inner["em_open"]
        == inner["s_open"]
        == 0
    )
    assert inner["link_open"] == 2
    assert not re.search(r"<(?!https?://)[a-zA-Z/!]", body)
    assert "\x1b" not in body
    assert read_draft(found.path)[0] == draft
    yaml.safe_load(found.path.read_text(encoding="utf-8").split("---\n")[1])


@pytest.mark.parametrize("payload", HOSTILE)
def test_escaped_text_reads_as_it_was_written(payload):
    shown = re.sub(r"<[^>]+>", "", MD.render(f"x {inline(payload)}")).strip()
    import html

    assert html.unescape(shown) == f"x {one_line(payload)}".strip()


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("https://a.example/x y>z", "https://a.example/x%20y%3Ez"),
        ("https://a.example/'\"<b>", "https://a.example/'%22%3Cb%3E"),
        ("http://[::1", ""),
        ("//a.example", ""),
        ("https://a.example:99999/", ""),
    ],
)
def test_only_a_web_address_becomes_a_link(url, safe):
    assert address(url) == safe


def test_a_code_span_cannot_be_left():
    assert code("a`b|c\nd") == "`a?b?c d`"


def test_every_figure_in_it_is_counted(shelf):
    shelf.append_items([make_item(**GOOD), make_item("url:hype.example/p", **BAD)])
    run_triage(shelf)
    [(found, draft)] = read_drafts(shelf)
    text = found.path.read_text()
    assert "Assessed in this run: 2 items, of which kept 1, watched 0, dropped 1, duplicates 0" in text
    assert f"In this draft: {len(draft.entries)} entries (kept 1, watched 0); below the threshold 1" in text
    assert "feed × 2" in text
    assert text.count("\n## 1 · ") == 1


def test_tags_are_counted_by_entry(shelf):
    other = make_item(
        "arxiv:2607.00002", title="KV cache quantisation in SGLang", summary=GOOD["summary"][::-1]
    )
    shelf.append_items([make_item(**GOOD), other])
    run_triage(shelf)
    for found, draft in read_drafts(shelf):
        rows = re.findall(r"^\| ([^|]+) \| (\d+) \| ([\d, ]+) \|$", found.path.read_text(), re.MULTILINE)
        assert rows
        for _, count, numbers in rows:
            assert int(count) == len(numbers.split(", "))
            assert set(numbers.split(", ")) <= {entry.n for entry in draft.entries}


def test_quotes_are_verbatim_and_short(shelf):
    _, body, _ = drafted(shelf, GOOD["title"], GOOD["summary"])
    quotes = re.findall(r"^  - “(.*)”$", body, re.MULTILINE)
    assert 1 <= len(quotes) <= 3
    assert all(quote in GOOD["summary"] and len(quote) <= 200 for quote in quotes)


def test_an_entry_that_says_much_the_same_as_an_earlier_one_is_called_repeated(shelf):
    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    words = GOOD["summary"].split()
    near = " ".join(words[:32]) + " Unlike others we keep sinks."
    shelf.append_items([make_item("arxiv:2607.00002", title="Moving KV cache pages", summary=near)])
    run_triage(shelf)
    text = "".join(found.path.read_text() for found, _ in read_drafts(shelf))
    assert re.search(r"\| 1 \| repeated \| kb/2026-07-02-inference-kvcache#1 \|", text)


def test_earlier_drafts_of_the_same_day_and_topic_are_named(shelf):
    shelf.append_items([make_item(**GOOD)])
    run_triage(shelf)
    other = make_item(
        "arxiv:2607.00002", title="KV cache quantisation", summary=GOOD["summary"][::-1] + " 2x than before"
    )
    shelf.append_items([other])
    run_triage(shelf)
    second = next(f for f, d in read_drafts(shelf) if d.entries[0].item == "arxiv:2607.00002")
    assert (
        "| all | same topic | kb/2026-07-02-inference-kvcache (inbox) | 1 entries: 1 |"
        in second.path.read_text()
    )
    assert "draft 2 of the day" in second.path.read_text()


def test_a_claim_that_our_numbers_contradict_is_named(shelf):
    from kb.model import Interval, Stated, Verdict

    (shelf.root / "claims").mkdir()
    (shelf.root / "claims/toy.toml").write_text(
        '[[claim]]\nid = "toy/x"\nitem = "arxiv:2607.00001"\nstatement = {zh = "快", en = "fast"}\nprovenance = "primary"\n'
    )
    measured = Interval(low=1, value=1, high=1, n=3, unit="ratio")
    verdict = Verdict(
        claim="toy/x",
        verdict="contradicted",
        level="derived",
        source=Stated(),
        measured=measured,
        reason="1.0 where 1.8 was said",
    )
    shelf.write_verdicts("toy", [verdict])
    _, body, _ = None, *drafted_paper(shelf)
    assert "| 1 | contradicted | toy/x | 1.0 where 1.8 was said |" in body


def drafted_paper(base):
    base.append_items([make_item(**GOOD)])
    run_triage(base)
    [(found, _)] = read_drafts(base)
    return found.path.read_text(), found
