"""Every kind of source against its service, as it answers and as it fails."""

import json
import re
import stat
from pathlib import Path

import pytest

from kb.ingest.contract import SOURCES, Source, kinds
from kb.ingest.replay.content import api, papers, posts
from kb.store import Base
from tests.ingest.test_cases import ATOM, ENTRY, query_of, source


@pytest.fixture
def ingest(kb):
    def run(*args):
        return kb("ingest", "--no-triage", "--json", *args)

    return run


# The contract of a unit


@pytest.mark.parametrize("path", sorted(SOURCES.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_module_of_the_folder_is_a_kind(path):
    module = next((module for module in kinds().values() if Path(module.__file__) == path), None)
    assert module is not None, f"{path.name} has no KIND"
    unit: Source = module
    assert re.fullmatch(r"[a-z][a-z_]*", unit.KIND)
    assert callable(unit.fetch)
    assert callable(unit.to_entry)
    assert "\n" in module.__doc__.strip(), "it says what it covers, how it is asked and how identity works"


def test_every_shipped_source_can_be_used_and_says_why():
    shipped = Base(Path(__file__).resolve().parents[2] / "shared/research-kb").sources()
    topics = Base(Path(__file__).resolve().parents[2] / "shared/research-kb").topics()
    assert len(shipped) >= 10
    for found in shipped.values():
        assert found.kind in kinds(), found.name
        assert len(found.why) > 10
        assert set(found.topics) <= set(topics), found.name
        assert not found.program


def test_the_replay_server_answers_every_shipped_source():
    from kb.ingest.replay.content import answer, place_of

    shipped = Base(Path(__file__).resolve().parents[2] / "shared/research-kb").sources()
    missing = [
        found.name for found in shipped.values() if answer(place_of(found.url), "id_list=2606.06302") is None
    ]
    assert missing == []
    assert all(80 <= len(paper.summary.split()) <= 150 for paper in papers().values())
    assert all(post.title and post.markup for post in posts().values())


# arXiv's announcement feed


def announced(number, kind="new", day="2026-07-02"):
    return (
        f"<entry><id>oai:arXiv.org:{number}</id><title>Paper {number}</title><link href='https://arxiv.org/abs/{number[:10]}'/>"
        f"<published>{day}T00:00:00-04:00</published><updated>{day}T04:00:00Z</updated>"
        f"<summary>arXiv:{number} Announce Type: {kind}\nAbstract: Words of {number}.</summary>"
        f"<author><name>Andr\\'e Lima, B. Writer</name></author></entry>"
    )


def test_announced_papers_are_looked_up_and_keep_their_day_P047_P054(web, follow, ingest, base):
    body = ATOM.format(announced("2606.06302v2") + announced("2606.18431v1", "cross"))
    web.answers["/api"] = lambda path, _: (200, {}, api(query_of(path)).encode())
    follow("rss", kind="arxiv_rss", url=web.serve("/atom", body), api=f"{web.url}/api")
    assert source(ingest("--since", "2026-07-01"), "rss")["new"] == 2
    tangram = next(item for item in base.items() if item.id == "arxiv:2606.06302")
    assert tangram.title.startswith("Tangram: ")
    assert tangram.submitted.at.startswith("2026-06-04")
    assert (tangram.announced.at, tangram.announced.field) == ("2026-07-02T00:00:00-04:00", "published")


def test_without_the_api_the_feed_itself_counts_with_readable_names_P035(web, follow, ingest, base):
    follow("rss", kind="arxiv_rss", url=web.serve("/atom", ATOM.format(announced("2607.00001v1"))))
    assert source(ingest("--since", "2026-07-01"), "rss")["new"] == 1
    (item,) = base.items()
    assert item.authors == ("André Lima", "B. Writer")
    assert item.summary == "Words of 2607.00001v1."


def test_a_replacement_counts_only_for_a_known_paper_P049(web, follow, ingest, base):
    follow("rss", kind="arxiv_rss", url=web.serve("/atom", ATOM.format(announced("2607.00001v1"))))
    ingest("--since", "2026-07-01")
    web.serve(
        "/atom", ATOM.format(announced("2607.00001v2", "replace") + announced("1801.00009v4", "replace"))
    )
    ended = ingest("--since", "2026-07-01")
    assert (source(ended, "rss")["updated"], source(ended, "rss")["outside"]) == (1, 1)
    assert {item.version for item in base.items()} == {"1", "2"}


def test_yesterdays_batch_is_stale_and_an_empty_weekend_is_none_P046_P048(web, follow, ingest, monkeypatch):
    follow(
        "rss",
        kind="arxiv_rss",
        url=web.serve("/atom", ATOM.format(announced("2607.00001v1", day="2026-07-01"))),
    )
    monkeypatch.setenv("KB_NOW", "2026-07-01T12:00:00Z")
    assert ingest("--since", "2026-07-01").code == 0
    monkeypatch.setenv("KB_NOW", "2026-07-02T12:00:00Z")
    assert source(ingest("--since", "2026-07-01"), "rss")["status"] == "stale-batch"
    web.serve("/atom", ATOM.format(""))
    monkeypatch.setenv("KB_NOW", "2026-07-04T12:00:00Z")
    ended = ingest("--since", "2026-07-01")
    assert (ended.code, source(ended, "rss")["status"]) == (0, "no-news")
    assert "weekend" in source(ended, "rss")["detail"]


# OAI-PMH

OAI = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>{}</ListRecords></OAI-PMH>'


def record(number, created="2026-06-20", stamp="2026-06-25", comment=""):
    return (
        f"<record><header><identifier>oai:arXiv.org:{number}</identifier><datestamp>{stamp}</datestamp></header><metadata>"
        f'<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>{number}</id><created>{created}</created><title>Paper {number}</title>'
        f'<authors><author><keyname>Gr\\"afe</keyname><forenames>K.</forenames></author></authors>'
        f"<comments>{comment}</comments><abstract>Words.</abstract></arXiv></metadata></record>"
    )


def test_pages_follow_tokens_and_a_touched_old_record_is_no_news_P059_P060_P062(web, follow, ingest, base):
    def answer(path, _):
        if "resumptionToken=t1" in path:
            return 200, {}, OAI.format(record("2606.20002")).encode()
        touched = record("1009.1022", created="2010-09-06")
        return (
            200,
            {},
            OAI.format(record("2606.20001") + touched + "<resumptionToken>t1</resumptionToken>").encode(),
        )

    web.answers["/oai"] = answer
    follow("oai", kind="oai", url=f"{web.url}/oai", query="cs:cs:DC")
    ended = ingest("--since", "2026-06-15")
    assert (source(ended, "oai")["new"], source(ended, "oai")["outside"]) == (2, 1)
    assert "from=2026-06-08" in web.asked[0].path
    assert {item.id for item in base.items()} == {"arxiv:2606.20001", "arxiv:2606.20002"}
    assert next(base.items()).authors == ("K. Gräfe",)


def test_an_expired_token_starts_over_once(web, follow, ingest):
    expired = (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><error code="badResumptionToken"/></OAI-PMH>'
    )
    first = OAI.format(record("2606.20001") + "<resumptionToken>t1</resumptionToken>").encode()
    web.then(
        "/oai",
        (200, {}, first),
        (200, {}, expired.encode()),
        (200, {}, OAI.format(record("2606.20001")).encode()),
    )
    follow("oai", kind="oai", url=f"{web.url}/oai")
    ended = ingest("--since", "2026-06-15")
    assert (ended.code, source(ended, "oai")["new"], source(ended, "oai")["known"]) == (0, 1, 1)


def test_a_deleted_record_becomes_a_notice_and_the_item_stays_P065(web, follow, ingest, base):
    follow("oai", kind="oai", url=web.serve("/oai", OAI.format(record("2606.20001"))))
    ingest("--since", "2026-06-15")
    gone = (
        "<record><header status='deleted'><identifier>oai:arXiv.org:2606.20001</identifier></header></record>"
    )
    web.serve("/oai", OAI.format(gone))
    for _ in range(2):
        assert ingest("--since", "2026-06-15").code == 0
    assert [bool(item.notices) for item in base.items()] == [False, True]
    web.serve("/oai", OAI.format(record("2606.20001")))
    assert source(ingest("--since", "2026-06-15"), "oai")["known"] == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [('<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><error code="noRecordsMatch"/></OAI-PMH>', "no-news", 0),
     (OAI.format(record("2606.20001"))[:300], "truncated", 4), ("", "empty-body", 4), ("<html/>", "not-a-feed", 4)],
)  # fmt: skip
def test_nothing_and_broken_never_look_alike_P064_P068(web, follow, ingest, body, status, code):
    follow("oai", kind="oai", url=web.serve("/oai", body))
    ended = ingest("--since", "2026-06-15")
    assert (source(ended, "oai")["status"], ended.code) == (status, code)


# arXiv's API


def test_an_api_that_gives_papers_of_other_days_is_told_P005(web, follow, ingest):
    web.answers["/api"] = lambda _, __: (200, {}, api({"id_list": ["2605.11186"]}).encode())
    follow("cat", kind="arxiv", url=f"{web.url}/api", query="cat:cs.LG")
    assert source(ingest("--since", "2026-06-15"), "cat")["status"] == "server-order-violated"


def test_an_empty_answer_is_doubted_P007(web, follow, ingest):
    def empty_for_dates(path, _):
        query = query_of(path)
        if "submittedDate" in query["search_query"][0]:
            return 200, {}, api({"id_list": [""]}).encode()
        return 200, {}, api({"id_list": ["2606.29986"]}).encode()

    web.answers["/api"] = empty_for_dates
    follow("cat", kind="arxiv", url=f"{web.url}/api", query="cat:cs.AR")
    ended = ingest("--since", "2026-06-28")
    assert (ended.code, source(ended, "cat")["status"]) == (4, "partial")


def test_html_with_status_200_is_no_feed_P010(web, follow, ingest):
    follow(
        "cat",
        kind="arxiv",
        url=web.serve("/api", "<html><body>Rate exceeded.</body></html>"),
        query="cat:cs.AR",
    )
    assert source(ingest("--since", "2026-06-28"), "cat")["status"] == "not-a-feed"


def test_dates_are_sent_with_twelve_digits_P004(web, follow, ingest):
    follow("cat", kind="arxiv", url=web.serve("/api", api({"id_list": [""]})), query="cat:cs.AR")
    ingest("--since", "2026-06-28")
    asked = query_of(web.asked[0].path)["search_query"][0]
    assert re.search(r"submittedDate:\[202606210000 TO 202607030000\]", asked)


# Releases, programs, searches


def test_a_release_is_called_by_its_repository(web, follow, ingest, base):
    entry = ENTRY.format("https://github.com/vllm-project/vllm/releases/tag/v0.20.2", "v0.20.2")
    follow("vllm", kind="github_releases", url=web.serve("/r", ATOM.format(entry)))
    assert ingest().code == 0
    assert [item.title for item in base.items()] == ["vllm v0.20.2"]


def program(tmp_path, text):
    path = tmp_path / "source.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


FEED = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [{"id": "1", "url": "https://example.org/1", "title": "P"}],
    }
)


