"""Ways in which arXiv and archives like it really fail, with input written for them: one test per pitfall, named by its number.

Those about the twenty command-level cases, the client, dates, what is known and the kinds of sources stand with them.
"""

import datetime as dt
import re

import pytest

from kb.config import UserSettings
from kb.http import Client, NoAnswer
from kb.http.pacing import Pacer
from kb.ingest.contract import Report, Task, kinds
from kb.model import SourceConfig
from tests.http.test_client import FakeTime
from tests.ingest.once import WINDOW, Nothing, Once, entries, item, rss
from tests.ingest.test_cases import query_of, source
from tests.ingest.test_kinds import OAI, record


@pytest.fixture
def ingest(kb):
    def run(*args):
        return kb("ingest", "--no-triage", "--json", *args)

    return run


# arXiv's API


def paper(number, submitted="2026-06-29T10:00:00Z", updated=None, version=1, **extra):
    more = "".join(f"<arxiv:{name}>{value}</arxiv:{name}>" for name, value in extra.items())
    return (
        f"<entry><id>http://arxiv.org/abs/{number}v{version}</id><title>Paper {number}</title><published>{submitted}</published>"
        f"<updated>{updated or submitted}</updated><summary>Words of it.</summary><author><name>A. Author</name></author>{more}</entry>"
    )


def answer(*papers, total=None):
    return (
        '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom" '
        'xmlns:s="http://a9.com/-/spec/opensearch/1.1/"><title>t</title><id>x</id>'
        f"<s:totalResults>{len(papers) if total is None else total}</s:totalResults>{''.join(papers)}</feed>"
    )


@pytest.fixture
def category(web, follow):
    """Follow a category whose API is a function of the query."""

    def use(reply, **config):
        web.answers["/api"] = lambda path, _: (200, {}, reply(query_of(path)).encode())
        follow("cat", kind="arxiv", url=f"{web.url}/api", **{"query": "cat:cs.DC", **config})

    return use


def test_a_paper_is_looked_for_a_week_before_the_first_day_and_keeps_four_dates_P001_P002_P028(
    category, ingest, base, web
):
    held = paper("2607.00007", submitted="2026-06-26T10:00:00Z", updated="2026-06-30T01:00:00Z", version=2)
    category(lambda _: answer(held))
    assert source(ingest("--since", "2026-06-29"), "cat")["new"] == 1
    asked = query_of(web.asked[0].path)["search_query"][0]
    assert "submittedDate:[20260622" in asked
    (found,) = base.items()
    assert (found.submitted.at[:10], found.updated.at[:10], found.announced, found.first_seen.at[:10]) == (
        "2026-06-26", "2026-06-30", None, "2026-07-02",
    )  # fmt: skip


def test_the_range_of_changes_that_the_api_ignores_is_never_asked_P003_P037_P038(category, ingest, web):
    category(lambda _: answer(), query='ti:"KV cache" ANDNOT cat:cs.CV')
    ingest("--since", "2026-06-29")
    asked = query_of(web.asked[0].path)
    assert "lastUpdatedDate" not in web.asked[0].path
    assert asked["search_query"][0].startswith('(ti:"KV cache" ANDNOT cat:cs.CV) AND submittedDate:')
    assert "%22KV+cache%22" in web.asked[0].path


def test_a_paper_that_the_index_lacked_yesterday_is_new_today_P006(category, ingest, base):
    shown = [paper("2606.30001")]
    category(lambda _: answer(*shown))
    ingest("--since", "2026-06-29")
    shown.append(paper("2606.29999", submitted="2026-06-29T09:00:00Z"))
    ended = ingest("--since", "2026-06-29")
    assert (source(ended, "cat")["new"], source(ended, "cat")["known"]) == (1, 1)
    assert len(list(base.items())) == 2


def test_an_empty_later_page_keeps_the_earlier_ones_and_says_what_is_missing_P008_P025(category, ingest):
    def reply(query):
        is_first = query["start"] == ["0"]
        return answer(*[paper(f"2606.3000{n}") for n in range(2)], total=4) if is_first else answer(total=4)

    category(reply, page=2)
    ended = ingest("--since", "2026-06-29")
    assert (ended.code, source(ended, "cat")["status"], source(ended, "cat")["new"]) == (4, "truncated", 2)
    assert "2 of 4 entries did not arrive" in source(ended, "cat")["detail"]


