"""The one client against servers that lie, stall, loop, explode and lead inwards."""

import gzip
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from kb.config import UserSettings, load_user
from kb.http import Client, Limits, NoAnswer, Tally, Validators
from kb.http.answer import retry_after
from kb.http.guard import allowed_endpoints, is_private, literal_address
from kb.http.pacing import ARXIV, Pacer, group_of

ROOT = Path(__file__).resolve().parents[2]


class FakeTime:
    """A clock that jumps instead of waiting."""

    def __init__(self):
        self.now, self.slept = 100.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def jitter(self):
        return 0.5


@pytest.fixture
def client(web, tmp_path):
    fake = FakeTime()
    with Client(load_user(), time=fake, pacer=Pacer(fake, tmp_path / "pace")) as made:
        made.fake = fake
        yield made


def status_of(call, *args, **kwargs):
    with pytest.raises(NoAnswer) as caught:
        call(*args, **kwargs)
    return caught.value.status


# Answers


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(gzip.compress(b"text" * 100), {"content_encoding": "gzip"}, id="gzip"),
        pytest.param(gzip.compress(b"text" * 100), {}, id="gzip-without-saying-so"),
        pytest.param(b"text" * 100, {"content_encoding": "gzip"}, id="plain-that-says-gzip"),
        pytest.param(zlib.compress(b"text" * 100), {"content_encoding": "deflate"}, id="zlib"),
        pytest.param(zlib.compress(b"text" * 100)[2:-4], {"content_encoding": "deflate"}, id="raw-deflate"),
        pytest.param(gzip.compress(b"text" * 50) + gzip.compress(b"text" * 50), {}, id="two-members"),
    ],
)
def test_compressed_bodies_are_read_whatever_the_header_says(client, web, body, headers):
    assert client.get(web.serve("/x", body, **headers)).body == b"text" * 100


@pytest.mark.parametrize(
    ("code", "status", "requests"),
    [(400, "bad-request", 1), (401, "refused", 1), (403, "refused", 1), (404, "not-found", 1), (410, "gone", 1),
     (418, "bad-request", 1), (429, "rate-limited", 3), (408, "too-slow", 3), (500, "unreachable", 3), (503, "unreachable", 3)],
)  # fmt: skip
def test_every_code_has_a_status_and_only_what_may_pass_is_asked_again(client, web, code, status, requests):
    assert status_of(client.get, web.serve("/x", b"no", status=code)) == status
    assert len(web.asked) == requests


def test_an_unasked_encoding_is_named(client, web):
    assert status_of(client.get, web.serve("/x", b"\x0b\x02\x80", content_encoding="br")) == "unsupported"


def test_a_cut_off_gzip_is_truncated(client, web):
    assert status_of(client.get, web.serve("/x", gzip.compress(b"text" * 999)[:-20])) == "truncated"


def test_a_body_shorter_than_announced_is_truncated(client, web):
    def cut(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"only this")
        handler.close_connection = True

    web.answers["/x"] = (200, {}, cut)
    assert status_of(client.get, web.url + "/x") == "truncated"


def test_validators_are_sent_verbatim_and_304_is_no_body(client, web):
    web.answers["/x"] = lambda _, h: (
        (304, {}, b"") if h.get("if-none-match") == 'W/"1"' else (200, {"etag": 'W/"1"'}, b"a")
    )
    first = client.get(web.url + "/x")
    assert first.validators == Validators('W/"1"', "")
    assert client.get(web.url + "/x", validators=first.validators).not_modified


def test_the_tally_counts_failures_too(client, web):
    tally = Tally()
    assert status_of(client.get, web.serve("/x", b"12345", status=500), tally=tally) == "unreachable"
    assert (tally.requests, tally.bytes) == (3, 15)


# Waiting


def test_retry_after_is_obeyed_and_too_long_a_wait_is_left_for_later(client, web):
    web.then("/x", (429, {"retry-after": "7"}, b""), (200, {}, b"ok"))
    assert client.get(web.url + "/x").body == b"ok"
    assert client.fake.slept == [7.0]
    assert status_of(client.get, web.serve("/y", status=429, retry_after="3600")) == "rate-limited"
    assert client.fake.slept == [7.0]