def test_a_program_runs_only_if_the_users_own_list_names_it(tmp_path, follow, ingest, monkeypatch):
    touched = tmp_path / "ran"
    path = program(tmp_path, f"touch {touched}; echo '{FEED}'")
    follow("own", kind="exec", program=path)
    ended = ingest()
    assert (ended.code, source(ended, "own")["status"], touched.exists()) == (4, "refused", False)
    monkeypatch.setenv("KB_ALLOW", path)
    assert source(ingest(), "own")["new"] == 1
    assert touched.exists()


@pytest.mark.parametrize(
    ("script", "status"), [("echo no json", "not-a-feed"), ("exit 3", "unreachable"), ("true", "empty-body")]
)
def test_a_program_that_fails_is_told(tmp_path, follow, ingest, monkeypatch, script, status):
    path = program(tmp_path, script)
    monkeypatch.setenv("KB_ALLOW", path)
    follow("own", kind="exec", program=path)
    assert source(ingest(), "own")["status"] == status


def test_what_a_program_leaves_running_holds_nobody_up(tmp_path, follow, ingest, monkeypatch):
    path = program(tmp_path, f"sleep 600 & echo '{FEED}'")
    monkeypatch.setenv("KB_ALLOW", path)
    follow("own", kind="exec", program=path)
    ended = ingest()
    assert (source(ended, "own")["new"], source(ended, "own")["seconds"] < 30) == (1, True)


