"""The shipped registry: every claim is one a reader can check, in two languages, with its provenance."""

import re
from pathlib import Path

import pytest
import yaml

from kb.identity import identify
from kb.store import Base
from kb.vocab import METRICS, RELAY_MATCHES, UNITS

ROOT = Path(__file__).parents[1]
CLAIMS = Base(ROOT / "shared/research-kb").claims()
DOSSIERS = ROOT.parent / "shared/dossiers"
AS_RATIO = {"eai/hole-filling"}
"""Kept as 18 / 3 copies, since a saving is what the claim is about."""
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def test_all_claims_load():
    assert len(CLAIMS) == 423


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_claim_says_what_is_meant_in_both_languages(claim):
    assert claim.statement.en
    assert CHINESE.search(claim.statement.zh)
    assert not CHINESE.search(claim.statement.en)
    assert claim.locator
    assert claim.doubt is None or (claim.doubt.en and CHINESE.search(claim.doubt.zh))


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_number_has_a_metric_a_unit_and_a_baseline_where_it_is_a_ratio(claim):
    assert claim.metric in METRICS
    assert claim.unit in UNITS
    if claim.low is None:
        assert claim.kind != "number"
        return
    assert claim.unit == METRICS[claim.metric].unit
    assert claim.baseline or claim.unit != "ratio"


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_its_item_is_a_canonical_id_and_its_relays_are_named(claim):
    work = identify(claim.item.removeprefix("url:") if claim.item.startswith("url:") else claim.item)
    assert work is not None
    assert work.id == claim.item
    assert all(relay.match in RELAY_MATCHES and relay.said for relay in claim.relayed)


def test_what_nobody_verified_says_so():
    """A claim without the digest of the bytes it was read in carries no quotation."""
    assert not [claim.id for claim in CLAIMS.values() if claim.quote and not claim.quote_sha256]


@pytest.mark.skipif(not DOSSIERS.is_dir(), reason="../shared/dossiers is absent")
def test_ids_and_figures_are_the_dossiers():
    """No claim is missing, none invented; a stated single figure has the dossier's digits."""
    known = {}
    for path in sorted(DOSSIERS.glob("*.yaml")):
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        entries = found if isinstance(found, list) else found["claims"]
        known |= {entry["id"]: entry for entry in entries}
    assert set(known) == set(CLAIMS)
    for name, entry in known.items():
        value, claim = entry.get("value"), CLAIMS[name]
        if name in AS_RATIO:
            continue
        if isinstance(value, (int, float)) and value and claim.low is not None and claim.low == claim.high:
            scale = claim.low / value
            assert any(
                abs(scale / s - 1) < 1e-6
                for s in (1, 0.01, 1e-3, 1e-9, 1e6, 1e9, 2**30, 3600, 60)
            ), (name, value, claim.low)  # fmt: skip
