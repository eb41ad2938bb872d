"""170 files as publishers really serve them: each ends in the state that their manifest calls right.

All are followed by one base and fetched in one run over real sockets. What is right is read from the manifest's own words
where they hold a number, and from `RIGHT` where they tell a state; `pytest -s` prints the table.
"""

import csv
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ANSWERED = {"ok", "no-news"}
RIGHT = {
    "arxiv_api/id_0000.0000": ({"not-found"}, 0),
    "arxiv_api/id_0808.05394_1707": ({"not-found"}, 1),
    "arxiv_api/id_0808.05394_s0": ({"not-found"}, 0),
    "arxiv_api/id_abc": ({"bad-request"}, 0),
    "arxiv_api/id_": (ANSWERED, 1),
    "arxiv_api/usermanual_error": ({"bad-request"}, 0),
    # the manual shortened a page of ten to one entry: nine are missing
    "arxiv_api/usermanual_electron": ({"truncated"}, 1),
    "arxiv_rss/arxiv_atom_csAI_20250820": ({"truncated"}, 86),
    "arxiv_rss/arxiv_atom_csAI_trimmed": (ANSWERED, 7),
    "oai/sickle_noRecordsMatch": ({"no-news"}, 0),
    "oai/sickle_idDoesNotExist": ({"not-found"}, 0),
    "oai/sickle_Identify": ({"no-news"}, 0),
    "oai/sickle_GetRecord": (ANSWERED, 1),
    "oai/scythe_": ({"not-a-feed"}, 0),  # recordings in YAML, no answers: see test_oai.py for their bodies
    "oai/sample_arxiv_record.xml": (ANSWERED, 12),
    "oai/sample_arxiv_record": (ANSWERED, 1),
    "oai/arxiv_1711": (ANSWERED, 1),
    "feeds/notafeed": ({"not-a-feed"}, 0),
    "feeds/unrecognized": ({"not-a-feed"}, 0),
    "feeds/newsboat_empty": ({"empty-body"}, 0),
    "feeds/rss_2.0_invalid_1": ({"truncated"}, 0),
    "feeds/InvalidDateFormat": ({"truncated"}, 2),
    "feeds/missing-fields": ({"no-news"}, 0),
    "feeds/reader_full.rss": (ANSWERED, 2),  # three of its five items have neither title nor text nor address
    "feeds/reader_full.atom": (ANSWERED, 2),  # likewise
    "feeds/atom_with_link_tag": (ANSWERED, 1),
    "feeds/": (ANSWERED, None),
    "jsonfeed/ScriptingNews": ({"unsupported"}, 0),
    "jsonfeed/reader_unknown": ({"unsupported"}, 0),
    "jsonfeed/": (ANSWERED, None),
    "feedparser_suite/encoding__bozo_invalid": ({"truncated"}, 0),  # it ends in “</rss”
    "feedparser_suite/illformed__rss_incomplete": ({"truncated"}, 0),
    "feedparser_suite/illformed__rss_item_link": ({"truncated"}, 1),
    "feedparser_suite/": (ANSWERED, None),
    "html/": (ANSWERED, 1),
}
"""Beginning of a file's name → (statuses that are right, usable entries; None: what the manifest's words say)."""
COUNTS = re.compile(
    r"(?:^|[^\d.:])(\d+)(?: (?:valid|PubDate))? (?:entries|items|entry|item|papers?)\b|items=(\d+)"
)
PAGES = {
    "readability_toc-missing": {"title": "Simple Anomaly Detection Using Plain SQL", "day": "2020-09-21", "code": "26/26"},
    "readability_gitlab-blog": {
        "title": "3 surprising findings from our 2024 Global DevSecOps Survey", "day": "2024-06-25", "author": "Dave Steer",
    },
    "readability_firefox-nightly": {"title": "These Weeks in Firefox: Issue 85", "day": "2020-12-18", "author": "Mike Conley"},
    "readability_ietf-1": {"title": "remoteStorage", "code": "22/22"},
    "readability_mercurial": {"code": "46/46", "day": None},
    "readability_003": {"title": "Open Graph property title"},
    "readability_title-en-dash": {"title": "Lorem ipsum dolor sit amet"},
    "readability_gmw": {"title": "宇航员在太空中喝酒会怎么样？后果很严重", "day": "2017-03-10"},
    "readability_medium-1": {"day": "2015-03-17", "author": "Pippin Lee"},
    "trafilatura_caktus": {"day": "2015-06-08", "author": "Mark Lavin", "code": "2/2"},
    "trafilatura_lemire": {
        "title": "JSON parsing: simdjson vs. JSON for Modern C++", "day": "2019-08-02", "author": "Daniel Lemire", "code": "0/2",
    },
    "newspaper_chinese_article.html": {"title": "港特首梁振英就住宅违建事件道歉", "day": "2012-12-10"},
    "newspaper_chinese_article_002": {"title": "短缺药品保供稳价 全力保障临床用药需求", "day": "2023-11-17"},
}  # fmt: skip
"""What the manifest says of single pages."""


def right_of(file, words):
    """Statuses and number of usable entries that are right for a file."""
    if file.startswith("arxiv_api_cassettes/"):
        return right_of(file.replace("_cassettes", ""), words)
    if (found := re.search(r"q_testing_s\d+_m(\d+)", file)) is not None:
        return ANSWERED, int(found[1])
    if (found := re.search(r"ids=([\d.,]+)", words)) and "sample_arxiv_record.xml" not in file:
        return ANSWERED, len(found[1].split(","))
    statuses, count = next(value for start, value in RIGHT.items() if file.startswith(start))
    if count is None and (found := COUNTS.search(words)):
        count = int(found[1] or found[2])
    return statuses, count


