"""Every request ends by its deadline with a record of its own, whatever the server does, and no bad answer is a number."""

import threading
import time
from functools import partial

import pytest

from kb.errors import CannotRun, WrongUse
from kb.http.stream import Endpoint
from kb.repro.engines.load import STATUSES, Ask, Terms, drive, need_clean
from tests.repro.engines import hostile

PROMPT = (1, 2, 3)
DEADLINE = 0.6
SLACK = 3.0
"""What a busy machine may add to a deadline before a test calls it a hang."""
NUMBER = len(PROMPT)


def run(server, count=1, *, max_tokens=4, every_s=0.0, **terms):
    asks = [Ask(number * every_s, PROMPT, max_tokens) for number in range(count)]
    return drive(Endpoint(server.url), "m", asks, Terms(**{"deadline_s": DEADLINE, **terms}))


DEEP = b"data: " + b"[" * 50_000 + b"\n\n"
FOUR = b"".join(map(hostile.token, "abcd"))
BAD = [
    pytest.param(hostile.silent, "too-slow", id="says-nothing"),
    pytest.param(hostile.stalls, "too-slow", id="stalls-after-a-token"),
    pytest.param(hostile.trickles, "too-slow", id="trickles-a-byte-at-a-time"),
    pytest.param(hostile.trickles_headers, "too-slow", id="trickles-its-headers"),
    pytest.param(hostile.resets, "reset", id="resets-in-the-middle"),
    pytest.param(hostile.resets_at_once, "unreachable", id="resets-before-it-answers"),
    pytest.param(hostile.ends_early, "reset", id="ends-without-the-end-mark"),
    pytest.param(hostile.answering("429 Too Many Requests"), "rate-limited", id="429"),
    pytest.param(hostile.answering("500 Internal Server Error"), "server-error", id="500"),
    pytest.param(hostile.answering("503 Service Unavailable"), "server-error", id="503"),
    pytest.param(hostile.answering("404 Not Found"), "refused", id="404"),
    pytest.param(hostile.answering("302 Found"), "refused", id="sends-us-elsewhere"),
    pytest.param(hostile.answering("200 OK", b"<html>hello</html>"), "garbage", id="answers-a-page"),
    pytest.param(hostile.streaming(b"\x00\xff\xfe\x80\n" * 9), "garbage", id="streams-bytes"),
    pytest.param(hostile.streaming(b"data: {\n\n"), "garbage", id="streams-broken-json"),
    pytest.param(hostile.streaming(b"data: 7\n\n"), "garbage", id="streams-no-object"),
    pytest.param(hostile.streaming(DEEP), "garbage", id="streams-nesting-without-end"),
    pytest.param(hostile.streaming(b'data: {"choices": 3}\n\n'), "garbage", id="choices-are-a-number"),
    pytest.param(hostile.streaming(b'data: {"choices": [{"text": 3}]}\n\n'), "garbage", id="text-is-a-number"),
    pytest.param(hostile.streaming(hostile.event({"error": "boom"})), "server-error", id="error-in-the-stream"),
    pytest.param(hostile.flood, "too-large", id="floods"),
    pytest.param(hostile.one_long_line, "too-large", id="one-line-without-end"),
    pytest.param(hostile.streaming(FOUR, hostile.END), "lies", id="no-usage"),
    pytest.param(hostile.streaming(FOUR, hostile.usage(NUMBER, 400), hostile.END), "lies", id="more-output-than-asked"),
    pytest.param(hostile.streaming(FOUR, hostile.usage(NUMBER, 3), hostile.END), "lies", id="less-output-than-seen"),
    pytest.param(hostile.streaming(FOUR, hostile.usage(1, 4), hostile.END), "lies", id="another-prompt"),
    pytest.param(hostile.streaming(FOUR, hostile.usage(NUMBER, -4), hostile.END), "lies", id="negative"),
    pytest.param(hostile.streaming(FOUR, hostile.usage(NUMBER, 4.0), hostile.END), "lies", id="a-float"),
    pytest.param(hostile.streaming(FOUR, hostile.usage(NUMBER, True), hostile.END), "lies", id="a-truth-value"),
    pytest.param(hostile.streaming(hostile.usage(NUMBER, 4), hostile.END), "lies", id="tokens-without-text"),
    pytest.param(
        hostile.streaming(FOUR, hostile.usage(NUMBER, 4, total_tokens=99), hostile.END), "lies", id="wrong-total"
    ),
    pytest.param(
        hostile.streaming(
            FOUR, hostile.usage(NUMBER, 4, prompt_tokens_details={"cached_tokens": 9}), hostile.END
        ),
        "lies",
        id="more-cached-than-sent",
    ),
    pytest.param(hostile.streaming(FOUR, hostile.token("e"), hostile.END), "lies", id="more-events-than-tokens"),
]  # fmt: skip