def test_one_bad_id_spoils_no_other_P014(web, follow, ingest, base):
    def reply(path, _):
        ids = query_of(path)["id_list"][0].split(",")
        if "2606.99999" in ids:
            return 400, {}, b"bad"
        return 200, {}, answer(*[paper(number) for number in ids]).encode()

    web.answers["/api"] = reply
    numbers = [f"2606.3000{n}" for n in range(5)]
    follow("ids", kind="arxiv", url=f"{web.url}/api", ids=[*numbers, "2606.99999"])
    ended = ingest()
    assert (ended.code, source(ended, "ids")["new"]) == (4, 5)
    assert "2606.99999" in source(ended, "ids")["detail"]


def test_a_run_that_failed_holds_no_lock_P016(web, follow, ingest):
    follow("cat", kind="arxiv", url=web.serve("/api", status=500), query="cat:cs.DC")
    web.answers["/api"] = (404, {}, b"")
    assert ingest("--since", "2026-06-29").code == 4
    web.serve("/api", answer(paper("2606.30001")))
    assert ingest("--since", "2026-06-29").code == 0


def test_all_results_of_the_window_are_asked_for_P021(category, ingest, web):
    papers = [paper(f"2606.{30_000 + n}") for n in range(450)]
    category(
        lambda q: answer(
            *papers[int(q["start"][0]) : int(q["start"][0]) + int(q["max_results"][0])], total=450
        )
    )
    assert source(ingest("--since", "2026-06-29"), "cat")["new"] == 450
    assert [query_of(a.path)["start"] for a in web.asked] == [["0"], ["200"], ["400"]]


def test_a_window_with_too_many_results_is_halved_P024(category, ingest, web):
    def reply(query):
        first, last = re.search(r"\[(\d{8})\d{4} TO (\d{8})\d{4}\]", query["search_query"][0]).groups()
        days = (dt.date.fromisoformat(last) - dt.date.fromisoformat(first)).days
        return answer(paper("2606.30001"), total=20_000 if days > 6 else 1)

    category(reply, page=1)
    ended = ingest("--since", "2026-06-29")
    windows = {
        re.search(r"submittedDate:\[[^\]]+\]", query_of(a.path)["search_query"][0])[0] for a in web.asked
    }
    assert len(windows) >= 3
    assert source(ended, "cat")["new"] + source(ended, "cat")["known"] >= 1


def test_a_paper_that_moves_to_the_next_page_is_one_paper_P026(category, ingest, base):
    pages = {"0": ["2606.30001", "2606.30002"], "2": ["2606.30002", "2606.30003"]}
    category(lambda q: answer(*[paper(n) for n in pages[q["start"][0]]], total=4), page=2)
    assert source(ingest("--since", "2026-06-29"), "cat")["new"] == 3
    assert len({item.id for item in base.items()}) == len(list(base.items())) == 3


def test_what_a_paper_lacks_is_not_printed_P034_P040(category, ingest, base):
    category(lambda _: answer(paper("2606.30001")))
    ingest("--since", "2026-06-29")
    (path,) = (base.root / "items").iterdir()
    assert "None" not in path.read_text()
    assert next(base.items()).aliases == ()


def test_a_paper_of_two_categories_is_one_item_P036(web, follow, ingest, base):
    web.serve("/api", answer(paper("2606.30001")))
    for name in ("cs-dc", "cs-lg"):
        follow(name, kind="arxiv", url=f"{web.url}/api", query=f"cat:{name}")
    ended = ingest("--since", "2026-06-29")
    assert [row["new"] for row in ended.json["sources"]] == [1, 0]
    assert len(list(base.items())) == 1


def test_a_doi_of_the_publisher_is_a_second_name_and_arxivs_own_is_none_P044(category, ingest, base):
    category(
        lambda _: answer(
            paper("2606.30001", doi="10.1145/3600006.3613165"),
            paper("2606.30002", doi="10.48550/arXiv.2606.30002"),
        )
    )
    ingest("--since", "2026-06-29")
    assert {item.id: item.aliases for item in base.items()} == {
        "arxiv:2606.30001": ("doi:10.1145/3600006.3613165",),
        "arxiv:2606.30002": (),
    }


# arXiv's feeds


def announced(number, kind="new", creator="A. One, B. Two"):
    return (
        f"<item><title>T {number}</title><link>https://arxiv.org/abs/{number[:10]}</link><guid isPermaLink='false'>oai:arXiv.org:{number}</guid>"
        f"<description>arXiv:{number} Announce Type: {kind}\nAbstract: Words.</description><dc:creator>{creator}</dc:creator>"
        "<pubDate>Thu, 02 Jul 2026 00:00:00 -0400</pubDate></item>"
    )


DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
ELSEWHERE = "https://mirror.example.org/rss"


