"""Numbers read as a reader expects: three digits, the unit, the qualifier of the source, n."""

from __future__ import annotations

import pytest

from kb.model import Stated
from kb.publish.numbers import digits, quantity, span, stated


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.18515, "fraction", "18.5 %"),
        (0.07, "fraction", "7 %"),
        (0.0, "fraction", "0 %"),
        (0.9999, "fraction", "100 %"),
        (1e-6, "fraction", "0.0001 %"),
        (1.7, "ratio", "1.7×"),
        (14_400, "tokens", "14,400 tokens"),
        (14_400, "count", "14,400"),
        (12_345_678, "bytes", "12.3 MB"),
        (999, "bytes", "999 B"),
        (3.35e12, "bytes/s", "3.35 TB/s"),
        (0.035, "s", "35 ms"),
        (0.0, "s", "0 s"),
        (2.5e-7, "s", "250 ns"),
        (120, "s", "120 s"),
        (1234.5, "tok/s", "1,230 tok/s"),
        (2.5, "usd", "US$2.5"),
        (-0.05, "fraction", "-5 %"),
        (1e15, "count", "1.00e+15"),
        (5, "{0.__class__}", "5 {0.__class__}"),
    ],
)
def test_a_quantity_reads_well(value, unit, text):
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00012345, "0.000123"), (1e-5, "1.00e-05"), (99.95, "100"), (12.34, "12.3"), (1999.9, "2,000")],
)
def test_three_digits_are_kept(value, text):
    assert digits(value) == text


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (0.157, 0.213, "fraction", "15.7–21.3 %"),
        (1.9, 3.0, "ratio", "1.9–3×"),
        (0.02, 0.035, "s", "20–35 ms"),
        (0.5, 2, "s", "500 ms–2 s"),
        (5, 5, "count", "5"),
        (1, 2, "count", "1–2"),
    ],
)
def test_a_range_names_its_unit_once_where_it_can(low, high, unit, text):
    assert span(low, high, unit) == text


@pytest.mark.parametrize(
    ("bound", "zh", "en"),
    [
        ("exact", "2–3×", "2–3×"),
        ("range", "2–3×", "2–3×"),
        ("about", "约 2–3×", "about 2–3×"),
        ("up-to", "至多 3×", "up to 3×"),
        ("at-least", "至少 2×", "at least 2×"),
        ("", "2–3×", "2–3×"),
    ],
)
def test_the_qualifier_of_the_source_is_kept(bound, zh, en):
    source = Stated(low=2, high=3, unit="ratio", bound=bound)
    assert (stated(source, "zh"), stated(source, "en")) == (zh, en)


def test_a_claim_that_is_no_number_says_so():
    assert stated(Stated(), "en") == "no number"
