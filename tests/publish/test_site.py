"""The site: only what is published, the same bytes twice, nothing hostile, nobody else's folder."""

from __future__ import annotations

import datetime as dt
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kb.publish.feed import Entry, atom, json_feed
from kb.publish.sanitise import sanitise
from kb.publish.site_content import make_site
from kb.publish.site_model import Site, gather
from kb.publish.stage import holds_html, read_page, to_site
from tests.publish.payloads import PAYLOADS
from tests.publish.test_escape import hostile_base, read

pytest.importorskip("material", reason="the extra [site] is not installed")
ATOM = "{http://www.w3.org/2005/Atom}"
DRAFT = (
    '---\nkb: draft/1\ncurator: "jay"\ndate: "2026-06-10"\nentries: []\n---\n# 六月简报\n\n## 1 · Tangram\n'
)


def tree(folder) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def content(shelf, root: str = "", stale=None) -> Site:
    """What the site's Chinese half is made of, without turning it into HTML."""
    return make_site(shelf.base, gather(shelf.base, dt.date(2026, 7, 2), stale or {}), "zh", root)


def test_only_published_records_appear_twice_the_same_and_a_held_block_says_so(shelf, tmp_path):
    """KB-PUBLISH-01"""
    accepted = ("六月简报", "七月简报", "八月简报")
    for number, title in enumerate(accepted):
        text = DRAFT.replace("六月简报", title)
        shelf.base.write(shelf.root / f"published/drafts/2026-06-1{number}-a.md", text)
    shelf.base.write(shelf.root / "review/jay/2026-06-11-b.md", DRAFT.replace("六月简报", "审阅中的简报"))
    shelf.kb("publish")
    shelf.edit("18.5 % (15.7–21.3 %)", "18.5 %（评审存疑）")
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 3
    before = shelf.bytes()
    for name in ("one", "two"):
        assert shelf.kb("site", "build", "--dir", str(tmp_path / name)) == 0
    one = tree(tmp_path / "one")
    two = tree(tmp_path / "two")
    assert [name for name in one | two if one.get(name) != two.get(name)] == []
    assert shelf.bytes() == before
    page = one["inference/kvcache/index.html"].decode()
    assert "18.5 %（评审存疑）" in page
    assert "19 % (15.7–21.3 %)" not in page
    assert "这一块有新的结果在等人决定" in page
    assert "kb:begin" not in page
    for number, title in enumerate(accepted):
        assert title in one[f"drafts/2026-06-1{number}-a/index.html"].decode()
    assert not [name for name, data in one.items() if "审阅中的简报".encode() in data]
    assert '<html lang="en"' in one["en/inference/kvcache/index.html"].decode()
    assert '<span class="kb-badge kb-partly">部分成立</span>' in page
    assert 'href="../../api/measurements/paged-eviction.json"' in one["systems/eai/index.html"].decode()
    assert json.loads(one["api/measurements/paged-eviction.json"]) == []


def test_a_draft_moved_back_leaves_a_notice_and_its_feed_id_is_not_used_again(shelf):
    """KB-PUBLISH-07"""
    shelf.base.write(shelf.root / "review/jay/2026-06-10-a.md", DRAFT)

    def ids() -> list[str]:
        shelf.kb("publish")
        feed = json.loads(content(shelf).beside["feed.json"])
        return [entry["id"] for entry in feed["items"] if "draft/" in entry["id"]]

    def move(stage: str) -> None:
        name = "jay/2026-06-10-a"
        assert shelf.kb("move", name, "--to", stage, "--reason", "x") == 0

    move("published")
    first = ids()
    move("review")
    assert ids() == []
    notice = content(shelf).pages["drafts/2026-06-10-a.md"].decode()
    assert "此页已撤回" in notice
    assert "六月简报" not in notice
    move("published")
    assert len(first) == 1
    assert set(first) & set(ids()) == set()


def test_a_withdrawn_draft_takes_no_page_away_from_one_of_the_same_name(shelf):
    for who in ("jay", "ann"):
        shelf.base.write(
            shelf.root / f"review/{who}/2026-06-10-a.md", DRAFT.replace("jay", who).replace("六月", who)
        )
        assert shelf.kb("move", f"{who}/2026-06-10-a", "--to", "published", "--reason", "x") == 0
    assert shelf.kb("move", "ann/2026-06-10-a", "--to", "review", "--reason", "x") == 0
    pages = content(shelf).pages
    assert "jay简报" in pages["drafts/2026-06-10-a.md"].decode()
    assert "此页已撤回" in pages["drafts/ann/2026-06-10-a.md"].decode()


