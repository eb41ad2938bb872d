"""Ways in which feeds, pages and addresses really fail, with input written for them: one test per pitfall, named by its number.

Those about the twenty command-level cases, the client, dates, what is known and the kinds of sources stand with them.
"""

import datetime as dt

import pytest

from kb.config import UserSettings
from kb.http import Answer, Client, NoAnswer
from kb.http.pacing import Pacer
from kb.ingest.feeds import read_document
from kb.ingest.replay.content import api
from tests.http.test_client import FakeTime
from tests.ingest.once import entries, item, rss
from tests.ingest.test_cases import ATOM, ENTRY, source

DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'


@pytest.fixture
def ingest(kb):
    def run(*args):
        return kb("ingest", "--no-triage", "--json", *args)

    return run


# Feeds


def test_nested_items_leave_no_shells_P072():
    body = rss("<item>" + item("Inner", "https://example.org/inner") + "</item>")
    made, _, _ = entries("feed", body)
    assert [entry.id for entry in made] == ["url:example.org/inner"]


@pytest.mark.parametrize(
    ("date", "zone", "moment"),
    [("2026-06-10 08:00 CST", "Asia/Shanghai", "2026-06-10T08:00:00+08:00"),
     ("Wed, 10 Jun 2026 08:00:00 CST", "America/Chicago", "2026-06-10T08:00:00-05:00"),
     ("Seg, 24 Set 2018 10:00:00", "America/Sao_Paulo", None), ("24 Março 2018", "America/Sao_Paulo", None)],
)  # fmt: skip
def test_zones_are_the_sources_and_words_of_other_languages_are_no_date_P074_P076(date, zone, moment):
    (entry,), _, _ = entries("feed", rss(item(pubDate=date)), zone=zone)
    assert (entry.announced[0].moment.isoformat() if entry.announced else None) == moment


def test_an_unreadable_field_hides_no_readable_one_P077():
    body = rss(
        item(pubDate="soon") .replace("</item>", "<dc:date>2026-06-10T08:00:00Z</dc:date></item>"), head=DC
    )  # fmt: skip
    (entry,), _, _ = entries("feed", body)
    assert entry.announced[0].day == dt.date(2026, 6, 10)


def test_a_typo_mended_in_an_old_post_is_no_news_P080(web, follow, ingest, base):
    old = ENTRY.format("https://example.org/1", "Old").replace(
        "<published>2026-06-10T00:00:00Z</published>", ""
    )
    follow("blog", kind="feed", url=web.serve("/f", ATOM.format(old.replace("2026-06-10", "2019-06-10"))))
    assert source(ingest("--since", "2019-01-01"), "blog")["new"] == 1
    web.serve("/f", ATOM.format(old))
    ended = ingest("--since", "2026-06-01")
    assert (source(ended, "blog")["new"], source(ended, "blog")["known"]) == (0, 1)


def test_five_hundred_old_posts_are_no_news_P081(web, follow, ingest):
    posts = "".join(ENTRY.format(f"https://example.org/{n}", f"P {n}") for n in range(500))
    follow("blog", kind="feed", url=web.serve("/f", ATOM.format(posts.replace("2026-06-10", "2019-06-10"))))
    ended = ingest("--since", "2026-06-01")
    assert (source(ended, "blog")["new"], source(ended, "blog")["outside"]) == (0, 500)


def test_a_guid_that_all_share_names_none_of_them_P084():
    items = [item(f"P {n}", f"https://example.org/{n}", guid="https://example.org/") for n in range(4)]
    made, _, report = entries("feed", rss(*items))
    assert [entry.id for entry in made] == [f"url:example.org/{n}" for n in range(4)]
    assert all("guid:" not in alias for entry in made for alias in entry.aliases)
    assert "1 guids" in report.notes[0]


def test_a_post_is_known_after_its_title_and_guid_changed_P085(web, follow, ingest, base):
    before = item("First title", "http://example.org/p", guid="1").replace(
        "<guid>", "<guid isPermaLink='false'>"
    )
    follow("blog", kind="feed", url=web.serve("/f", rss(before)))
    ingest()
    web.serve("/f", rss(before.replace("First", "Better").replace("http:", "https:").replace(">1<", ">2<")))
    ended = ingest()
    assert (source(ended, "blog")["new"], source(ended, "blog")["updated"]) == (0, 1)
    assert {found.id for found in base.items()} == {"url:example.org/p"}


def test_a_guid_that_is_no_address_becomes_none_P087():
    body = rss(item(link="", guid="12345").replace("<guid>", "<guid isPermaLink='false'>"))
    (entry,), _, _ = entries("feed", body)
    assert entry.id.startswith("url:example.org/feed.xml?entry=")
    assert entry.url == "https://example.org/feed.xml"