def test_hits_of_a_search_are_fetched_and_dated_themselves(web, follow, ingest, monkeypatch, base):
    from kb.ingest.replay.content import page

    post = next(post for post in posts().values() if post.publisher == "Red Hat Developer")
    hit = web.serve("/post", page(post), content_type="text/html")
    web.serve(
        "/search",
        json.dumps({"results": [{"url": hit, "title": "x"}, {"url": web.url + "/none", "title": "gone"}]}),
    )
    follow("search", kind="web_search", query="kv cache")
    assert source(ingest("--since", "2026-06-01"), "search")["status"] == "refused"
    monkeypatch.setenv("KB_SEARCH_KEY", "s3cret")
    monkeypatch.setenv("KB_SEARCH_URL", f"{web.url}/search")
    ended = ingest("--since", "2026-06-01")
    assert (source(ended, "search")["new"], source(ended, "search")["unusable"]) == (1, 1)
    (item,) = base.items()
    assert (item.title, item.announced.at) == (post.title, "2026-06-24")
    assert [asked.headers.get("authorization") for asked in web.asked if "search" not in asked.path] == [
        None,
        None,
    ]
    follow("search", kind="web_search", query="x", url="https://evil.example.org/")
    assert source(ingest("--since", "2026-06-01"), "search")["status"] == "refused"


