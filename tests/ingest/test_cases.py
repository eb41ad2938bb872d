"""The twenty command-level cases of the ingest material, on real sockets: `kb ingest` from the command line to the files.

Files come from ../shared/ingest/data and are served as recorded; without them the cases that need them are skipped.
"""

import datetime as dt
import re
from pathlib import Path

import pytest
import yaml

from kb.texts import text_of
from tests.ingest.atom import ATOM, ENTRY

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data(shared):
    return shared / "ingest/data"


def source(ended, name):
    return next(row for row in ended.json["sources"] if row["name"] == name)


def recorded(folder, start):
    """The recorded answer whose name begins so."""
    found = sorted(folder.glob(f"{start}*"))
    assert found, start
    return found[0].read_bytes()


def test_h01_three_pages_give_thirty_papers_whatever_their_order_P023_P027_P141(
    kb, web, follow, items, data, snapshot
):
    api = data / "arxiv_api"

    def page(path, _):
        start = int(re.search(r"start=(\d+)", path)[1])
        names = {0: "q_testing_s0_m10_", 10: "q_testing_s10_m10_", 20: "q_testing_s20_m10_"}
        return 200, {"content-type": "application/atom+xml"}, recorded(api, names[start])

    web.answers["/api/query"] = page
    follow("testing", kind="arxiv", url=f"{web.url}/api/query", query="testing", page=10, limit=30)
    ended = kb("ingest", "--since", "1990-01-01", "--source", "testing", "--no-triage", "--json")
    assert ended.code == 0, ended.err
    assert source(ended, "testing")["new"] == 30
    found = items()
    assert len(found) == 30
    assert all(not re.search(r"v\d+$", work) for work in found)
    assert all(str(row["version"]).isdigit() for row in found.values())
    assert all(row["submitted"] and row["updated"] for row in found.values())
    before = snapshot()
    again = kb("ingest", "--since", "1990-01-01", "--no-triage", "--json")
    assert (again.code, again.json["items"]["new"]) == (0, [])
    assert snapshot() == before


def test_h02_an_id_that_is_none_is_told_in_the_apis_own_words_and_asked_once_P011_P012(
    kb, base, web, replay_api, data
):
    replay_api(
        lambda _: (400, {"content-type": "application/atom+xml"}, recorded(data / "arxiv_api", "id_abc"))
    )
    ended = kb("ingest", "--arxiv-id", "abc", "--no-triage", "--json")
    # the case says 1; by the contract, whose exit codes these are, a name that means nothing is 2 and 1 is for findings
    assert ended.code == 2
    assert "incorrect id format for abc" in source(ended, "arxiv-id")["detail"]
    assert "incorrect id format for abc" in ended.err
    assert source(ended, "arxiv-id")["status"] == "bad-request"
    assert len(web.asked) == 1
    assert list(base.items()) == []


def test_h03_ids_the_api_leaves_out_are_listed_P013(kb, items, replay_api, data, base):
    replay_api(lambda _: (200, {}, recorded(data / "arxiv_api", "id_0808.05394_1707.08567")))
    ended = kb("ingest", "--arxiv-id", "0808.05394", "--arxiv-id", "1707.08567", "--no-triage", "--json")
    assert ended.code == 4
    assert "0808.05394" in source(ended, "arxiv-id")["detail"]
    assert source(ended, "arxiv-id")["status"] == "not-found"
    assert list(items()) == ["arxiv:1707.08567"]
    (item,) = base.items()
    assert "Dirk Wübben" in item.authors


def test_h04_an_old_style_id_makes_no_folder_P029_P033(kb, base, replay_api, data):
    replay_api(lambda _: (200, {}, recorded(data / "arxiv_api", "id_astro-ph_0601001")))
    ended = kb("ingest", "--arxiv-id", "astro-ph/0601001", "--json")
    assert ended.code == 0, ended.err
    (item,) = base.items()
    assert item.id == "arxiv:astro-ph/0601001"
    assert len(item.authors) == 4
    assert item.summary[0] != " "
    full = text_of(base, item.content_sha256) or item.summary
    assert "^{+1.39}_{-0.59}" in full
    assert not [path for path in base.root.rglob("*0601001*") if "astro-ph" in path.parts]


