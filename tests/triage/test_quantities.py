"""Figures of a text: value, unit, bound, baseline, and whether they are claimed or only set the scene.

A predicted claim counts as right where it overlaps the labelled quote and states the same low and high.
"""

import csv
import itertools
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.triage.quantities import extract

PASSAGES = Path(__file__).parent / "passages.txt"


@dataclass
class Passage:
    """A labelled passage."""

    id: str
    text: str
    claims: list
    """(quote, low, high, unit, bound, baseline)."""
    others: list
    """Quotes of conditions and of what is no quantity."""


@dataclass
class Score:
    """Counts over several passages."""

    found: int = 0
    missed: int = 0
    extra: int = 0
    qualified: int = 0
    """Found with the right unit and bound."""
    compared: int = 0
    based: int = 0
    wrong: str = ""

    @property
    def figures(self):
        return (
            self.found / (self.found + self.missed),
            self.found / (self.found + self.extra),
            self.qualified / self.found,
            self.based / self.compared,
        )


def own_passages(sets):
    passages = []
    for line in PASSAGES.read_text().splitlines():
        if line.startswith("@"):
            passages.append(Passage(line[1:4], "", [], []))
        elif line.startswith("= "):
            quote, low, high, unit, bound, baseline = (part.strip() for part in line[2:].split("¦"))
            passages[-1].claims.append((quote, float(low), float(high), unit, bound, baseline))
        elif line.startswith("- "):
            passages[-1].others.append(line[2:])
        elif line and not line.startswith("#"):
            passages[-1].text = line.replace("\\n", "\n")
    return [p for p in passages if p.id[0] in sets]


def seed_passages(shared):
    passages = []
    for row in csv.DictReader((shared / "cases/quantities.tsv").read_text().splitlines(), delimiter="\t"):
        labels = json.loads(row["quantities"])
        claims = [
            (q["quote"], q["low"], q["high"], q["unit"], q["bound"], q["baseline"] or "")
            for q in labels
            if q["is_claim"]
        ]
        passages.append(Passage(row["id"], row["passage"].replace("\\n", "\n"), claims, []))
    return passages


def words(text):
    return set(re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.lower())) - {"the", "a", "an", "of", "的"}


def is_near(a, b):
    return abs(a - b) <= 1e-3 * max(abs(a), abs(b)) + 1e-12


def score(passages):
    total = Score()
    for passage in passages:
        rest = [q for q in extract(passage.text) if q.role == "claim"]
        for quote, low, high, unit, bound, baseline in passage.claims:
            at = passage.text.index(quote)
            hits = [
                q
                for q in rest
                if q.start < at + len(quote) and at < q.end and is_near(q.low, low) and is_near(q.high, high)
            ]
            total.compared += bool(baseline)
            if not hits:
                total.missed += 1
                total.wrong += f"\n{passage.id}: missed {quote!r}"
                continue
            rest.remove(hits[0])
            total.found += 1
            total.qualified += (hits[0].unit, hits[0].bound) == (unit, bound)
            total.based += bool(baseline) and bool(words(baseline) & words(hits[0].baseline))
            if (hits[0].unit, hits[0].bound) != (unit, bound):
                total.wrong += f"\n{passage.id}: {quote!r} is {hits[0].unit} {hits[0].bound}"
        total.extra += len(rest)
        total.wrong += "".join(f"\n{passage.id}: extra {q.quote!r}" for q in rest)
    return total


def assert_good(total):
    recall, precision, qualified, based = total.figures
    said = f"recall {recall:.3f} precision {precision:.3f} unit, bound {qualified:.3f} baseline {based:.3f}{total.wrong}"
    assert recall >= 0.95, said
    assert precision >= 0.90, said
    assert qualified >= 0.95, said
    assert based >= 0.80, said


def test_the_labelled_passages_of_the_issue(shared):
    """Issue 4: 40 passages, Chinese and English."""
    assert_good(score(seed_passages(shared)))


@pytest.mark.parametrize("sets", ["AB", "C", "D", "F", "G", "H", "K", "L"])
def test_our_own_passages(sets):
    """A–C were tuned on. D, F, G, H, K and L were each labelled before they were run, then mended where they failed.

    Recall, precision, unit and bound, baseline of the first run: D .82 .82 .96 .89, F .95 .96 .98 .80, G .95 .95 1.0
    1.0, H 1.0 .93 .89 .80, K .89 .96 .94 .91 (60 passages, its kinds mended before L was written), L .95 .94 .99 .86 (60 passages).
    In K two labels were corrected after its first run: a recall that is an operating point, and counts of people.
    """
    assert_good(score(own_passages(sets)))


def test_there_are_enough_passages_in_both_languages():
    passages = own_passages("ABCDFGHKL")
    chinese = [p for p in passages if re.search("[\u4e00-\u9fff]", p.text)]
    assert len(passages) >= 100
    assert min(len(chinese), len(passages) - len(chinese)) >= 40


@pytest.mark.parametrize("passage", [p for p in own_passages("ABCDFGHKL") if p.others], ids=lambda p: p.id)
def test_conditions_and_noise_are_not_claimed(passage):
    claims = [q.quote for q in extract(passage.text) if q.role == "claim"]
    labelled = [quote for quote, *_ in passage.claims]
    for other in passage.others:
        if not any(other in quote for quote in labelled):
            assert other not in claims


PIECES = [
    *"0123456789.,%x×倍$-–~～约到从 \n|:：(（)）=±/",
    "up to ",
    "最高",
    "ms",
    " tok/s",
    "万",
    "亿",
    "of ",
    "half ",
    "三分之一",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_offsets_point_at_the_quote_and_ranges_are_ordered(text):
    """Whatever the text: no crash, text[start:end] is the quote, low ≤ high, quotes do not overlap."""
    found = extract(text)
    for quantity in found:
        assert text[quantity.start : quantity.end] == quantity.quote
        assert quantity.low <= quantity.high
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))


def test_full_width_forms_read_like_plain_ones():
    wide, plain = "吞吐提升３．５倍，时延降低１５％～２０％。", "吞吐提升3.5倍，时延降低15%~20%。"
    values = [[(q.low, q.high, q.unit) for q in extract(text)] for text in (wide, plain)]
    assert values[0] == values[1] == [(3.5, 3.5, "ratio"), (0.15, 0.2, "fraction")]


def test_a_long_text_is_read_in_linear_time():
    import time

    passage = (
        "The cache cuts latency by up to 35–50% against SRPT and holds 1,000 blocks of 16 tokens on 4x A100. "
    )
    spent = []
    for times in (200, 800):
        begin = time.perf_counter()
        assert len(extract(passage * times)) == len(extract(passage)) * times
        spent.append(time.perf_counter() - begin)
    assert spent[1] < 10 * spent[0] + 0.5