class TestHostileServer:
    @pytest.mark.parametrize(("behave", "status"), BAD)
    def test_is_named_and_gives_no_number(self, serve, behave, status):
        began = time.monotonic()
        driven = run(serve(behave))
        assert time.monotonic() - began < DEADLINE + SLACK
        (one,) = driven.sent
        assert (one.status, bool(one.detail)) == (status, True)
        assert status in STATUSES
        with pytest.raises(CannotRun, match="no number was taken") as refused:
            need_clean(driven, "test")
        assert f"request 0: {status}" in refused.value.cause

    def test_spoils_only_its_own_requests(self, serve):
        """Every third request stalls; the others are answered, and each has its own record."""

        def behave(server, connection, request, number):
            (hostile.stalls if number % 3 == 2 else hostile.good)(server, connection, request, number)

        driven = run(serve(behave), 9, every_s=0.02)
        assert sorted(one.status for one in driven.sent) == ["ok"] * 6 + ["too-slow"] * 3
        assert "3 of 9 requests cannot be used (3 too-slow)" in driven.trouble

    def test_is_left_alone_after_failures_in_a_row(self, serve):
        server = serve(hostile.answering("500 Internal Server Error"))
        driven = run(server, 60, every_s=0.01, stop_failures=5, most_open=1)
        assert server.asked < 60
        assert "5 failures in a row" in driven.stopped
        assert {one.status for one in driven.sent} == {"server-error", "not-sent"}
        assert "60 of 60" in driven.trouble

    def test_that_is_not_there_is_unreachable(self, serve):
        server = serve(hostile.good)
        server.close()
        assert run(server).sent[0].status == "unreachable"

    def test_leaves_no_thread_behind(self, serve):
        run(serve(hostile.silent), 5, deadline_s=0.2)
        assert not [one for one in threading.enumerate() if one.name.startswith("ThreadPoolExecutor")]


class TestOpenLoop:
    def test_good_answers_have_all_their_moments(self, serve):
        behave = partial(hostile.good, first_s=0.1, gap_s=0.02)
        driven = need_clean(run(serve(behave), 3, every_s=0.05, max_tokens=5), "test")
        for one in driven.sent:
            assert len(one.arrivals) == 5
            assert (one.prompt_tokens, one.output_tokens) == (NUMBER, 5)
            assert one.ttft_s >= 0.1
            assert len(one.itl_s) == 4
            assert sum(one.itl_s) == pytest.approx(one.e2e_s - one.ttft_s)
            assert one.tpot_s == pytest.approx(sum(one.itl_s) / 4)

    def test_a_token_that_is_no_text_is_a_token(self, serve):
        """Half a character of several bytes: the server sends an event with a reason to end and no text."""
        last = hostile.event({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})
        behave = hostile.streaming(last, hostile.usage(NUMBER, 1), hostile.END)
        (one,) = need_clean(run(serve(behave), max_tokens=1), "test").sent
        assert (one.output_tokens, len(one.arrivals)) == (1, 1)

    def test_requests_do_not_wait_for_a_slow_server(self, serve):
        """Each answer takes 0.4 s, a request is due every 0.05 s: they overlap."""
        server = serve(partial(hostile.good, first_s=0.4))
        run(server, 8, every_s=0.05, deadline_s=10.0)
        assert server.most_open >= 4

    def test_a_request_held_back_by_the_driver_counts_from_when_it_was_due(self, serve):
        """One connection, 0.2 s an answer, all due at once: the clock of the fifth runs from the start (no omission)."""
        driven = need_clean(
            run(serve(partial(hostile.good, first_s=0.2)), 5, most_open=1, deadline_s=30.0), "t"
        )
        times = [one.ttft_s for one in driven.sent]
        assert times == sorted(times)
        assert times[4] >= 5 * 0.2
        assert driven.sent[4].sent_s >= 4 * 0.2

    def test_one_that_could_not_be_sent_by_its_deadline_says_so(self, serve):
        driven = run(serve(hostile.silent), 3, most_open=1, deadline_s=0.3)
        assert [one.status for one in driven.sent] == ["too-slow", "not-sent", "not-sent"]
        assert "connections were taken" in driven.sent[2].detail

    def test_a_closed_loop_counts_from_when_its_client_was_free(self, serve):
        server = serve(partial(hostile.good, first_s=0.1))
        driven = need_clean(run(server, 4, most_open=2, open_loop=False), "test")
        assert server.most_open <= 2
        assert max(one.ttft_s for one in driven.sent) < 0.1 + SLACK
        assert driven.sent[3].due_s >= 0.1

    def test_warm_up_is_sent_and_not_measured(self, serve):
        server = serve(hostile.good)
        asks = [Ask(0.0, PROMPT, 2, warm_up=True), Ask(0.1, PROMPT, 2)]
        driven = drive(Endpoint(server.url), "m", asks, Terms(deadline_s=DEADLINE))
        assert (server.asked, len(driven.sent), len(driven.measured)) == (2, 2, 1)

    def test_stops_when_it_is_precise_enough_and_that_is_no_trouble(self, serve):
        server = serve(partial(hostile.good, first_s=0.02))
        driven = run(server, 400, every_s=0.01, stop_precision=0.9, stop_least=5, deadline_s=10.0)
        assert server.asked < 400
        assert driven.stopped == "precise enough"
        assert not driven.trouble

    def test_stops_at_its_limit_and_says_what_was_left(self, serve):
        driven = run(serve(hostile.good), 50, every_s=0.05, stop_s=0.2, stop_failures=1000)
        assert "limit of 0.2 s" in driven.stopped
        assert "not-sent" in driven.trouble


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "file:///etc/passwd", "http://", "http://[::1"])
def test_an_address_that_is_none_is_wrong_use(url):
    with pytest.raises(WrongUse, match="not asked"):
        Endpoint(url)
