"""Rendering a draft: the words stay, the structure is ours, and reading it back gives the same entries."""

from pathlib import Path

import pytest
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kb.curated import read_curated
from kb.errors import BadInput
from kb.ingest.drafts.body import inline, paragraph, to_markdown

DRAFTS = sorted((Path(__file__).parent / "drafts").iterdir())


def body_of(path):
    text = path.read_text()
    return text.partition("\n---\n")[2] if text.startswith("---") else text


@pytest.mark.parametrize("path", DRAFTS, ids=lambda p: p.name)
def test_reading_the_rendered_draft_gives_the_same_entries(path):
    once = read_curated(body_of(path), path.name)
    twice = read_curated(to_markdown(once), path.name)
    said = [
        [(e.n, e.title, e.stars, e.credibility, [w.id for w in e.works]) for e in c.entries]
        for c in (once, twice)
    ]
    assert said[0] == said[1]
    assert [(c.title, c.reason) for c in once.candidates] == [(c.title, c.reason) for c in twice.candidates]
    assert [(v.entry, v.decision) for v in once.verdicts] == [(v.entry, v.decision) for v in twice.verdicts]


@pytest.mark.parametrize("path", DRAFTS, ids=lambda p: p.name)
def test_rendering_is_stable(path):
    once = to_markdown(read_curated(body_of(path), path.name))
    assert to_markdown(read_curated(once, path.name)) == once


HOSTILE = st.text(
    st.sampled_from(list("ab1#-=*_>`|[]()<>/!.:： ~+⭐1️⃣\U0001f51f\\&；一、\n\n\t")), min_size=1, max_size=120
)


def assert_ends_well(text):
    """A draft whose Markdown holds no element of the text's own, or an error that says why not."""
    try:
        curated = read_curated(text, "x")
    except BadInput:
        return
    tokens = MarkdownIt("commonmark").parse(to_markdown(curated))
    assert not any(t.type == "html_block" for t in tokens)
    inline_tokens = [child for t in tokens for child in t.children or []]
    assert not any(t.type == "html_inline" for t in inline_tokens)


@pytest.mark.parametrize(
    "text",
    [
        "## 4 · a second entry",
        "--- ",
        "===",
        "```python",
        "<!-- kb:begin x v=1 -->",
        "> quote",
        "# title",
        "| a | b |",
    ],
)
def test_no_line_of_a_draft_opens_a_block(text):
    tokens = MarkdownIt("commonmark").enable("table").parse("before\n\n" + paragraph(text) + "\n")
    assert [t.type for t in tokens if t.type.endswith("_open")] == ["paragraph_open", "paragraph_open"]


def test_a_script_address_is_no_link():
    tokens = MarkdownIt("commonmark").parse(inline("[x](javascript:alert) and [y](https://a.example)"))
    links = [c.attrGet("href") for t in tokens for c in t.children or [] if c.type == "link_open"]
    assert links == ["https://a.example"]