def test_a_folder_of_somebody_else_is_not_replaced(shelf, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    assert shelf.kb("site", "build", "--dir", str(tmp_path / "mine")) == 2
    assert "kb did not build it" in capsys.readouterr().err
    assert (tmp_path / "mine/letter.txt").read_text() == "dear"


def test_serving_says_where_and_a_taken_port_is_an_answer(shelf, tmp_path):
    """Only this machine can ask; port 0 is the free one that was taken."""
    import threading
    import urllib.request
    from queue import Queue

    from kb.errors import CannotRun
    from kb.publish.site import serve_site

    (tmp_path / "index.html").write_text("hello")
    told: Queue[str] = Queue()
    threading.Thread(target=serve_site, args=(tmp_path, 0, told.put), daemon=True).start()
    url = told.get(timeout=30)
    assert urllib.request.urlopen(url, timeout=30).read() == b"hello"
    port = int(url.rstrip("/").rpartition(":")[2])
    with pytest.raises(CannotRun, match="cannot be used"):
        serve_site(tmp_path, port, told.put)


def test_a_site_of_payloads_is_inert(shelf, tmp_path):
    """All payloads at once, each as a claim of its own, plus HTML that somebody wrote into a page."""
    hostile_base(shelf, PAYLOADS[3] + PAYLOADS[14], with_figure=True)
    for number, payload in enumerate(PAYLOADS):
        shelf.claim(
            f"eai/p{number}",
            statement={"zh": payload, "en": payload},
            quote=payload,
            conditions={"x": payload},
        )
    shelf.kb("publish")
    shelf.edit("## 证据\n", "".join(f"\n{payload}\n" for payload in PAYLOADS[:6]) + "\n## 证据\n")
    assert shelf.kb("site", "build", "--dir", str(tmp_path / "site")) == 0
    site = tree(tmp_path / "site")
    pages = {name: data.decode() for name, data in site.items() if name.endswith(".html")}
    theme = len(
        re.findall(
            "<script", pages["rag/index.html"] if "rag/index.html" in pages else pages["search/index.html"]
        )
    )
    for name, html in pages.items():
        seen = read(html)
        assert not [
            key for key, value in seen.attributes if key.startswith("on") and "alert" in (value or "")
        ], name
        assert not {"iframe", "object", "embed"} & set(seen.tags), name
        assert "<script>alert" not in html, name
        assert html.count("<script") == theme, name
        targets = [value or "" for key, value in seen.attributes if key in {"href", "src", "action"}]
        assert not [t for t in targets if t.lower().startswith(("javascript:", "data:", "//"))], name
    for name in ("feed.xml", "en/feed.xml"):
        names = {element.tag.removeprefix(ATOM) for element in ET.fromstring(site[name]).iter()}
        assert names <= {
            "feed",
            "title",
            "id",
            "updated",
            "link",
            "author",
            "name",
            "entry",
            "category",
            "summary",
        }
    assert json.loads(site["feed.json"])["items"][0]["content_text"]
    assert len(json.loads(site["search/index.json"])) >= len(PAYLOADS)


def test_doors_are_described_by_schemas_and_name_what_is_untrusted(shelf):
    from kb.model import Claim

    shelf.kb("publish")
    site = content(shelf, "https://kb.example/x/")
    files = site.beside
    index = json.loads(files["api/index.json"])
    assert "quote" in index["untrusted"]
    assert all(path in files for path in index["documents"])
    rows = json.loads(files["api/claims.json"])
    assert {row["id"]: row["verdict"] for row in rows} == {
        "eai/evict-14400": "partly",
        "eai/compaction": "untested",
    }
    assert json.loads(files["api/schema/claim.json"]) == Claim.model_json_schema()
    assert b"https://kb.example/x/systems/eai/#evict-14400" in files["feed.xml"]
    llms = files["llms.txt"].decode()
    twins = re.findall(r"\]\(https://kb\.example/x/(\S+)\)", llms)
    assert "inference/kvcache/index.md" in twins
    assert all(path in files for path in twins)
    assert "untrusted" in llms


def test_the_claims_page_filters_by_every_cause_that_kb_stale_knows(shelf, capsys):
    from kb.cli.verbs.site import _stale
    from kb.publish.words import CAUSES

    shelf.claim("eai/compaction", version="1", valid_until="2026-07-01")
    shelf.item(version="2")
    assert shelf.kb("stale", "--json") == 1
    known = {(one["claim"], one["cause"]) for one in json.loads(capsys.readouterr().out)}
    assert {cause for _, cause in known} >= {"code", "environment"}
    site = content(shelf, stale=_stale(shelf.base))
    rows = re.findall(r'data-stale="([^"]*)".*?<code>([^<]*)</code>', site.pages["claims/index.md"].decode())
    shown = {(claim, cause) for causes, claim in rows for cause in causes.split()}
    untested = {("eai/compaction", "source"), ("eai/compaction", "age")}
    assert shown == known | untested, "what kb stale says, and what a claim shows that nobody has judged"
    offered = re.findall(r'<option value="([^"]+)">', site.pages["claims/index.md"].decode())
    assert set(CAUSES) <= set(offered)


def test_every_cause_of_kb_stale_has_words(shelf):
    """The causes are named where they are found; a new one must be named on the site too."""
    from kb.publish.words import CAUSES
    from kb.repro.harness import stale

    named = set(re.findall(r'Stale\(\s*verdict\.claim,\s*"(\w+)"', Path(stale.__file__).read_text()))
    assert named == set(CAUSES)


def test_the_search_index_finds_the_middle_of_every_title(shelf):
    """KB-PUBLISH-04, over the built index, in the way the site's script looks."""
    shelf.topic("inference/scheduling", title={"zh": "显存与命中率", "en": "Memory and hit rate"})
    shelf.kb("publish")
    entries = json.loads(content(shelf).beside["search/index.json"])

    def find(word: str) -> list[str]:
        return [e["u"] for e in entries if word.lower() in f"{e['t']} {e['x']}".lower()]

    assert "inference/kvcache/" in find("工程")
    assert "inference/scheduling/" in find("显存")
    assert "inference/scheduling/" in find("命中率")
    assert "systems/eai/#evict-14400" in find("2606.06302")
    assert "inference/kvcache/" in find("KV")
    for entry in entries:
        middle = entry["t"][len(entry["t"]) // 2 - 1 :][:2]
        assert entry["u"] in find(middle)


# Parts


@pytest.mark.parametrize(
    ("html", "safe"),
    [
        ("<p onclick=x>a</p>", "<p>a</p>"),
        ("<script>alert(1)</script>b", "b"),
        ("<SCRIPT SRC=//x></SCRIPT>b", "b"),
        ("<svg><script>x</script></svg>c", "c"),
        ('<a href="javascript:x">d</a>', "<a>d</a>"),
        ('<a href=" JaVaScRiPt:x">d</a>', "<a>d</a>"),
        ('<a href="https://a.example/">e</a>', '<a href="https://a.example/">e</a>'),
        ('<a href="../x/index.html#y">f</a>', '<a href="../x/index.html#y">f</a>'),
        ('<img src="https://evil.example/p.png" alt="g">', '<img alt="g">'),
        ('<img src="figures/x.svg" alt="h">', '<img src="figures/x.svg" alt="h">'),
        ("<iframe src=x>i</iframe>j", "j"),
        ("<form action=x><input name=y><b>k</b></form>", "<b>k</b>"),
        ("<style>*{}</style><!-- c -->l &lt;m&gt; &#60;", "l &lt;m&gt; &#60;"),
        ("<math><mtext><img src=x onerror=y>", ""),
    ],
)
def test_html_of_a_person_keeps_its_text_and_loses_what_acts(html, safe):
    assert sanitise(html) == safe


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ('<a id="evict-14400"></a>\n\n[x](<https://a.example/>)\n', False),
        ("a < b and 3 <4\n", False),
        ("<b>x</b>", True),
        ("<!-- note --> text", True),
        ("<!--> <script>alert(1)</script> -->", True),
        ("</div>", True),
    ],
)
def test_a_page_with_html_of_a_person_is_noticed(text, raw):
    assert holds_html(text) is raw


