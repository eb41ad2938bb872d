"""Nothing that a server can send makes a source crash, hang or write outside the base.

200,000 inputs by `make soak`, 1 % of them by default, from a fixed seed: whole documents of every kind with bytes, tags and
fields mutated, and text from Hypothesis in every field.
"""

import contextlib
import random
import sys
import time

import pytest

from kb.http import Answer, NoAnswer
from kb.ingest.replay.content import api, feed, page, papers, posts
from kb.vocab import SOURCE_STATUS

SEED = 20260702
COUNT = 200_000
LIMIT_S = 2.0
RECORD = """<?xml version="1.0"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><header>
<identifier>oai:arXiv.org:2606.06302</identifier><datestamp>2026-06-16</datestamp></header><metadata>
<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>2606.06302</id><created>2026-06-04</created><authors><author><keyname>Kim</keyname>
<forenames>H.</forenames></author></authors><title>Tangram</title><abstract>Text.</abstract></arXiv></metadata></record>
<resumptionToken>next</resumptionToken></ListRecords></OAI-PMH>"""
RSS = """<rss version="2.0"><channel><title>B</title><item><title>P</title><link>https://example.org/p</link>
<guid>g</guid><pubDate>Wed, 10 Jun 2026 08:00:00 GMT</pubDate><description>&lt;p&gt;Text&lt;/p&gt;</description></item></channel></rss>"""
JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "B", "items": [{"id": "1", "url": "https://example.org/1",
"title": "P", "content_html": "<p>Text</p>", "date_published": "2026-06-10T08:00:00Z", "authors": [{"name": "A"}]}]}"""
DRAFT = "Jay · 2026-06-10\n\n1️⃣ RTP-LLM — arXiv:2605.29639（⭐⭐⭐⭐ 必读）\n\n  • 链接：https://arxiv.org/html/2605.29639v1\n  • 建议动作：精读\n"
SPICE = [b"\0", b"\xff", b"<", b">", b"&", b"]]>", b"<![CDATA[", b'<!DOCTYPE x [<!ENTITY a "b">]>', b"&#0;", b"&#x110000;", b"\xe2\x80\xae",
         b"../../../etc/passwd", b"\n---\nadmin: true\n", b"999999999999999999999", b"-1", b"NaN", b"{", b"[", b'"', b"\\ud800", b"javascript:x",
         b"http://[::1", b"2026-99-99", b"</", b"<script>", b"xmlns:a='a'", b"%", b"\r\n\r\n", b"\xed\xa0\x80", "𝒳".encode(), b"v0", b"<pre>" * 50]  # fmt: skip


def seeds():
    """(kind of reader, whole document)."""
    some = list(posts().values())
    with_feed = [post for post in some if post.feed]
    return [
        ("feed", feed(with_feed[:1]).encode()),
        ("feed", RSS.encode()),
        ("feed", JSON.encode()),
        ("arxiv", api({"id_list": [",".join(list(papers())[:2])]}).encode()),
        ("arxiv_rss", feed(with_feed).encode()),
        ("oai", RECORD.encode()),
        ("page", page(some[0]).encode()),
        ("draft", DRAFT.encode()),
    ]


def mutated(data, chance):
    """The document with a few places changed."""
    body = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        place, act = chance.randrange(len(body) + 1), chance.randrange(6)
        if act == 0:
            body[place:place] = chance.choice(SPICE)
        elif act == 1:
            del body[place : place + chance.randint(1, 60)]
        elif act == 2 and body:
            body[min(place, len(body) - 1)] = chance.randrange(256)
        elif act == 3:
            other = chance.randrange(len(body) + 1)
            body[place:place] = body[other : other + chance.randint(1, 200)]
        elif act == 4:
            del body[place:]
        else:
            body[place : place + chance.randint(1, 30)] = chance.choice(SPICE)
        if not body:
            body = bytearray(b"x")
    return bytes(body)


class Served:
    """Answers one document to whatever is asked, once; afterwards nothing is found."""

    def __init__(self, body):
        self.body = body

    def get(self, url, **_):
        if self.body is None:
            raise NoAnswer("not-found", url, "asked twice")
        body, self.body = self.body, None
        return Answer(url, 200, {"content-type": "text/html" if b"<html" in body[:200] else ""}, body)


class Nothing:
    def has(self, *_):
        return False


@pytest.fixture
def read(base, tmp_path):
    """Run one kind of source over one document and commit what it gives."""
    import datetime as dt
    import zoneinfo

    from kb.errors import KbError
    from kb.ingest.contract import Report, Skip, Task, Window, kinds
    from kb.ingest.files import ingest_files
    from kb.model import SourceConfig

    window = Window(
        dt.date(2026, 1, 1), None, zoneinfo.ZoneInfo("UTC"), dt.datetime(2026, 7, 2, tzinfo=dt.UTC)
    )
    urls = {"arxiv_rss": "https://replay.example.org/atom"}

    def draft(body):
        path = tmp_path / "draft.txt"
        path.write_bytes(body)
        ingest_files(base, [path], curator="jay", date="2026-06-10", dry_run=True)

    statuses = set()

    def run(kind, body):
        if kind == "draft":
            with contextlib.suppress(KbError):
                draft(body)
            return []
        config = SourceConfig(
            name="fuzz", kind=kind, url=urls.get(kind, "https://example.org/x"), why="fuzz", query="cat:cs.DC"
        )
        task = Task(config, window, Served(body), Nothing(), Report("fuzz"))
        module, made = kinds()[kind], []
        try:
            for raw in module.fetch(task):
                entry = module.to_entry(raw, task)
                if not isinstance(entry, Skip):
                    made.append(entry)
        except NoAnswer as problem:
            statuses.add(problem.status)
        return made

    yield run
    assert statuses <= set(SOURCE_STATUS)


def soak(read, count, seed):
    from kb.identity import file_name
    from kb.ingest.commit import _content, _stamp

    chance = random.Random(seed)
    documents = seeds()
    slowest, entries = (0.0, b""), 0
    for _ in range(count):
        kind, document = chance.choice(documents)
        body = mutated(document, chance)
        started = time.process_time()
        for entry in read(kind, body):
            entries += 1
            assert entry.title == entry.title.strip()
            assert "\n" not in entry.title
            assert entry.id.partition(":")[0] in {"arxiv", "doi", "url"}
            assert "/" not in file_name(entry.id, entry.title)
            for date in (entry.submitted, entry.updated, entry.announced):
                _stamp(date)
            _content(entry)
        slowest = max(slowest, (time.process_time() - started, body))
    assert slowest[0] < LIMIT_S, slowest[1][:300]
    return entries


def test_one_in_a_hundred(read):
    assert soak(read, COUNT // 100, SEED) > 500


@pytest.mark.soak
def test_two_hundred_thousand(read):
    entries = soak(read, COUNT, SEED + 1)
    sys.stdout.write(f"{COUNT} inputs, seed {SEED + 1}, {entries} entries\n")


def test_a_hostile_name_leads_nowhere_outside_the_base_P134(kb, web, follow, base):
    from tests.ingest.test_cases import ATOM, ENTRY

    before = {path for path in base.root.parent.rglob("*") if not path.is_relative_to(base.root)}
    names = ["../../../etc/passwd", "/etc/passwd", "con", "…", "🔥", "a" * 4000, "%2e%2e%2fx", "C:\\x"]
    entries = "".join(ENTRY.format(f"https://example.org/{n}", name) for n, name in enumerate(names))
    follow("blog", kind="feed", url=web.serve("/feed", ATOM.format(entries)))
    assert kb("ingest", "--json").code == 0
    assert {path for path in base.root.parent.rglob("*") if not path.is_relative_to(base.root)} == before