@pytest.mark.parametrize(
    ("title", "shown"),
    [("Intent to unship: &lt;a&gt;", "Intent to unship: <a>"), ("&lt;script&gt;alert(1)&lt;/script&gt;", "<script>alert(1)</script>"),
     ("AT&amp;amp;T &amp;quot;x&amp;quot;", 'AT&T "x"'), ("a &amp;amp;lt;b&amp;amp;gt;", "a &lt;b&gt;")],
)  # fmt: skip
def test_markup_in_a_title_is_text_and_is_decoded_no_further_P089_P090(title, shown):
    (entry,), _, _ = entries("feed", rss(item(title)))
    assert entry.title == shown


def test_escaped_cdata_is_read_P091():
    (entry,), _, _ = entries("feed", rss(item("&lt;![CDATA[A title]]&gt;")))
    assert entry.title == "A title"


def test_the_whole_content_is_taken_and_not_the_teaser_P092():
    body = rss(
        item(description="teaser").replace("</item>", "<c:encoded>&lt;p&gt;The whole text&lt;/p&gt;</c:encoded></item>"),
        head='xmlns:c="http://purl.org/rss/1.0/modules/content/"',
    )  # fmt: skip
    (entry,), _, _ = entries("feed", body)
    assert entry.text == "The whole text"


def test_xml_without_a_charset_is_no_mistake_P094(web):
    body = rss(item("Über Möglichkeiten")).encode()
    document = read_document(Answer("https://example.org/f", 200, {"content-type": "text/xml"}, body))
    assert (document.entries[0].title, document.warnings) == ("Über Möglichkeiten", [])


def test_a_challenge_page_is_no_quiet_feed_P102(web, follow, ingest):
    page = "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>"
    follow("blog", kind="feed", url=web.serve("/f", page, content_type="text/html"))
    ended = ingest()
    assert (ended.code, source(ended, "blog")["status"]) == (4, "not-a-feed")
    assert "Just a moment" in source(ended, "blog")["detail"]


def test_the_post_behind_a_wrapper_is_what_counts_P103():
    wrapped = item(link="http://feedproxy.google.com/~r/b/~3/x/").replace(
        "</item>", "<f:origLink>https://example.org/real</f:origLink></item>"
    )
    made, _, _ = entries("feed", rss(wrapped, head='xmlns:f="http://rssnamespace.org/feedburner/ext/1.0"'))
    (other,), _, _ = entries(
        "feed", rss(item(link="https://www.google.com/url?q=https://example.org/found&amp;sa=U"))
    )
    assert (made[0].id, other.id) == ("url:example.org/real", "url:example.org/found")


def test_of_a_link_blog_the_post_counts_where_its_source_says_so_P104():
    body = ATOM.format(
        ENTRY.format("https://other.example.org/article", "A").replace(
            "<published>", '<link rel="related" href="https://blog.example.org/post"/><published>'
        )
    )
    (plain,), _, _ = entries("feed", body)
    (linked,), _, _ = entries("feed", body, mode="linkblog")
    assert (plain.id, linked.id) == ("url:other.example.org/article", "url:blog.example.org/post")


def test_the_name_of_a_file_says_nothing_P107():
    (entry,), _, _ = entries(
        "feed",
        ATOM.format(ENTRY.format("https://example.org/1", "A")),
        url="https://example.org/feed.rss?format=json",
    )
    assert entry.title == "A"


def test_a_post_about_a_paper_is_linked_to_it_and_is_not_it_P121_P122():
    body = rss(item("A post", description="We explain arXiv:2606.06302 and doi:10.1145/3600006.3613165."))
    (entry,), _, _ = entries("feed", body)
    assert (entry.id, entry.links) == (
        "url:example.org/p",
        ("arxiv:2606.06302", "doi:10.1145/3600006.3613165"),
    )


def test_one_post_in_two_feeds_is_one_item_and_two_of_one_feed_never_swap_P123_P124(
    web, follow, ingest, base
):
    twice = item("One", description="a") + item("Other", description="b")
    follow("a", kind="feed", url=web.serve("/a", rss(item("One", description="a"))))
    ingest()
    follow("b", kind="feed", url=web.serve("/b", rss(item("One", "https://www.example.org/p?utm_source=b"))))
    assert source(ingest(), "b")["known"] == 1
    web.serve("/a", rss(twice))
    lines = []
    for _ in range(3):
        ingest()
        lines.append(len(list(base.items())))
    assert lines[0] == lines[1] == lines[2]


@pytest.mark.parametrize("body", ["/etc/passwd", "file:///etc/passwd", "http://127.0.0.1/"])
def test_a_body_is_bytes_and_never_a_place_P129(body):
    with pytest.raises(NoAnswer) as caught:
        read_document(Answer("https://example.org/f", 200, {}, body.encode()))
    assert caught.value.status == "not-a-feed"


def test_entities_do_not_grow_P132():
    lol = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 8))
    head = f"<!DOCTYPE rss [<!ENTITY l0 'lol'>{lol}]>"
    made, _, report = entries("feed", head + rss(item("&l7;")).partition("?>")[2])
    assert all(len(entry.title) < 500 for entry in made)
    assert "entity definitions were ignored" in report.notes