def test_links_out_of_the_pages_are_led_to_the_site():
    text = "![a](../../../figures/r/n.svg) [d](../../../measurements/r/) [s](../../systems/eai/index.md#x) **成立**"
    assert to_site(text, "inference/kvcache") == (
        "![a](../../figures/r/n.svg) [d](../../api/measurements/r.json) [s](../../systems/eai/index.md#x) "
        '<span class="kb-badge kb-holds">成立</span>'
    )


def test_front_matter_and_markers_do_not_reach_the_site():
    page = b"\xef\xbb\xbf---\r\ntemplate: evil.html\r\n---\r\n# a\r\n<!-- kb:begin x/y v=1 run=a sum=b -->\r\nz\r\n<!-- kb:end x/y -->\r\n"
    plain = read_page(page, [], "zh")
    assert (plain.text, plain.people) == ("# a\nz\n", "# a\n")
    assert "等人决定" in read_page(page, ["x/y"], "zh").text


def test_an_empty_feed_is_valid():
    assert ET.fromstring(atom("t", [], "")).find(f"{ATOM}updated").text == "1970-01-01T00:00:00Z"
    assert json.loads(json_feed("t", [], ""))["items"] == []
    entry = Entry("tag:x", 'a"<b>', "u/?a=1&b=2", "s & t", "2026-07-02")
    parsed = ET.fromstring(atom("t", [entry], "https://x.example/")).find(f"{ATOM}entry")
    assert parsed.find(f"{ATOM}title").text == 'a"<b>'
    assert parsed.find(f"{ATOM}link").get("href") == "https://x.example/u/?a=1&b=2"
