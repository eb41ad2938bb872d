"""One run against everything hostile at once, as a process of its own: every refusal has its status, the others finish, memory stays small."""

import json
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from tests.ingest.atom import ATOM, ENTRY

ROOT = Path(__file__).resolve().parents[2]
SLOW = {
    "comments that never end": (b"&lt;!--", 3_000_000),
    "elements in elements": (b"<a>", 3_000_000),
}
LINEAR = {
    "escaped-cdata": ("feed", b"&lt;![CDATA[", 15 << 20),
    "titles-of-no-feed": ("feed", b"<html><title>", 15 << 20),
    "entities-without-end": ("feed", b"<!DOCTYPE x [<!ENTITY ", 15 << 20),
    "errors-of-the-api": ("arxiv", b"/api/errors#</id><summary>", 15 << 20),
    "wide-table": ("page", b"<td colspan=49>x", 300_000),
}
CHILD = """
import re, sys
from pathlib import Path
from kb.cli.root import run
code = run(sys.argv[1:])
print("PEAK", re.search(r"VmHWM:\\\\s+(\\\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
""".replace("\\\\", "\\")


def drip(handler):
    """One byte every half second, for longer than anybody waits."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(40):
        try:
            handler.wfile.write(b"<")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.5)


@pytest.mark.parametrize("name", SLOW)
def test_a_document_made_to_be_slow_is_ended_by_its_limits(name):
    from kb.ingest.feedxml import Body, Unreadable, read_xml
    from kb.ingest.workers import apart

    unit, size = SLOW[name]
    body = b"<rss version='2.0'><channel><item><description>" + unit * (size // len(unit))
    found = apart(read_xml, Body(body, "https://example.org/feed"), cpu_s=1)
    assert isinstance(found, Unreadable)
    assert found.status == "too-slow"


@pytest.mark.parametrize("name", LINEAR)
def test_our_own_reading_takes_time_in_proportion(name):
    from kb.http import Answer
    from kb.ingest.arxivxml import read_page
    from kb.ingest.extract import extract
    from kb.ingest.feedxml import Body, _mended, _what_else

    kind, unit, size = LINEAR[name]
    body = b"<feed xmlns='http://www.w3.org/2005/Atom'>" + unit * (size // len(unit))
    started = time.process_time()
    if kind == "arxiv":
        read_page(body, 0, 10)
    elif kind == "feed":
        _mended(body, [])
        _what_else(Body(body, "https://example.org/feed"))
    else:
        text = b"<p>" + b"words, words and words. " * 20 + b"</p>"
        table = b"<table><tr>" + unit * (size // len(unit)) + b"</tr>" + b"<tr><td>1" * 500 + b"</table>"
        made = extract(Answer("https://example.org/p", 200, {}, text + table), "UTC")
        assert made.losses["tables"] == "0/1"
    assert time.process_time() - started < 2


def test_a_bomb_a_drip_a_loop_and_ways_inwards_are_refused_and_every_other_source_finishes_P126_P130_P131(
    web, follow, base, monkeypatch
):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([packer.compress(bytes(1 << 20)) for _ in range(200)] + [packer.flush()])
    web.answers["/drip"] = (200, {}, drip)
    hostile = {
        "bomb": (web.serve("/bomb", bomb, content_encoding="gzip"), "too-large"),
        "drip": (web.url + "/drip", "too-slow"),
        "file": ("file:///etc/passwd", "unsupported"),
        "inwards": (web.serve("/in", status=302, location="http://169.254.169.254/latest"), "blocked-private-address"),
        "loop": (web.serve("/loop", status=302, location="/loop"), "unreachable"),
        "mapped": (web.serve("/map", status=302, location="http://[::ffff:127.0.0.1]/"), "blocked-private-address"),
    }  # fmt: skip
    for name, (url, _) in hostile.items():
        follow(name, kind="feed", url=url)
    for n in range(12):
        entry = ENTRY.format(f"https://example.org/{n}", f"Post {n}")
        follow(f"zz-good-{n:02}", kind="feed", url=web.serve(f"/f{n}", ATOM.format(entry)))
    monkeypatch.setenv("KB_REQUEST_S", "2")
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, "-C", str(base.root), "ingest", "--no-triage", "--json"],
        capture_output=True, text=True, cwd=ROOT, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 4, ended.stderr
    rows = {row["name"]: row for row in json.loads(ended.stdout)["sources"]}
    assert {name: rows[name]["status"] for name in hostile} == {
        name: status for name, (_, status) in hostile.items()
    }
    assert all(rows[f"zz-good-{n:02}"]["new"] == 1 for n in range(12))
    # the drip ends with its deadline, which is for all tries together: it took 20 s otherwise
    assert rows["drip"]["seconds"] < 10
    assert rows["drip"]["requests"] == 1
    assert int(re.search(r"PEAK (\d+)", ended.stderr)[1]) < 300 * 1024