def test_back_off_grows(client, web):
    assert status_of(client.get, web.serve("/x", status=503)) == "unreachable"
    assert client.fake.slept == [3.0, 6.0]


def test_retry_after_may_be_a_date():
    import datetime as dt

    now = dt.datetime(2026, 7, 2, 3, 0, tzinfo=dt.UTC)
    assert retry_after("Thu, 02 Jul 2026 03:00:30 GMT", now) == 30.0
    assert retry_after("soon", now) is None


def test_arxiv_is_one_group_with_three_seconds_between_requests(tmp_path):
    fake = FakeTime()
    pacer = Pacer(fake, tmp_path)
    assert {
        group_of(host) for host in ("arxiv.org", "export.arxiv.org", "rss.arxiv.org", "oaipmh.arxiv.org")
    } == {ARXIV}
    for _ in range(3):
        with pacer.turn(ARXIV, 3.0):
            pass
    assert fake.slept == [3.0, 3.0]
    other = Pacer(fake, tmp_path)  # another process: the state lies in files
    with other.turn(ARXIV, 3.0):
        pass
    assert fake.slept == [3.0, 3.0, 3.0]


def test_a_denial_by_arxiv_is_remembered(tmp_path):
    fake = FakeTime()
    Pacer(fake, tmp_path).block(ARXIV)
    assert Pacer(fake, tmp_path).denied_for(ARXIV) > 3600
    fake.now += 5 * 3600
    assert Pacer(fake, tmp_path).denied_for(ARXIV) == 0


# Redirects


def test_only_permanent_redirects_propose_a_new_address(client, web):
    web.serve("/end", b"here")
    kept = client.get(web.serve("/a", status=302, location="/end"))
    moved = client.get(web.serve("/b", status=301, location="/end"))
    assert (kept.moved_to, moved.moved_to) == ("", web.url + "/end")


def test_a_loop_ends(client, web):
    assert status_of(client.get, web.serve("/a", status=302, location="/a")) == "unreachable"
    assert len(web.asked) == 11


def test_a_key_is_not_sent_to_another_host(client, web):
    web.serve("/end", b"")
    there = web.url.replace("127.0.0.1", "localhost") + "/end"
    web.serve("/a", status=302, location=there)
    with Client(
        UserSettings(allow_private=("127.0.0.1:" + web.url[-5:].lstrip(":"), there.split("/")[2]))
    ) as made:
        made.get(web.url + "/a", headers={"authorization": "Bearer s3cret"})
    assert web.asked[0].headers.get("authorization") == "Bearer s3cret"
    assert "authorization" not in web.asked[1].headers


# Inwards

PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "fe80::1",
           "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1", "not-an-ip"]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses(address):
    assert is_private(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "8.8.8.8"])
def test_public_addresses(address):
    assert not is_private(address)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [("127.1", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("017700000001", "127.0.0.1"),
     ("[::1]", "::1"), ("example.org", None)],
)  # fmt: skip
def test_odd_spellings_of_addresses_are_seen_through(spelling, address):
    assert literal_address(spelling) == address


@pytest.mark.parametrize(
    "target",
    ["http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/", "http://0x7f000001/", "http://localhost/", "http://127.1:1/",
     "http://[64:ff9b::7f00:1]/"],
)  # fmt: skip
def test_a_redirect_inwards_is_refused_before_anything_is_sent(client, web, target):
    assert status_of(client.get, web.serve("/x", status=302, location=target)) == "blocked-private-address"
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.org/x", "gopher://example.org", "data:text/plain,x"]
)
def test_only_http_is_spoken(client, web, url):
    assert status_of(client.get, url) == "unsupported"
    assert status_of(client.get, web.serve("/x", status=302, location=url)) == "unsupported"


def test_a_name_that_means_a_private_address_is_refused(web):
    with Client(UserSettings(), resolver=lambda *_: ["93.184.216.34", "10.0.0.1"]) as made:
        assert status_of(made.get, "http://innocent.example.org/") == "blocked-private-address"