# Pages


PROSE = "<p>Words about memory, pages and caches, one after the other, so that this is a text.</p>" * 6


def page_of(body, head=""):
    return f"<html><head><title>T</title>{head}</head><body><article><h1>T</h1>{body}</article></body></html>"


def test_a_shell_that_a_script_fills_has_no_text_P110(web, ingest):
    url = web.serve(
        "/app",
        "<html><body><div id='root'></div><script>render()</script></body></html>",
        content_type="text/html",
    )
    ended = ingest("--url", url)
    assert (ended.code, ended.json["sources"][0]["status"]) == (4, "no-main-text")


def test_one_meta_refresh_is_followed_and_no_more_P110(web, ingest, base):
    head = "<meta http-equiv='refresh' content='0; url={}'>"
    web.serve("/end", page_of(PROSE), content_type="text/html")
    once = web.serve("/once", page_of("", head.format("/end")), content_type="text/html")
    twice = web.serve("/twice", page_of("", head.format("/once")), content_type="text/html")
    assert ingest("--url", once).json["sources"][0]["new"] == 1
    assert ingest("--url", twice).json["sources"][0]["status"] == "no-main-text"


@pytest.mark.parametrize(
    ("raw", "site", "title"),
    [("Paging in practice - The Blog", "The Blog", "Paging in practice"), ("显存分页实践-某某网", "某某网", "显存分页实践"),
     ("GPU - CPU transfers", "Blog", "GPU - CPU transfers")],
)  # fmt: skip
def test_the_sites_name_is_no_part_of_a_title_P114(raw, site, title):
    head = f'<meta property="og:site_name" content="{site}"><meta property="og:title" content="{raw}">'
    body = page_of(PROSE, head).replace("<h1>T</h1>", "")
    (entry,), _, _ = entries("page", body)
    assert entry.title == title


def test_documentation_has_no_date_and_a_change_of_its_text_is_told_P117(web, follow, ingest, base):
    follow("docs", kind="page", url=web.serve("/docs", page_of(PROSE), content_type="text/html"))
    ingest()
    (found,) = base.items()
    assert (found.submitted, found.announced, found.updated) == (None, None, None)
    web.serve("/docs", page_of(PROSE + "<p>A sentence more.</p>"), content_type="text/html")
    assert source(ingest(), "docs")["updated"] == 1


# Secrets, time, the way out


def test_a_token_in_an_address_reaches_no_file_and_no_message_P138(web, follow, ingest, base):
    body = rss(item(link="https://example.org/p?access_token=s3cretT0ken&amp;id=5"))
    url = web.serve("/f", body)
    follow("blog", kind="feed", url=f"{url}?token=s3cretT0ken")
    web.answers["/gone"] = (404, {}, b"")
    follow("gone", kind="feed", url=f"{web.url}/gone?token=s3cretT0ken")
    ended = ingest()
    (path,) = (base.root / "items").iterdir()
    assert "s3cretT0ken" not in path.read_text() + ended.out + ended.err
    assert next(base.items()).id == "url:example.org/p?id=5"


def test_the_same_answers_give_the_same_bytes_whatever_the_order_and_the_zone_of_the_machine_P146_P147(
    web, follow, ingest, base, monkeypatch, snapshot
):
    import shutil
    import time

    for n in range(4):
        follow(f"s{n}", kind="feed", url=web.serve(f"/{n}", rss(item(f"P {n}", f"https://example.org/{n}", pubDate="2026-06-10 08:00"))))  # fmt: skip
    taken = []
    for zone in ("UTC", "Pacific/Auckland"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        ingest("--since", "2026-06-01")
        taken.append(snapshot())
        shutil.rmtree(base.root / "items")
        shutil.rmtree(base.cache)
    monkeypatch.delenv("TZ")
    time.tzset()
    assert taken[0] == taken[1]


def test_a_host_that_said_403_is_left_alone_P018_P102(web, tmp_path):
    fake = FakeTime()
    web.answers["http://example.org/x"] = (403, {}, b"no")
    web.answers["http://other.example.org/x"] = (200, {}, b"yes")
    with Client(UserSettings(proxy=web.url), time=fake, pacer=Pacer(fake, tmp_path / "pace")) as client:
        for _ in range(3):
            with pytest.raises(NoAnswer) as caught:
                client.get("http://example.org/x")
            assert caught.value.status == "refused"
        assert len(web.asked) == 1
        assert client.get("http://other.example.org/x").body == b"yes"
        fake.now += 16 * 60
        with pytest.raises(NoAnswer):
            client.get("http://example.org/x")
    assert len(web.asked) == 3


def test_what_the_replayed_api_gives_is_what_papers_say_P043():
    made, _, _ = entries("arxiv", api({"id_list": ["2606.06302"]}), ids=("2606.06302",))
    assert [entry.url for entry in made] == ["https://arxiv.org/abs/2606.06302v2"]
