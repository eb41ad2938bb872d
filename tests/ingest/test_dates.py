"""Dates are read strictly, with the zone they were read in; what is not wholly a date is none (P073–P079, P111, P144)."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.ingest.arxiv_calendar import earliest_announcement, latest_batch, why_quiet
from kb.ingest.dates import date_in_path, read_date

SHANGHAI = "Asia/Shanghai"


@pytest.mark.parametrize(
    ("text", "iso", "is_assumed"),
    [
        pytest.param("2020/1/10 14:33:00", "2020-01-10T14:33:00+08:00", True, id="chinese-forum"),
        pytest.param("2026年6月10日", "2026-06-10", False, id="chinese-day"),
        pytest.param("2026年6月10日 08:00", "2026-06-10T08:00:00+08:00", True, id="chinese-moment"),
        pytest.param(
            "2026年06月10日星期三 15时20分", "2026-06-10T15:20:00+08:00", True, id="chinese-weekday"
        ),
        pytest.param("2026/06/10 下午3:20", "2026-06-10T15:20:00+08:00", True, id="chinese-afternoon"),
        pytest.param("２０２６-０６-１０", "2026-06-10", False, id="full-width"),
        pytest.param("2026-06-10 08:00 CST", "2026-06-10T08:00:00+08:00", True, id="cst-is-the-sources-zone"),
        pytest.param("2026-06-10 08:00 Asia/Shanghai", "2026-06-10T08:00:00+08:00", False, id="named-zone"),
        pytest.param("Wed, 10 Jun 2026 08:00 GMT+8", "2026-06-10T08:00:00+08:00", False, id="gmt+8"),
        pytest.param("Wed, 10 Jun 2026 08:00:00 +0800", "2026-06-10T08:00:00+08:00", False, id="rfc-2822"),
        pytest.param("Sat, 7 Sep 02 00:00:01 GMT", "2002-09-07T00:00:01+00:00", False, id="rfc-822"),
        pytest.param("Wed, 02 Oct 2002 08:00:00 EST", "2002-10-02T08:00:00-05:00", False, id="est"),
        pytest.param("2026-06-10T08:00:00.123Z", "2026-06-10T08:00:00+00:00", False, id="rfc-3339"),
        pytest.param("20260610T080000Z", "2026-06-10T08:00:00+00:00", False, id="basic-iso"),
        pytest.param("2026-06-10T24:00:00Z", "2026-06-11T00:00:00+00:00", False, id="midnight-at-the-end"),
        pytest.param("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00", False, id="leap-second"),
        pytest.param("Thu Jun 11 10:00:00 2026", "2026-06-11T10:00:00+08:00", True, id="asctime"),
        pytest.param("June 10, 2026", "2026-06-10", False, id="american"),
        pytest.param("10 June 2026 3:04 PM EST", "2026-06-10T15:04:00-05:00", False, id="pm"),
        pytest.param("1718006400", "2024-06-10T08:00:00+00:00", False, id="unix"),
        pytest.param("1718006400000", "2024-06-10T08:00:00+00:00", False, id="unix-ms"),
    ],
)
def test_what_publishers_write(text, iso, is_assumed):
    stamp = read_date(text, SHANGHAI).stamp("pubDate")
    assert (stamp.at, stamp.assumed, stamp.field) == (iso, is_assumed, "pubDate")
    assert stamp.zone == (SHANGHAI if is_assumed else "")


@pytest.mark.parametrize(
    "text",
    ["", "  ", "2026", "2026-06", "June 2026", "Seg, 24 Set 2018", "31 Jun 2026", "2026-13-01", "2026-06-10 25:00", "yesterday",
     "© 2017", "v2.6.10", "10.06.26", "2026-06-10 08:00 Mars/Base", "12345", "x" * 500, None, True, "2026-06-10 08:00 +99:00"],
)  # fmt: skip
def test_what_is_no_date(text):
    assert read_date(text, "UTC") is None


@pytest.mark.parametrize("now", ["2026-06-15T00:00:00Z", "2026-11-30T00:00:00Z"])
def test_the_day_of_the_run_changes_nothing(monkeypatch, now):
    monkeypatch.setenv("KB_NOW", now)
    assert read_date("2026/06/10 08:00:00", SHANGHAI).day == dt.date(2026, 6, 10)


@pytest.mark.parametrize(
    ("path", "day"),
    [("/articles/2026/06/24/optimizing", "2026-06-24"), ("/2023-11/17/c_1.htm", "2023-11-17"), ("/20260624/x", "2026-06-24"),
     ("/2026/06/", None), ("/2026/13/40/x", None), ("/blog/v2026-release", None)],
)  # fmt: skip
def test_a_day_in_an_address(path, day):
    found = date_in_path(path)
    assert (found.day.isoformat() if found else None) == day


@given(
    st.text(max_size=90)
    | st.from_regex(r"[0-9]{1,4}[-/年.][0-9]{1,2}[-/月.][0-9]{1,3}日? ?[0-9:]{0,9} ?[A-Z+0-9:]{0,6}")
)
def test_reading_never_fails_and_never_invents_a_year(text):
    found = read_date(text, SHANGHAI)
    if found is not None:
        assert 1900 <= found.day.year <= 2200


@given(st.integers(40_000_000, 7_000_000_000))
def test_every_rfc_3339_moment_is_read_as_it_is(seconds):
    plain = dt.datetime.fromtimestamp(seconds, dt.UTC)
    assert read_date(plain.isoformat(), SHANGHAI).moment == plain


# arXiv's days


@pytest.mark.parametrize(
    ("submitted", "announced"),
    [
        ("2026-06-08T17:59:59Z", "2026-06-09T00:00:00Z"),  # Monday 13:59:59 in New York: that evening
        (
            "2026-06-08T18:00:00Z",
            "2026-06-10T00:00:00Z",
        ),  # the cut-off: Tuesday evening, Wednesday 08:00 in Shanghai
        ("2026-06-11T18:00:00Z", "2026-06-15T00:00:00Z"),  # Thursday after the cut-off: Sunday evening
        ("2026-06-12T18:00:00Z", "2026-06-16T00:00:00Z"),  # Friday after the cut-off: Monday evening
        ("2026-01-12T18:59:59Z", "2026-01-13T01:00:00Z"),  # winter: the cut-off is 19:00Z, the evening 01:00Z
    ],
)
def test_the_earliest_announcement_follows_the_cut_off_P144_P145(submitted, announced):
    moment = earliest_announcement(dt.datetime.fromisoformat(submitted))
    assert moment == dt.datetime.fromisoformat(announced)


@pytest.mark.parametrize(
    ("now", "says"),
    [("2026-06-13T12:00:00Z", "weekend"), ("2026-06-19T15:00:00Z", "holiday"), ("2026-06-17T12:00:00Z", "")],
)
def test_quiet_days_are_explained_P046(now, says):
    assert says in why_quiet(dt.datetime.fromisoformat(now))
    assert bool(why_quiet(dt.datetime.fromisoformat(now))) == bool(says)


@pytest.mark.parametrize(
    ("now", "batch"),
    [("2026-06-17T12:00:00Z", "2026-06-17"), ("2026-06-18T03:00:00Z", "2026-06-18"), ("2026-06-13T12:00:00Z", "2026-06-12"),
     ("2026-06-19T15:00:00Z", "2026-06-18")],
)  # fmt: skip
def test_the_batch_that_is_due(now, batch):
    assert latest_batch(dt.datetime.fromisoformat(now)).isoformat() == batch
