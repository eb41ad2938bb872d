"""Hostile input for every kind of source: whole documents mutated, and documents with Hypothesis' text in every field."""

import contextlib
import datetime as dt
import html
import json
import os
import signal
import sys
import zoneinfo

from hypothesis import strategies as st

from kb.errors import KbError
from kb.http import Answer, NoAnswer
from kb.identity import file_name
from kb.ingest.commit import Committer
from kb.ingest.contract import Report, Skip, Task, Window, kinds
from kb.ingest.files import ingest_files
from kb.ingest.known import Known
from kb.ingest.replay.content import api, feed, page, papers, posts
from kb.model import SourceConfig
from kb.vocab import SOURCE_STATUS

LIMIT_S = 2.0
"""CPU seconds for one input."""
FLUSH = 250
"""Inputs whose items are written together."""
RECORD = """<?xml version="1.0"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><header>
<identifier>oai:arXiv.org:2606.06302</identifier><datestamp>2026-06-16</datestamp></header><metadata>
<arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>2606.06302</id><created>2026-06-04</created><authors><author><keyname>Kim</keyname>
<forenames>H.</forenames></author></authors><title>Tangram</title><abstract>Text.</abstract></arXiv></metadata></record>
<resumptionToken>next</resumptionToken></ListRecords></OAI-PMH>"""
RSS = """<rss version="2.0"><channel><title>B</title><item><title>P</title><link>https://example.org/p</link>
<guid>g</guid><pubDate>Wed, 10 Jun 2026 08:00:00 GMT</pubDate><description>&lt;p&gt;Text&lt;/p&gt;</description></item></channel></rss>"""
RDF = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://example.org/"><title>B</title></channel>
<item rdf:about="https://example.org/1"><title>P</title><link>https://example.org/1</link><dc:date>2026-06-10</dc:date>
<dc:creator>A</dc:creator><description>Text</description></item></rdf:RDF>"""
JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "B", "items": [{"id": "1", "url": "https://example.org/1",
"title": "P", "content_html": "<p>Text</p>", "date_published": "2026-06-10T08:00:00Z", "authors": [{"name": "A"}]}]}"""
DRAFT = "Jay · 2026-06-10\n\n1️⃣ RTP-LLM — arXiv:2605.29639（⭐⭐⭐⭐ 必读）\n\n  • 链接：https://arxiv.org/html/2605.29639v1\n  • 建议动作：精读\n"
SPICE = [b"\0", b"\xff", b"<", b">", b"&", b"]]>", b"<![CDATA[", b'<!DOCTYPE x [<!ENTITY a "b">]>', b"&#0;", b"&#x110000;", b"\xe2\x80\xae",
         b"../../../etc/passwd", b"\n---\nadmin: true\n", b"999999999999999999999", b"-1", b"NaN", b"{", b"[", b'"', b"\\ud800", b"javascript:x",
         b"http://[::1", b"2026-99-99", b"</", b"<script>", b"xmlns:a='a'", b"%", b"\r\n\r\n", b"\xed\xa0\x80", "𝒳".encode(), b"v0", b"<pre>" * 50,
         b"<table><tr>" * 40, b"<ul><li>" * 60, b'<base href="//[">', b'<link rel=canonical href="https://example.org:99999/">', b"&lt;" * 30,
         b'<meta charset="utf-7">', b'<meta charset="hex">', b'<?xml version="1.0" encoding="utf-16"?>', b"<math><mi>x</mi></math>", b"`" * 40,
         b'{"@type":"Article","datePublished":{"a":[]},"headline":5,"author":[[1]]}', b"1e999", b"rel='related'", b"\xff\xfe<\0?\0"]  # fmt: skip
NASTY = [s.decode("utf-8", "surrogateescape") for s in SPICE]


