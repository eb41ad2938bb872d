"""Whatever a source calls itself, on a page it is text: for a reader of Markdown, of HTML and of an SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kb.markers import find_blocks
from kb.model import Interval, Text
from kb.publish.escape import address, code, link, markdown, one_line
from kb.publish.figures import draw
from tests.publish.payloads import PAYLOADS

READERS = {
    "commonmark with tables": MarkdownIt("commonmark").enable("table"),
    "with strikethrough and html": MarkdownIt("default", {"html": True}).enable("table"),
}
ALLOWED = {
    "h1", "h2", "h3", "p", "em", "strong", "blockquote", "a", "code", "ul", "li", "table", "thead", "tbody", "tr", "th",
    "td", "img",
}  # fmt: skip


class Seen(HTMLParser):
    """Tags, attributes and text of an HTML document."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text, self.comments = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        self.comments.append(data)


def read(html: str) -> Seen:
    seen = Seen()
    seen.feed(html)
    seen.close()
    return seen


def hostile_base(shelf, payload: str, *, with_figure: bool) -> None:
    """A published base in which every field that comes from outside is the payload."""
    relay = {"draft": payload, "said": payload, "match": payload}
    text = {"zh": payload, "en": payload}
    shelf.claim(
        statement=text, quote=payload, locator=payload, baseline=payload, conditions={payload: payload}, relayed=[relay],
        doubt=text, planned=payload, unit=payload, version="1", metric=payload, valid_until=payload,
    )  # fmt: skip
    shelf.claim("eai/compaction", statement=text, item=payload, planned=payload, provenance="primary")
    interval = Interval(low=1, value=2, high=3, n=4, unit=payload)
    shelf.verdict(
        reason=payload, reason_zh=payload, repro=payload, machine=payload, at=payload, cases={payload: interval},
        measured=interval, insensitive=payload, run=payload,
    )  # fmt: skip
    if with_figure:
        shelf.figure(title=Text(zh=payload, en=payload), alt=Text(zh=payload, en=payload), x=Text(zh=payload))
    else:
        shelf.base.figure_path("paged-eviction", "freed", "json").unlink()  # drawing takes most of the time
    shelf.item(title=payload, url=payload, authors=[payload], notices=[payload])
    entry = '{n: "1", item: "arxiv:2606.06302", decision: keep, topics: [inference/kvcache]}'
    head = f'---\nkb: draft/1\ncurator: "x"\ndate: "2026-06-10"\nentries: [{entry}]\n---\n'
    shelf.base.write(shelf.root / "published/drafts/2026-06-10-x.md", head)
    assert shelf.kb("publish") == 0


@pytest.mark.parametrize("payload", PAYLOADS)
def test_pages_made_of_a_payload_are_inert(shelf, payload):
    with_figure = payload == PAYLOADS[13]
    hostile_base(shelf, payload, with_figure=with_figure)
    expected = {
        shelf.page: (["evidence", "figure-freed", "reading"], 1, 2)
        if with_figure
        else (["evidence", "reading"], 0, 2),
        shelf.root / "published/systems/eai/index.md": (["claims"], 0, 0),
    }
    for path, (names, images, rows) in expected.items():
        text = path.read_text()
        blocks, problems = find_blocks(text.encode())
        assert ([b.id.rsplit("/", 1)[1] for b in blocks], problems) == (names, [])
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
        for name, reader in READERS.items():
            seen = read(reader.render(text))
            assert set(seen.tags) <= ALLOWED, name
            assert (seen.tags.count("img"), seen.tags.count("tr")) == (images, rows), name
            assert not [key for key, _ in seen.attributes if key.startswith("on") or key == "style"], name
            targets = [unescape(value) for key, value in seen.attributes if key in {"href", "src"}]
            assert all(re.match(r"\.\./|https?://", target) for target in targets), name
            assert not [t for t in targets if t.startswith("http") and "evil" in t and payload != t], name
            assert len(seen.comments) == 2 * len(names), "only our own markers"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_figure_made_of_a_payload_is_inert(shelf, payload):
    text = Text(zh=payload, en=payload)
    figure = shelf.figure(title=text, alt=text, x=text, y=text)
    svg = draw(figure, "zh")
    root = ET.fromstring(svg)
    names = {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
    assert names <= {
        "svg",
        "title",
        "desc",
        "defs",
        "style",
        "g",
        "path",
        "use",
        "text",
        "tspan",
        "clipPath",
        "rect",
    }
    assert not [k for element in root.iter() for k in element.attrib if k.lower().startswith("on")]
    assert root.find("{http://www.w3.org/2000/svg}desc").text == one_line(payload, 120)


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None, database=None)
def test_any_text_reads_back_as_itself(text):
    """What a reader sees is the text on one line; nothing of it acts."""
    for reader in READERS.values():
        for around in ("{}", "x {} y", "- {}", "| {} |\n| --- |\n"):
            shown = read(reader.render(around.format(markdown(text))))
            expected = " ".join(
                around.replace("| --- |", "")
                .replace("- {}", "{}")
                .replace("|", "")
                .format(one_line(text))
                .split()
            )
            assert " ".join("".join(shown.text).split()) == expected
            assert set(shown.tags) <= {"p", "ul", "li", "table", "thead", "tr", "th"}


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://a.example/x?y=1&z=2#f", "https://a.example/x?y=1&z=2#f"),
        ("https://a.example/中文 x", "https://a.example/%E4%B8%AD%E6%96%87%20x"),
        ("https://a.example/)>`'\"|*_[", "https://a.example/%29%3E%60%27%22%7C%2A_%5B"),
        ("javascript:alert(1)", ""),
        ("JaVaScRiPt:alert(1)", ""),
        ("data:text/html,x", ""),
        ("//evil.example", ""),
        ("https://", ""),
        ("http://[broken", ""),
        ("", ""),
    ],
)
def test_only_web_addresses_become_targets(url, safe):
    assert address(url) == safe


def test_a_link_without_a_usable_address_is_only_its_text():
    assert link("a_b", "javascript:x") == markdown("a_b")
    assert link("a", "https://x.example/") == "[a](<https://x.example/>)"


def test_a_code_span_cannot_be_ended():
    assert code("a`b|c\n<d>") == "`a?b?c ?d?`"