def source_of(file, url):
    """Settings of the source that reads such a file."""
    kinds = {
        "arxiv_api": "arxiv",
        "arxiv_api_cassettes": "arxiv",
        "arxiv_rss": "arxiv_rss",
        "oai": "oai",
        "html": "page",
    }
    values = {"kind": kinds.get(file.partition("/")[0], "feed"), "url": url}
    if values["kind"] == "arxiv":
        if found := re.search(r"/id_(.*?)_s0", file):
            values["ids"] = (
                [found[1].replace("_", "/")] if re.match(r"[a-z-]+_\d", found[1]) else found[1].split("_")
            )
        else:
            size = re.search(r"_m(\d+)", file)
            values |= {
                "query": "testing",
                "page": int(size[1]) if size else 10,
                "limit": int(size[1]) if size else 10,
            }
    return values | ({"zone": "Asia/Shanghai"} if "kc0011" in file else {})


@pytest.fixture(scope="module")
def manifest(request):
    folder = request.config.rootpath.parent / "shared/ingest/data"
    if not folder.is_dir():
        pytest.skip("../shared is absent")
    with (folder / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        return folder, list(csv.DictReader(file, delimiter="\t"))


def serve(folder):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            name = self.path.lstrip("/").partition("?")[0]
            body = (folder / name).read_bytes()
            if name.startswith("arxiv_api_cassettes/"):
                body = json.loads(body)["body"].encode("latin-1")
            self.send_response(400 if "id_abc" in name else 200)
            kinds = {"html": "text/html", "json": "application/json"}
            self.send_header("Content-Type", kinds.get(name.rpartition(".")[2], "application/xml"))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


def test_every_file_ends_in_the_state_the_manifest_calls_right(manifest, kb, base, follow, monkeypatch):
    folder, rows = manifest
    server = serve(folder)
    place = f"127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("KB_ALLOW_PRIVATE", place)
    names = {f"s{number:03}": row for number, row in enumerate(rows)}
    for name, row in names.items():
        follow(name, **source_of(row["file"], f"http://{place}/{row['file']}"))
    try:
        ended = kb("ingest", "--since", "1980-01-01", "--no-triage", "--json")
    finally:
        server.shutdown()
        server.server_close()
    assert ended.code == 4, ended.err
    wrong, table = [], []
    for report in ended.json["sources"]:
        row = names[report["name"]]
        statuses, count = right_of(row["file"], row["what_is_right"])
        usable = report["new"] + report["known"] + report["updated"]
        is_right = report["status"] in statuses and count in {None, usable}
        table.append(f"{'right' if is_right else 'WRONG'}  {report['status']:<12} {usable:>4}  {row['file']}")
        if not is_right:
            wrong.append((row["file"], report["status"], usable, statuses, count, report["detail"]))
    table.append(f"{len(rows) - len(wrong)} of {len(rows)} as the manifest says")
    sys.stdout.write("\n".join(table) + "\n")
    assert len(rows) == 170
    assert not wrong


@pytest.mark.parametrize("start", PAGES)
def test_a_page_says_of_itself_what_the_manifest_says(manifest, start):
    from kb.http import Answer
    from kb.ingest.extract import extract

    folder, _ = manifest
    (path,) = (folder / "html").glob(f"{start}*" if not start.endswith(".html") else start)
    made = extract(
        Answer("https://example.org/posts/one", 200, {"content-type": "text/html"}, path.read_bytes()), "UTC"
    )
    page, right = made.page, PAGES[start]
    assert page.title == right.get("title", page.title)
    assert (page.published[0].day.isoformat() if page.published else None) == right.get(
        "day", page.published[0].day.isoformat() if page.published else None
    )
    assert right.get("author", "") in ("", *page.authors)
    assert made.losses.get("code_blocks", "") == right.get("code", made.losses.get("code_blocks", ""))


def test_hidden_text_does_not_reach_the_item(manifest):
    from kb.http import Answer
    from kb.ingest.extract import extract

    folder, _ = manifest
    body = (folder / "html/readability_visibility-hidden.html").read_bytes()
    made = extract(Answer("https://example.org/x", 200, {}, body), "UTC")
    assert made.page.hidden == 1
    assert "Excepteur sint occaecat" in made.markdown
    assert "Lorem ipsum dolor" not in made.markdown


@pytest.mark.parametrize("file", ["readability_base-url", "readability_base-url-base-element"])
def test_relative_links_are_made_absolute(manifest, file):
    from kb.http import Answer
    from kb.ingest.extract import extract

    folder, _ = manifest
    body = (folder / f"html/{file}.html").read_bytes()
    markdown = extract(Answer("http://fakehost/test/index.html", 200, {}, body), "UTC").markdown
    targets = re.findall(r"\]\(([^)]+)\)", markdown)
    assert targets
    assert all(target.startswith(("http://", "https://", "mailto:")) for target in targets)


def test_a_bad_date_hides_no_good_one(manifest):
    from kb.http import Answer
    from kb.ingest.dates import read_date
    from kb.ingest.feeds import read_document

    folder, _ = manifest
    body = (folder / "feeds/InvalidDateFormat.xml").read_bytes()
    entries = read_document(Answer("http://example.com/f", 200, {}, body)).entries
    first = next(
        date
        for name, text in (*entries[0].published, *entries[0].updated)
        if (date := read_date(text, "UTC"))
    )
    assert first.moment.isoformat().startswith("2017-10-16T15:10:00")