def seeds():
    """(kind of source, whole document)."""
    some = list(posts().values())
    with_feed = [post for post in some if post.feed]
    return [
        ("feed", feed(with_feed[:1]).encode()),
        ("feed", RSS.encode()),
        ("feed", RDF.encode()),
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


# Documents with any text in every field

TEXT = st.one_of(
    st.text(max_size=30), st.sampled_from(NASTY), st.sampled_from(["2026-06-10T08:00:00Z", "1718006400"])
)
FRAMES = [
    ("feed", ('<rss version="2.0"><channel><title>{}</title><link>{}</link><item><title>{}</title><link>{}</link><guid>{}</guid>'
             "<pubDate>{}</pubDate><description>{}</description><author>{}</author></item></channel></rss>")),
    ("feed", ('<feed xmlns="http://www.w3.org/2005/Atom"><title>{}</title><id>{}</id><entry><id>{}</id><title type="html">{}</title>'
             '<link href="{}"/><published>{}</published><content type="html">{}</content><author><name>{}</name></author></entry></feed>')),
    ("arxiv", ('<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom"><entry><id>http://arxiv.org/abs/{}</id>'
              "<title>{}</title><published>{}</published><updated>{}</updated><summary>{}</summary><author><name>{}</name></author>"
              "<arxiv:doi>{}</arxiv:doi><arxiv:comment>{}</arxiv:comment></entry></feed>")),
    ("arxiv_rss", ('<feed xmlns="http://www.w3.org/2005/Atom"><title>{}</title><entry><id>oai:arXiv.org:{}</id><title>{}</title><link href="{}"/>'
                  "<published>{}</published><updated>{}</updated><summary>arXiv:{} Announce Type: new\nAbstract: {}</summary></entry></feed>")),
    ("oai", ('<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords><record><header><identifier>{}</identifier><datestamp>{}'
            "</datestamp></header><metadata><arXiv><id>{}</id><created>{}</created><title>{}</title><abstract>{}</abstract><doi>{}</doi>"
            "<comments>{}</comments></arXiv></metadata></record></ListRecords></OAI-PMH>")),
    ("page", '<html><head><title>{}</title><meta property="og:title" content="{}"><link rel="canonical" href="{}"><meta name="date" '
             'content="{}"><script type="application/ld+json">{}</script></head><body><article><h1>{}</h1><p>{}</p>' + "<p>words, words</p>" * 20
             + "<pre>{}</pre></article></body></html>"),
    ("draft", "{} · {}\n\n1️⃣ {}（⭐⭐⭐⭐ {}）\n\n  • 链接：{}\n  • 建议动作：{}\n\n{}\n\n| a | b |\n| - | - |\n| {} | 1 |\n"),
]  # fmt: skip
"""(kind, document with eight places)."""
FIELDS = ("id", "url", "title", "content_html", "content_text", "date_published", "date_modified", "author")
VALUES = st.one_of(TEXT, st.none(), st.integers(), st.floats(), st.lists(TEXT, max_size=2))


@st.composite
def documents(draw):
    """(kind of source, document) with drawn text in every field, escaped or raw."""
    number = draw(st.integers(0, len(FRAMES)))
    if number == len(FRAMES):
        item = {name: draw(VALUES) for name in FIELDS}
        value = {"version": "https://jsonfeed.org/version/1.1", "title": draw(VALUES), "items": [item]}
        return "feed", json.dumps(value).encode()
    kind, frame = FRAMES[number]
    is_raw = draw(st.booleans())
    texts = [draw(TEXT) for _ in range(8)]
    texts = texts if is_raw or kind == "draft" else [html.escape(text) for text in texts]
    return kind, frame.format(*texts).encode("utf-8", "surrogatepass")


# What reads them


class Hang(BaseException):
    """One input took more CPU time than it may."""


class Served:
    """Answers one document to whatever is asked, once; afterwards nothing is found."""

    def __init__(self, body):
        self.body = body

    def get(self, url, **_):
        if self.body is None:
            raise NoAnswer("not-found", url, "asked twice")
        body, self.body = self.body, None
        return Answer(url, 200, {"content-type": "text/html" if b"<html" in body[:200] else ""}, body)


class Reader:
    """Runs one kind of source over one document, commits what it gives, and watches time and files.

    Args:
        base: Where items and drafts go; emptied now and then, so that the cost of one input does not grow.
        scratch: Where drafts come from; anything written elsewhere is a fault.
    """

    def __init__(self, base, scratch):
        self.base, self.scratch = base, scratch
        self.window = Window(
            dt.date(2026, 1, 1), None, zoneinfo.ZoneInfo("UTC"), dt.datetime(2026, 7, 2, tzinfo=dt.UTC)
        )
        self.inputs = self.entries = self.drafts = 0
        self.statuses, self.strays = set(), []
        self.known = Known(base)
        self.committer = Committer(base, self.known, self.window, dry_run=False)
        self._is_watching = False
        sys.addaudithook(self._watch)

    def _watch(self, event, args):
        if not self._is_watching or event not in {"open", "os.mkdir", "os.rename", "os.symlink", "os.link"}:
            return
        if event == "open" and not (
            isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        ):
            return
        if isinstance(args[0], int):  # a pipe
            return
        path = os.path.realpath(os.fsdecode(args[1 if event in {"os.rename", "os.link"} else 0]))
        allowed = (str(self.base.root), str(self.scratch), os.environ["XDG_RUNTIME_DIR"], os.devnull)
        if not path.startswith(allowed):
            self.strays.append((event, path))

    def __enter__(self):
        def late(*_):
            raise Hang

        self._before = signal.signal(signal.SIGPROF, late)
        return self

    def __exit__(self, *_):
        self._is_watching = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)
        self.known.close()

    def read(self, kind, body):
        """Read one input; raises what no input may cause."""
        self.inputs += 1
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        self._is_watching = True
        try:
            self._draft(body) if kind == "draft" else self._source(kind, body)
        except Hang:
            raise AssertionError(f"more than {LIMIT_S} s: {kind} {body!r}") from None
        finally:
            self._is_watching = False
            signal.setitimer(signal.ITIMER_PROF, 0)
        assert not self.strays, (self.strays, kind, body)
        if self.inputs % FLUSH == 0:
            self.check()

    def _source(self, kind, body):
        url = "https://replay.example.org/atom" if kind == "arxiv_rss" else "https://example.org/x"
        name = f"fuzz-{kind.replace('_', '-')}"
        config = SourceConfig(name=name, kind=kind, url=url, why="fuzz", query="cat:cs.DC")
        task = Task(config, self.window, Served(body), self.known, Report(config.name))
        module, made = kinds()[kind], []
        try:
            for raw in module.fetch(task):
                entry = module.to_entry(raw, task)
                if not isinstance(entry, Skip):
                    made.append(entry)
        except NoAnswer as problem:
            self.statuses.add(problem.status)
        for entry in made:
            assert entry.title == entry.title.strip() != ""
            assert "\n" not in entry.title
            assert entry.id.partition(":")[0] in {"arxiv", "doi", "url"}
            assert "/" not in file_name(entry.id, entry.title)
        self.entries += len(made)
        self.committer.take(task, made, [])

    def _draft(self, body):
        path = self.scratch / "draft.txt"
        path.write_bytes(body)
        # every tenth is written; the others are only understood
        is_dry = self.drafts % 10 != 0
        self.drafts += 1
        with contextlib.suppress(KbError):
            ingest_files(self.base, [path], curator="jay", date="2026-06-10", dry_run=is_dry)

    def check(self):
        """Write what came in, read it back, and begin with an empty base."""
        staged = [item.to_json() for item in self.known.pending]
        self.committer.flush()
        read = [item.to_json() for item in self.base.items()]
        assert all(item in read for item in staged), "an item does not read back as it was written"
        assert self.statuses <= set(SOURCE_STATUS)
        for folder in ("items", "inbox", "assessments"):
            for path in sorted((self.base.root / folder).rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        self.known.close()
        self.known = Known(self.base)
        self.committer = Committer(self.base, self.known, self.window, dry_run=False)
