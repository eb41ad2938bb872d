"""A stale verdict names its cause, and nothing else makes one stale."""

import datetime as dt

import pytest

from kb.model import DateStamp, Item
from kb.repro.harness import digests
from kb.repro.harness.run import Options, run_unit
from kb.repro.harness.stale import find_stale
from tests.repro.harness.conftest import CLAIM, TOY

TODAY = dt.date(2026, 7, 2)


@pytest.fixture
def ran(base, plant):
    run_unit(base, plant(), Options())
    return base


def causes(base, today=TODAY):
    return {one.cause for one in find_stale(base, today)}


def write_claim(base, text):
    (base.root / "claims/toy.toml").write_text(text, encoding="utf-8")


def test_nothing_is_stale_after_a_run(ran):
    assert causes(ran) == set()


def test_the_text_of_the_claim(ran):
    write_claim(ran, CLAIM.replace("a third comes back", "about a third comes back"))
    assert causes(ran) == {"claim"}


def test_the_stated_number_is_claim_rule_and_input(ran):
    write_claim(ran, CLAIM.replace("high = 0.33", "high = 0.34"))
    assert causes(ran) == {"claim", "rule", "inputs"}


def test_the_rule(ran):
    write_claim(ran, CLAIM + "holds = [0.0, 1.0]\n")
    assert causes(ran) == {"rule"}


def test_topics_and_relays_are_no_cause(ran):
    write_claim(ran, CLAIM.replace("\n[claim.rule]", 'topics = ["inference"]\n\n[claim.rule]'))
    assert causes(ran) == set()


def test_the_code_of_the_reproduction(ran, plant):
    plant(TOY + "\n# changed\n")
    assert causes(ran) == {"code"}


def test_a_data_file(base, plant, tmp_path):
    """Changed it is a cause; absent, as on a laptop, it is none."""
    file = tmp_path / "numbers.csv"
    file.write_text("1\n2\n")
    text = TOY + f"\n\ndef data():\n    from pathlib import Path\n\n    return [Path({str(file)!r})]\n"
    run_unit(base, plant(text), Options())
    assert causes(base) == set()
    file.write_text("1\n3\n")
    assert causes(base) == {"inputs"}
    file.unlink()
    assert causes(base) == set()


def test_a_module_that_the_code_imports(base, plant, monkeypatch):
    text = TOY.replace("from kb.model", "from kb.repro.sim import pages\nfrom kb.model")
    unit = plant(text)
    run_unit(base, unit, Options())
    assert any(path.name == "pages.py" for path in digests.traced(unit.path))
    monkeypatch.setattr(digests, "_sum", lambda path: "other" if path.name == "pages.py" else "same")
    assert causes(base) == {"code"}


def test_an_import_of_an_import_counts_and_messages_do_not(plant):
    unit = plant(TOY.replace("from kb.model", "from kb.repro import paged_eviction\nfrom kb.model"))
    names = {path.name for path in digests.traced(unit.path)}
    assert {"toy.py", "paged_eviction.py", "pages.py", "survivors.py", "bench.py"} <= names
    assert not {"errors.py", "vocab.py", "judge.py", "timing.py"} & names


def test_who_takes_times_depends_on_how_they_are_taken(plant):
    unit = plant(TOY.replace("from kb.model", "from kb.repro.harness.timing import Candidate\nfrom kb.model"))
    assert "timing.py" in {path.name for path in digests.traced(unit.path)}


def test_a_new_version_of_the_source(ran):
    ran.append_items([item("1")])
    run_unit(ran, _unit(), Options())
    assert causes(ran) == set()
    ran.append_items([item("2")])
    assert causes(ran) == {"source"}


def _unit():
    from kb.repro.harness.contract import units

    return units()["toy"]


def item(version):
    at = DateStamp(at="2026-06-01T00:00:00Z", field="published", zone="UTC")
    values = {"id": "url:example.org/toy", "version": version, "url": "https://example.org/toy", "title": "t",
              "first_seen": at, "content_sha256": version * 64, "fetched_at": "2026-06-01T00:00:00Z", "source": "s"}  # fmt: skip
    return Item.model_validate(values)


def test_other_versions_on_the_same_class_of_machine(ran, monkeypatch):
    from kb.repro.harness import stale

    here = stale.observe(())
    monkeypatch.setattr(stale, "observe", lambda _: here.model_copy(update={"numpy": "9.9"}))
    assert causes(ran) == {"environment"}


def test_another_machine_is_no_cause(ran, monkeypatch):
    from kb.repro.harness import stale

    here = stale.observe(())
    monkeypatch.setattr(
        stale, "observe", lambda _: here.model_copy(update={"cpu": "another", "numpy": "9.9"})
    )
    assert causes(ran) == set()


def test_a_state_of_a_product_expires(base, plant):
    write_claim(base, CLAIM.replace("\n[claim.rule]", 'valid_until = "2026-08-01"\n\n[claim.rule]'))
    run_unit(base, plant(), Options())
    assert causes(base) == set()
    assert causes(base, dt.date(2026, 8, 2)) == {"age"}


def test_a_reproduction_that_is_gone(ran, plant):
    unit = plant()
    unit.path.unlink()
    assert causes(ran) == {"code"}