# The verbs


def test_all_sources_down_ends_with_4(web, follow, ingest):
    follow("a", kind="feed", url=web.url + "/a")
    follow("b", kind="feed", url="http://127.0.0.1:9/")
    assert ingest().code == 4


def test_offline_ends_with_5(follow, ingest, monkeypatch):
    monkeypatch.setenv("KB_OFFLINE", "1")
    follow("a", kind="feed", url="http://example.org/a")
    assert ingest().code == 5


def test_an_unknown_source_or_kind_ends_with_2(follow, ingest):
    follow("blog", kind="feed", url="http://example.org/a")
    assert ingest("--source", "blgo").code == 2
    assert "did you mean blog" in ingest("--source", "blgo").err
    follow("bad", kind="fead", url="http://example.org/a")
    assert ingest("--source", "bad").code == 2


def test_dry_run_writes_nothing(web, follow, ingest, snapshot):
    follow("blog", kind="feed", url=web.serve("/f", ATOM.format(ENTRY.format("https://example.org/a", "A"))))
    before = snapshot()
    assert ingest("--dry-run").json["items"]["new"] == ["url:example.org/a"]
    assert snapshot() == before
    assert ingest().json["items"]["new"] == ["url:example.org/a"]


def test_events_are_json_lines_on_stderr(web, follow, ingest):
    follow("blog", kind="feed", url=web.serve("/f", ATOM.format("")))
    events = [json.loads(line) for line in ingest("--events").err.splitlines()]
    assert [event["event"] for event in events] == ["start", "fetch", "source", "end"]


def test_sources_are_listed_and_tested(kb, web, follow):
    follow("blog", kind="feed", url=web.serve("/f", ATOM.format(ENTRY.format("https://example.org/a", "A"))))
    follow("docs", kind="page", url=web.url + "/none")
    assert {row["name"] for row in kb("sources", "list", "--json").json} == {"blog", "docs"}
    ended = kb("sources", "test", "--json")
    assert ended.code == 4
    assert {row["name"]: (row["status"], row["note"]) for row in ended.json} == {
        "blog": ("ok", ""),
        "docs": ("not-found", "no feed: the page itself is watched"),
    }
    assert kb("sources", "test", "blog").code == 0


def test_hostile_servers_are_refused_with_their_status_and_the_others_finish(web, follow, ingest):
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([packer.compress(bytes(1 << 20)) for _ in range(40)] + [packer.flush()])
    hostile = {
        "bomb": (web.serve("/bomb", bomb, content_encoding="gzip"), "too-large"),
        "inwards": (web.serve("/in", status=302, location="http://169.254.169.254/latest"), "blocked-private-address"),
        "mapped": (web.serve("/map", status=302, location="http://[::ffff:127.0.0.1]/"), "blocked-private-address"),
        "file": ("file:///etc/passwd", "unsupported"),
        "loop": (web.serve("/loop", status=302, location="/loop"), "unreachable"),
        "gone": (web.serve("/gone", status=410), "gone"),
        "entities": (web.serve("/lol", "<!DOCTYPE rss [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><rss version='2.0'><channel><title>&b;"
                                       "</title></channel></rss>"), "no-news"),
    }  # fmt: skip
    for name, (url, _) in hostile.items():
        follow(name, kind="feed", url=url)
    follow(
        "zz-good", kind="feed", url=web.serve("/f", ATOM.format(ENTRY.format("https://example.org/a", "A")))
    )
    ended = ingest()
    assert ended.code == 4
    assert {row["name"]: row["status"] for row in ended.json["sources"]} == {
        **{name: status for name, (_, status) in hostile.items()},
        "zz-good": "ok",
    }