def test_a_name_that_changes_between_check_and_connect_changes_nothing(web):
    answers = [["203.0.113.1"], ["127.0.0.1"]]
    asked = []

    def resolver(host, port):
        asked.append(host)
        return answers[min(len(asked) - 1, 1)]

    port = int(web.url.rpartition(":")[2])
    with Client(UserSettings(), resolver=resolver, limits=Limits(connect_s=0.3, tries=1)) as made:
        status = status_of(made.get, f"http://rebind.example.org:{port}/")
    # 203.0.113.0/24 is a documentation network: not public either, so the first answer already ends it
    assert status == "blocked-private-address"
    with Client(UserSettings(), resolver=resolver, limits=Limits(connect_s=0.3, tries=1)) as made:
        assert status_of(made.get, f"http://rebind.example.org:{port}/") == "blocked-private-address"
    assert asked == ["rebind.example.org"] * 2, (
        "one lookup per connection: what was checked is what is connected to"
    )
    assert web.asked == []


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch):
    import httpcore

    went = []

    def connect(self, host, port, *_):
        went.append(host)
        raise httpcore.ConnectError("no network in tests")

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect)
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    with Client(UserSettings(), resolver=lambda *_: next(answers), limits=Limits(tries=1)) as made:
        assert status_of(made.get, "http://rebind.example.org/") == "unreachable"
    assert went == ["93.184.216.34"]


def test_exactly_the_listed_endpoints_are_exempt(web):
    port = int(web.url.rpartition(":")[2])
    web.serve("/x", b"ok")
    with Client(UserSettings(allow_private=(f"127.0.0.1:{port}",))) as made:
        assert made.get(f"http://127.0.0.1:{port}/x").body == b"ok"
        assert status_of(made.get, f"http://localhost:{port}/x") == "blocked-private-address"
        assert status_of(made.get, f"http://127.0.0.1:{port + 1}/x") == "blocked-private-address"
    assert allowed_endpoints(["[::1]:80", "intranet"]) == {("::1", 80), ("intranet", 80), ("intranet", 443)}


def test_behind_a_proxy_private_addresses_are_still_refused(web):
    with Client(UserSettings(proxy=web.url)) as made:
        web.answers["http://example.org/x"] = (200, {}, b"by proxy")
        assert made.get("http://example.org/x").body == b"by proxy"
        assert status_of(made.get, "http://10.0.0.1/x") == "blocked-private-address"
        assert status_of(made.get, "http://169.254.169.254/") == "blocked-private-address"


def test_offline_asks_nobody(web):
    with Client(UserSettings(offline=True)) as made:
        assert status_of(made.get, "http://example.org/") == "unreachable"


# Exhaustion


def test_one_byte_every_half_second_meets_the_deadline(web):
    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(40):
            try:
                handler.wfile.write(b"x")
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.5)

    web.answers["/drip"] = (200, {}, drip)
    started = time.monotonic()
    with Client(load_user(), limits=Limits(total_s=1.2, tries=1)) as made:
        assert status_of(made.get, web.url + "/drip") == "too-slow"
    assert time.monotonic() - started < 4


def test_headers_that_never_end_meet_the_deadline(web):
    def drip(handler):
        for n in range(40):
            try:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n" if n == 0 else b"X-A: b\r\n")
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.3)

    web.answers["/drip"] = (200, {}, drip)
    with Client(load_user(), limits=Limits(total_s=1.0, tries=1)) as made:
        assert status_of(made.get, web.url + "/drip") == "too-slow"


BOMB = """
import re, sys
from pathlib import Path
from kb.config import load_user
from kb.http import Client, NoAnswer
with Client(load_user()) as client:
    try:
        client.get(sys.argv[1])
    except NoAnswer as problem:
        # not ru_maxrss, which begins with the size of the process that forked this one
        peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
        print(problem.status, peak.group(1))
"""


def test_a_bomb_of_200_mb_is_refused_in_little_memory(web):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join([packer.compress(bytes(1 << 20)) for _ in range(200)] + [packer.flush()])
    assert len(body) < 300_000
    url = web.serve("/bomb", body, content_encoding="gzip", content_type="application/xml")
    ended = subprocess.run(
        [sys.executable, "-c", BOMB, url], capture_output=True, text=True, cwd=ROOT, check=True
    )
    status, kilobytes = ended.stdout.split()
    assert status == "too-large"
    assert int(kilobytes) < 300 * 1024