def test_authors_in_one_field_are_several_P056():
    (entry,), _, _ = entries("arxiv_rss", rss(announced("2607.00001v1"), head=DC), url=ELSEWHERE)
    assert entry.authors == ("A. One", "B. Two")
    assert (entry.id, entry.version, entry.text) == ("arxiv:2607.00001", "1", "Words.")


def test_several_categories_stay_joined_by_a_plus_P057():
    client = Once(rss())
    config = SourceConfig(name="one", kind="arxiv_rss", query="cs.AI+q-bio.NC", why="a test")
    list(kinds()["arxiv_rss"].fetch(Task(config, WINDOW, client, Nothing(), Report("one"))))
    assert client.asked == ["https://rss.arxiv.org/atom/cs.AI+q-bio.NC"]


def test_a_feed_that_tells_an_error_is_no_quiet_day_P055():
    body = rss().replace("<title>B</title>", "<title>Feed error for query: cs.XX</title>")
    with pytest.raises(NoAnswer, match="bad-request") as caught:
        entries("arxiv_rss", body, url=ELSEWHERE)
    assert "Feed error for query: cs.XX" in caught.value.detail


def test_a_feed_at_its_limit_says_that_papers_may_be_missing_P050(monkeypatch):
    monkeypatch.setattr("kb.ingest.feeds.MAX_ENTRIES", 3)
    body = rss(*[announced(f"2607.0000{n}v1") for n in range(1, 6)], head=DC)
    made, _, report = entries("arxiv_rss", body, url=ELSEWHERE)
    assert len(made) == 3
    assert report.status == "partial"
    assert any("5 entries" in note and "3" in note for note in report.notes)


def test_a_stamp_of_the_moment_of_generation_changes_no_item_P052_P058(web, follow, ingest, base):
    follow("rss", kind="arxiv_rss", url=web.serve("/rss", rss(announced("2607.00001v1"), head=DC)))
    ingest("--since", "2026-07-01")
    web.serve(
        "/rss", rss(announced("2607.00001v1"), head=DC).replace("02 Jul 2026 00:00", "03 Jul 2026 00:00")
    )
    assert source(ingest("--since", "2026-07-01"), "rss")["updated"] == 0
    assert len(list(base.items())) == 1


# OAI-PMH


def test_503_with_retry_after_is_how_a_provider_asks_for_patience_P063(web, tmp_path):
    fake = FakeTime()
    web.then("/oai", (503, {"retry-after": "20"}, b""), (200, {}, OAI.format(record("2606.20001")).encode()))
    with Client(_allowed(web), time=fake, pacer=Pacer(fake, tmp_path / "pace")) as client:
        config = SourceConfig(name="oai", kind="oai", url=f"{web.url}/oai", why="a test")
        task = Task(config, WINDOW, client, Nothing(), Report("oai"))
        assert len(list(kinds()["oai"].fetch(task))) == 1
    assert fake.slept == [20.0]


def _allowed(web):
    return UserSettings(allow_private=(web.url.partition("://")[2],))


def test_a_days_records_are_asked_again_the_next_day_P066_P067(web, follow, ingest):
    follow("oai", kind="oai", url=web.serve("/oai", OAI.format(record("2606.20001"))))
    for _ in range(2):
        ended = ingest("--since", "2026-06-15")
    assert source(ended, "oai")["known"] == 1
    assert all("from=2026-06-08" in asked.path and "until" not in asked.path for asked in web.asked)


def test_of_repeated_dates_the_first_version_counts_P069():
    body = OAI.format(
        "<record><header><identifier>oai:arXiv.org:2606.20001</identifier><datestamp>2026-06-30</datestamp></header><metadata>"
        '<dc xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>T</dc:title><dc:date>2026-06-20</dc:date><dc:date>2026-06-29</dc:date>'
        "<dc:description>Words</dc:description><dc:creator>A</dc:creator></dc></metadata></record>"
    )
    (entry,), _, _ = entries("oai", body, mode="oai_dc")
    assert entry.submitted[0].day == dt.date(2026, 6, 20)


@pytest.mark.parametrize("kind", ["oai", "arxiv", "feed"])
def test_no_entity_reads_a_file_P137(kind, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cret", encoding="utf-8")
    head = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "{secret.as_uri()}">]>'
    bodies = {
        "oai": OAI.format(record("2606.20001").replace("Words.", "&a;")),
        "arxiv": answer(paper("2606.30001").replace("Words of it.", "&a;")),
        "feed": rss(item(description="&a;")).partition("?>")[2],
    }
    try:
        made, _, _ = entries(
            kind, head + bodies[kind], **({"ids": ("2606.30001",)} if kind == "arxiv" else {})
        )
    except NoAnswer:
        return
    assert "s3cret" not in "".join(entry.text for entry in made)