def test_h05_a_title_may_be_the_digit_zero_P031_P032(kb, base, items, replay_api, data):
    replay_api(lambda _: (200, {}, recorded(data / "arxiv_api", "id_2104.12255v1")))
    settings = base.root / "kb.toml"
    settings.write_text('zone = "UTC"\n[triage]\nkeep = -99.0\nwatch = -100.0\n')  # every item is drafted
    ended = kb("ingest", "--arxiv-id", "2104.12255", "--json")
    assert ended.code == 0, ended.err
    assert items()["arxiv:2104.12255"]["title"] == "0"
    assert [(item.title, item.version) for item in base.items()] == [("0", "1")]
    (draft,) = ended.json["drafts"]
    text = (base.root / draft["path"]).read_text()
    assert re.search(r"^## .* · 0$", text, re.MULTILINE), text


def test_h06_half_a_page_is_asked_again_and_never_taken_for_all_P009(kb, web, follow, base, data):
    whole = recorded(data / "arxiv_api", "q_testing_s0_m10_").replace(b">214881<", b">10<")
    half = whole[: len(whole) // 2]
    url = web.then("/api/query", (200, {}, half), (200, {}, whole))
    follow("testing", kind="arxiv", url=url, query="testing", page=10)
    ended = kb("ingest", "--since", "1990-01-01", "--no-triage", "--json")
    assert (ended.code, source(ended, "testing")["new"]) == (0, 10)
    assert len({item.id for item in base.items()}) == len(list(base.items())) == 10


def test_h06_a_page_that_stays_half_says_so_P009(kb, web, follow, data):
    whole = recorded(data / "arxiv_api", "q_testing_s0_m10_").replace(b">214881<", b">10<")
    follow(
        "testing",
        kind="arxiv",
        url=web.serve("/api/query", whole[: len(whole) // 2]),
        query="testing",
        page=10,
    )
    ended = kb("ingest", "--since", "1990-01-01", "--no-triage", "--json")
    assert ended.code == 4
    assert source(ended, "testing")["status"] == "truncated"
    assert "truncated response" in source(ended, "testing")["detail"]
    assert 0 < source(ended, "testing")["new"] < 10


def test_h07_retry_after_is_obeyed_P015_P017(web, base, follow, fake_time, monkeypatch, data):
    from kb.config import load_user
    from kb.http import Client, Limits
    from kb.http.pacing import Pacer
    from kb.ingest.choose import choose_sources
    from kb.ingest.run import ingest, open_window

    monkeypatch.setenv("KB_CONTACT", "ops@example.org")
    whole = recorded(data / "arxiv_api", "q_testing_s0_m10_").replace(b">214881<", b">10<")
    busy = (429, {"retry-after": "7"}, b"slow down")
    follow(
        "testing",
        kind="arxiv",
        url=web.then("/api/query", busy, busy, (200, {}, whole)),
        query="testing",
        page=10,
    )
    client = Client(load_user(), time=fake_time, limits=Limits(), pacer=Pacer(fake_time, base.cache / "pace"))
    with client:
        outcome = ingest(
            base, choose_sources(base, ()), open_window(base, dt.date(1990, 1, 1), None, ""), client
        )
    assert outcome.exit_code() == 0
    assert len(web.asked) == 3
    assert [round(s) for s in fake_time.slept if s >= 7] == [7, 7]
    assert all("ops@example.org" in asked.agent for asked in web.asked)


def test_h08_a_cut_off_announcement_feed_gives_its_86_papers_P049_P053_P054_P070(kb, web, follow, base, data):
    body = (data / "arxiv_rss/arxiv_atom_csAI_20250820_recorded.xml").read_bytes()
    follow("arxiv-rss", kind="arxiv_rss", url=web.serve("/atom/cs.AI", body), query="cs.AI")
    ended = kb("ingest", "--since", "2025-08-19", "--no-triage", "--json")
    row = source(ended, "arxiv-rss")
    assert (ended.code, row["status"], row["new"]) == (4, "truncated", 86)
    assert all(item.version == "1" for item in base.items())
    assert not any("Announce Type" in item.summary for item in base.items())
    from kb.http import Answer
    from kb.ingest.feeds import read_document
    from kb.ingest.sources.arxiv_rss import _read

    kinds = [_read(entry).kind for entry in read_document(Answer("http://x.org/", 200, {}, body)).entries]
    assert (kinds.count("new"), kinds.count("cross")) == (41, 45)


def test_h09_an_xml_mistake_loses_no_entry_P070(kb, web, follow, data):
    follow(
        "aws", kind="feed", url=web.serve("/feed", (data / "feeds/AmazonWebServicesBlog.xml").read_bytes())
    )
    ended = kb("ingest", "--since", "2009-01-01", "--no-triage", "--json")
    row = source(ended, "aws")
    # two of the ten were published on 29 December 2008, so the first day of 2009 leaves them out
    assert (ended.code, row["status"], row["fetched"], row["new"], row["outside"]) == (0, "ok", 10, 8, 2)
    assert source(kb("ingest", "--since", "2008-12-01", "--no-triage", "--json"), "aws")["new"] == 2
    assert row["detail"].count("not well-formed") == 1


def test_h10_cut_off_empty_and_wrong_never_look_alike_and_stop_nobody_P071_P143(kb, web, follow, data):
    feeds = data / "feeds"
    follow("a-cut", kind="feed", url=web.serve("/cut", (feeds / "rss_2.0_invalid_1.xml").read_bytes()))
    follow("b-empty", kind="feed", url=web.serve("/empty", (feeds / "newsboat_empty.xml").read_bytes()))
    follow(
        "c-page",
        kind="feed",
        url=web.serve("/page", (feeds / "notafeed.html").read_bytes(), content_type="text/html"),
    )
    follow("d-good", kind="feed", url=web.serve("/good", (feeds / "gulp-atom.atom").read_bytes()))
    ended = kb("ingest", "--no-triage", "--json")
    assert ended.code == 4
    assert [row["status"] for row in ended.json["sources"]] == ["truncated", "empty-body", "not-a-feed", "ok"]
    assert [row["new"] for row in ended.json["sources"]] == [0, 0, 0, 10]


@pytest.mark.parametrize("today", ["2026-06-15T00:00:00Z", "2026-11-30T00:00:00Z"])
def test_h11_a_chinese_date_does_not_depend_on_the_day_of_the_run_P073_P075_P083_P093(
    kb, web, follow, base, data, monkeypatch, today
):
    monkeypatch.setenv("KB_NOW", today)
    url = web.serve("/kc", (data / "feeds/kc0011.rss").read_bytes(), content_type="text/xml")
    follow("kc", kind="feed", url=url, zone="Asia/Shanghai")
    assert kb("ingest", "--since", "2020-01-10", "--no-triage", "--json").code == 0
    found = list(base.items())
    assert len({item.id for item in found}) == 20
    first = found[0]
    assert first.announced.at == "2020-01-10T14:33:00+08:00"
    assert (first.announced.zone, first.announced.assumed) == ("Asia/Shanghai", True)
    assert re.search(r"[\u4e00-\u9fff]{4}", first.title)
    assert "\ufffd" not in "".join(item.title for item in found)


def test_h12_gzip_that_nobody_announced_is_read_P096(kb, web, follow, base, data):
    follow(
        "ru",
        kind="feed",
        url=web.serve("/ru", (data / "feeds/compressed.xml").read_bytes(), content_type="text/xml"),
    )
    ended = kb("ingest", "--no-triage", "--json")
    assert (ended.code, source(ended, "ru")["new"]) == (0, 10)
    assert all(re.search(r"[\u0430-\u044f]{3}", item.title) for item in base.items())


def test_h13_json_feeds_are_read_and_rss_in_json_is_named_P095(kb, web, follow, data):
    for name in ("inessential", "ScriptingNews"):
        body = (data / f"jsonfeed/{name}.json").read_bytes()
        follow(name.lower(), kind="feed", url=web.serve(f"/{name}", body, content_type="application/json"))
    ended = kb("ingest", "--no-triage", "--json")
    assert ended.code == 4
    assert source(ended, "inessential")["new"] == 20
    assert source(ended, "scriptingnews")["status"] == "unsupported"
    assert "RSS-in-JSON, unsupported" in source(ended, "scriptingnews")["detail"]


def test_h14_not_modified_is_not_nothing_P098(kb, web, follow):
    body = ATOM.format(ENTRY.format("https://example.org/a", "A")).encode()

    def answer(_, headers):
        if headers.get("if-none-match") == 'W/"a"':
            return 304, {"etag": 'W/"a"'}, b""
        return 200, {"etag": 'W/"a"'}, body

    web.answers["/feed"] = answer
    follow("blog", kind="feed", url=f"{web.url}/feed")
    assert source(kb("ingest", "--no-triage", "--json"), "blog")["new"] == 1
    again = kb("ingest", "--no-triage", "--json")
    assert (again.code, source(again, "blog")["status"], again.json["items"]["new"]) == (
        0,
        "not-modified",
        [],
    )
    assert web.asked[-1].headers["if-none-match"] == 'W/"a"'
    assert "0 entries" not in again.out + again.err


def test_h16_code_on_a_page_is_kept_or_its_loss_is_told_P108(kb, web, base, data):
    html = data / "html"
    one = web.serve(
        "/sql-anomaly-detection",
        (html / "readability_toc-missing.html").read_bytes(),
        content_type="text/html",
    )
    two = web.serve(
        "/simdjson", (html / "trafilatura_lemire.me.json.html").read_bytes(), content_type="text/html"
    )
    ended = kb("ingest", "--url", one, "--url", two, "--no-triage", "--json")
    assert ended.code == 0, ended.err
    found = {item.title: item for item in base.items()}
    sql = found["Simple Anomaly Detection Using Plain SQL"]
    assert sql.losses["code_blocks"] == "26/26"
    assert sql.announced.at.startswith("2020-09-21")
    assert "url:hakibenita.com/sql-anomaly-detection" in (sql.id, *sql.aliases)
    text = text_of(base, sql.content_sha256)
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * 26
    other = found["JSON parsing: simdjson vs. JSON for Modern C++"]
    assert other.losses["code_blocks"] == "0/2"
    assert "code_blocks 0/2" in source(ended, "url-2")["detail"]


def test_h17_a_redirect_to_a_private_address_is_not_followed_P126_P128(kb, web):
    targets = {"/a": "http://169.254.169.254/latest", "/b": "http://[::ffff:127.0.0.1]/"}
    urls = [web.serve(path, status=302, location=target) for path, target in targets.items()]
    ended = kb("ingest", "--url", urls[0], "--url", urls[1], "--no-triage", "--json")
    assert ended.code == 4
    assert {row["status"] for row in ended.json["sources"]} == {"blocked-private-address"}
    assert [asked.path for asked in web.asked] == ["/a", "/b"] or [asked.path for asked in web.asked] == [
        "/b",
        "/a",
    ]


HOSTILE = ["---\nadmin: true\n---", "a: \"b\" 'c' # d", "title: {{7*7}} | <script>alert(1)</script>"]


def test_h18_a_title_stays_one_line_and_breaks_no_front_matter_P133(kb, web, follow, base, items):
    import html

    entries = "".join(ENTRY.format(f"https://example.org/{n}", html.escape(t)) for n, t in enumerate(HOSTILE))
    follow("blog", kind="feed", url=web.serve("/feed", ATOM.format(entries)))
    assert kb("ingest", "--json").code == 0
    titles = {row["title"] for row in items().values()}
    assert titles == {" ".join(title.split()) for title in HOSTILE}
    for path in (base.root / "inbox").rglob("*.md"):
        matter = path.read_text().split("---\n")[1]
        assert set(yaml.safe_load(matter)) <= {"kb", "curator", "date", "origin", "entries", "candidates"}
        assert "<script>" not in re.sub(r"`[^`]*`", "", path.read_text())


def test_h19_every_address_of_a_paper_leads_to_one_record_P027_P118(kb, items, base, replay_api):
    from kb.ingest.replay.content import api

    replay_api(lambda path: (200, {}, api(query_of(path)).encode()))
    urls = ["https://arxiv.org/html/2606.06302v1", "https://arxiv.org/html/2606.06302v2", "https://arxiv.org/pdf/2606.18431",
            "https://arxiv.org/abs/2606.18431", "https://doi.org/10.48550/arXiv.2606.06302"]  # fmt: skip
    ended = kb(
        "ingest", *[part for url in urls for part in ("--url", url)], "--explain", "--no-triage", "--json"
    )
    assert ended.code == 0, ended.err
    assert sorted(items()) == ["arxiv:2606.06302", "arxiv:2606.18431"]
    assert {item.version for item in base.items() if item.id == "arxiv:2606.06302"} == {"1", "2"}
    for url in urls:
        assert url in ended.err


def query_of(path):
    from urllib.parse import parse_qs, urlsplit

    return parse_qs(urlsplit(path).query)


@pytest.fixture
def replay_api(web, monkeypatch):
    """Let arXiv's API be answered by a function of the asked path."""

    def use(answer):
        monkeypatch.setenv("KB_REPLAY", web.url)
        web.answers["/export.arxiv.org/api/query"] = lambda path, _: answer(path)

    return use


@pytest.fixture
def fake_time():
    class Time:
        def __init__(self):
            self.now, self.slept = 1000.0, []

        def monotonic(self):
            return self.now

        def sleep(self, seconds):
            self.slept.append(seconds)
            self.now += seconds

        def jitter(self):
            return 0.5

    return Time()
