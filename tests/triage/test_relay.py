"""A figure quoted second hand against its source: number, bound, unit, comparator, attribution."""

import csv

import pytest

from kb.curated import read_curated
from kb.model import Claim
from kb.store import Base
from kb.triage.quantities import extract
from kb.triage.relay import compare, relayed

SOURCE = {
    "id": "tamis/tail", "item": "arxiv:2601.00077", "statement": {"zh": "P99 尾延迟降低", "en": "P99 tail latency falls"},
    "unit": "fraction", "low": 0.35, "high": 0.5, "bound": "up-to", "baseline": "SRPT", "provenance": "primary",
}  # fmt: skip


def claim(**changes):
    return Claim.model_validate({**SOURCE, **changes})


@pytest.mark.parametrize(
    ("said", "match"),
    [
        pytest.param("相比 SRPT，P99 尾延迟最多低 35-50%", "matches", id="all-the-same"),
        pytest.param("P99 尾延迟最多低 35-50%", "matches", id="no-comparator-named"),
        pytest.param("P99 尾延迟低 35-50%", "bound-dropped", id="up-to-lost"),
        pytest.param("相比 FCFS，P99 尾延迟最多低 35-50%", "different-comparator", id="another-comparator"),
        pytest.param("P99 尾延迟最多低 35-60%", "different-value", id="another-number"),
        pytest.param("P99 尾延迟最多快 1.5 倍", "different-unit", id="a-factor-for-a-share"),
        pytest.param("P99 tail latency falls by up to 35–50% against SRPT", "matches", id="english"),
    ],
)
def test_how_a_figure_relates_to_its_claim(said, match):
    (quantity,) = [q for q in extract(said) if q.role == "claim"]
    assert compare(quantity, claim()) == match


DRAFT = """Ann 2026-06-01

1️⃣ Tamis · 尾延迟 — arXiv:2601.00077（⭐⭐⭐⭐ x）

  • 链接：https://arxiv.org/abs/2601.00077v1
  • 关键数据：
    • {said}
"""


def judged(said, claims):
    curated = read_curated(DRAFT.format(said=said), "x")
    return [
        (r.claim, r.match, r.basis) for r in relayed(curated, "ann/2026-06-01-x", {c.id: c for c in claims})
    ]


def test_a_recorded_comparison_counts_before_a_computed_one():
    record = {"draft": "ann/2026-06-01-x#1", "said": "35-50%", "match": "not-in-source"}
    assert judged("P99 尾延迟低 35-50%", [claim(relayed=[record])]) == [
        ("tamis/tail", "not-in-source", "registry")
    ]
    assert judged("P99 尾延迟低 35-50%", [claim()]) == [("tamis/tail", "bound-dropped", "figures")]


def test_a_figure_of_another_source_is_misattributed():
    own = claim(
        id="tamis/other", low=0.1, high=0.1, bound="exact", statement={"zh": "开销", "en": "overhead"}
    )
    assert judged("P99 尾延迟低 35-50%", [own, claim(item="arxiv:2601.00088")]) == [
        ("tamis/tail", "misattributed", "figures")
    ]


def test_nothing_is_said_where_the_registry_holds_no_claim_of_the_source():
    assert judged("P99 尾延迟低 35-50%", [claim(item="arxiv:2601.00088")]) == []


def test_the_check_names_the_line_and_both_figures(kb, base, tmp_path):
    (tmp_path / "x.txt").write_text(DRAFT.format(said="P99 尾延迟低 35-50%"))
    kb("ingest", "--file", tmp_path / "x.txt")
    (base.root / "claims").mkdir(exist_ok=True)
    (base.root / "claims/tamis.toml").write_text(
        '[[claim]]\nid = "tamis/tail"\nitem = "arxiv:2601.00077"\nstatement = {zh = "尾延迟", en = "tail latency"}\nunit = "fraction"\n'
        'low = 0.35\nhigh = 0.5\nbound = "up-to"\nbaseline = "SRPT"\nlocator = "abstract"\nconditions = {load = "bursts"}\nprovenance = "primary"\n'
    )
    (finding,) = kb("check", "--json").json
    assert finding["code"] == "relay-bound-dropped"
    assert finding["original_line"] == 7
    assert (finding["stated"], finding["counted"]) == (
        "0.35–0.5 fraction",
        "up-to 0.35–0.5 fraction against SRPT",
    )


KINDS = {"outdated": "different-value", "wrong-venue": "different-value"}
LINT = {"count-mismatch", "dangling-reference", "host-mismatch", "no-destination", "contradicts-itself"}
NAMES = {
    "2026-06-10": "jay/2026-06-10-inference-kv-serve-supplement",
    "2026-07-02": "jay/2026-07-02-inference-systems-brief",
}


def test_the_drifts_of_the_seed_drafts(shared, request):
    """Rows of drift.tsv whose words the registry holds a claim for: the kind is right in at least nine of ten.

    A row counts as held where a quotation was found on its line with the row's words.
    """
    base = Base(request.config.rootpath / "shared/research-kb")
    claims = base.claims()
    found = {}
    for day, name in NAMES.items():
        (seed,) = (shared / "seeds").glob(f"{day}*")
        for hit in relayed(read_curated(seed.read_text(), seed.name), name, claims):
            found.setdefault((day, hit.line), []).append(hit)
    rows = list(csv.DictReader((shared / "cases/drift.tsv").read_text().splitlines(), delimiter="\t"))
    held, right, wrong = 0, 0, []
    for row in rows:
        hits = [h for h in found.get((row["draft"], int(row["line"])), []) if same_words(h.said, row["said"])]
        if row["kind"] in LINT or not hits:
            continue
        held += 1
        if KINDS.get(row["kind"], row["kind"]) in {h.match for h in hits}:
            right += 1
        else:
            wrong.append((row["line"], row["said"], row["kind"], [(h.claim, h.match) for h in hits]))
    assert held >= 25
    assert right / held >= 0.9, f"{right} of {held}: {wrong}"


def same_words(left, right):
    a, b = (text.replace(" ", "").replace("–", "-").replace("~", "") for text in (left, right))
    return a in b or b in a
