"""A marker counts where Markdown would treat it as a comment of its own, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.markers import begin_marker, end_marker, find_blocks, sum_of

BEGIN = begin_marker("a/b", "r1", b"x\n")
END = end_marker("a/b")
REAL = BEGIN + b"\nx\n" + END + b"\n"


def ids(page: bytes) -> list[str]:
    return [block.id for block in find_blocks(page)[0]]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(b"```\n" + REAL + b"```\n", id="in a fence"),
        pytest.param(b"~~~~md\n" + REAL + b"~~~\n~~~~\n", id="in a tilde fence with a shorter one inside"),
        pytest.param(b"".join(b"    " + line + b"\n" for line in REAL.splitlines()), id="in indented code"),
        pytest.param(b"text `" + BEGIN + b"` and `" + END + b"`\n", id="as inline code"),
        pytest.param(b"---\nnote: |\n  " + BEGIN + b"\n  " + END + b"\n---\ntext\n", id="in front matter"),
        pytest.param(b"<pre>\n" + REAL + b"</pre>\n", id="in a pre element"),
        pytest.param(b"<!-- an example\n" + BEGIN + b"\ntext\n", id="inside another comment"),
        pytest.param(b"- item\n\n  ```\n  " + BEGIN + b"\n  ```\n", id="in a fence of a list item"),
        pytest.param(b"> ```\n> " + BEGIN + b"\n> ```\n", id="in a fence of a quotation"),
    ],
)
def test_a_quoted_marker_is_text(page):
    assert find_blocks(page) == ([], [])


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(REAL, id="at the start"),
        pytest.param(b"paragraph\n" + REAL, id="right under a paragraph"),
        pytest.param(b"- item\n" + REAL + b"- item\n", id="between list items"),
        pytest.param(REAL.replace(b"\n", b"\r\n"), id="with CRLF"),
        pytest.param(REAL.rstrip(b"\n"), id="without a final newline"),
        pytest.param(b"\xff\xfe broken bytes \xe4\xb8\n" + REAL, id="after bytes that are not UTF-8"),
        pytest.param(
            "\u2028 \x85 \x0b \x0c 分隔\n".encode() + REAL, id="after characters that only look like newlines"
        ),
        pytest.param(b"\xef\xbb\xbf" + b"text\n" + REAL, id="after a byte order mark"),
        pytest.param(
            b"```\n" + END + b"\n```\n" + REAL + b"```\n" + BEGIN + b"\n```\n", id="between quoted markers"
        ),
        pytest.param(b"---\ntitle: x\n---\n" + REAL, id="after front matter"),
    ],
)
def test_a_marker_on_its_own_line_counts(page):
    blocks, problems = find_blocks(page)
    assert (ids(page), problems) == (["a/b"], [])
    assert blocks[0].inner(page) == b"x\n"
    assert blocks[0].sum == sum_of(blocks[0].inner(page))


@pytest.mark.parametrize(
    ("page", "line", "why"),
    [
        pytest.param(b"text\n" + BEGIN + b"\nx\n", 2, "has no kb:end", id="end missing"),
        pytest.param(END + b"\n", 1, "has no kb:begin", id="begin missing"),
        pytest.param(BEGIN + b"\n" + REAL, 1, "has no kb:end", id="block inside a block"),
        pytest.param(REAL + b"\n" + REAL, 1, "occurs twice", id="same id twice"),
        pytest.param(BEGIN + b"\n```\nx\n" + END + b"\n", 1, "has no kb:end", id="open fence inside"),
        pytest.param(
            REAL.replace(b"kb:begin a/b", b"kb:begin A B"), 1, "not a kb:begin marker", id="no usable id"
        ),
        pytest.param(REAL.replace(b" sum=", b" som="), 1, "not a kb:begin marker", id="half a marker"),
    ],
)
def test_a_marker_without_its_partner_is_named_with_its_line(page, line, why):
    _, problems = find_blocks(page)
    assert problems[0].line == line
    assert why in problems[0].why


def test_the_sum_does_not_depend_on_line_endings():
    assert sum_of(b"a\r\nb\r\n") == sum_of(b"a\nb\n") != sum_of(b"a\nb")


LINES = st.sampled_from([
    begin_marker("a/x", "r", b"").decode(), end_marker("a/x").decode(), "   <!-- kb:begin b -->", "  <!--kb:end b-->  ", " <!-- kb:end b --> x",
    '<a id="n"></a>', "", "", "text", "text <b>", "- item", "  - item", "1. one", "> said", "> <!-- kb:begin q -->", "- <!-- kb:begin q -->",
    "    <!-- kb:begin code -->", "\t<!-- kb:begin code -->", "[name]:", "===", "---", "| a | b |", "<div>", "<!-- open", "-->", "<pre>", "```", "~~~",
    "- ```", "\\<!-- kb:begin x -->", "## h", "\x0b<p>", "<a href=x>",
])  # fmt: skip


@settings(max_examples=600)
@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_short_way_finds_what_the_parser_finds(lines, ending):
    """Where a page is plain, its lines are read without the Markdown parser; the answer is the same."""
    page = ending.join(lines).encode()
    quick = find_blocks(page)
    slow = find_blocks(page + b"\n\n```\n```\n")  # a fence anywhere makes the parser read the page
    assert [(b.id, b.line) for b in quick[0]] == [(b.id, b.line) for b in slow[0]]
    assert [(p.line, p.why) for p in quick[1]] == [(p.line, p.why) for p in slow[1]]
