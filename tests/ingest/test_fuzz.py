"""Nothing that a server or a curator can send makes a source crash, hang or write outside the base.

200,000 inputs by `make soak`, 1 % of them by default, from fixed seeds: seven in ten are whole documents of every kind with
bytes, tags and fields mutated, three in ten hold text from Hypothesis in every field. What they give is committed and read back.
"""

import random
import sys

import hypothesis
import pytest

from tests.ingest.fuzz import LIMIT_S, Reader, documents, mutated, seeds

SEED = 20260702
MUTATED, DRAWN = 140_000, 60_000
PART = 2_000
"""Inputs per call of Hypothesis, which remembers all that it drew."""


@pytest.fixture
def reader(base, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with Reader(base, scratch) as made:
        yield made


def read_mutated(reader, count, seed):
    chance = random.Random(seed)
    whole = seeds()
    for _ in range(count):
        kind, document = chance.choice(whole)
        reader.read(kind, mutated(document, chance))
    reader.check()


def read_drawn(reader, count, seed):
    for number, start in enumerate(range(0, count, PART)):

        @hypothesis.seed(seed + number)
        @hypothesis.settings(
            max_examples=min(PART, count - start),
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(documents())
        def read(document):
            reader.read(*document)

        read()
    reader.check()


def test_one_in_a_hundred(reader):
    read_mutated(reader, MUTATED // 100, SEED)
    read_drawn(reader, DRAWN // 100, SEED)
    assert reader.inputs >= 2_000
    assert reader.entries > 500


@pytest.mark.soak
def test_two_hundred_thousand(reader):
    read_mutated(reader, MUTATED, SEED + 1)
    read_drawn(reader, DRAWN, SEED + 1)
    sys.stdout.write(
        f"{reader.inputs} inputs ({MUTATED} mutated, seed {SEED + 1}; the others drawn, seeds from {SEED + 1}), {reader.drafts} drafts, "
        f"{reader.entries} entries, statuses {', '.join(sorted(reader.statuses))}; no crash, none over {LIMIT_S} s, no stray file\n"
    )
    assert reader.inputs >= MUTATED + DRAWN


def test_a_hostile_name_leads_nowhere_outside_the_base_P134(kb, web, follow, base):
    from tests.ingest.test_cases import ATOM, ENTRY

    before = {path for path in base.root.parent.rglob("*") if not path.is_relative_to(base.root)}
    names = ["../../../etc/passwd", "/etc/passwd", "con", "…", "🔥", "a" * 4000, "%2e%2e%2fx", "C:\\x"]
    entries = "".join(ENTRY.format(f"https://example.org/{n}", name) for n, name in enumerate(names))
    follow("blog", kind="feed", url=web.serve("/feed", ATOM.format(entries)))
    assert kb("ingest", "--json").code == 0
    assert {path for path in base.root.parent.rglob("*") if not path.is_relative_to(base.root)} == before
