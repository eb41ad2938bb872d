"""A run travels as one file; damage is found, and only the expected digest makes it count as measured."""

import hashlib
import json
import shutil

import pytest

from kb.errors import BadInput, NothingMatches
from kb.files import digest
from kb.model import Measurement
from kb.repro.harness import archive
from kb.repro.harness.bench import identify
from kb.repro.harness.run import Options, run_unit
from kb.store import Base
from kb.tables import run_groups
from tests.repro.harness.conftest import TOY, files_of

MEASURED = TOY.replace('LEVELS = ("derived",)', 'LEVELS = ("measured",)')


@pytest.fixture
def packed(base, plant, tmp_path):
    """An archive of one measured run, its digest, and a second base that has the claim only."""
    run_unit(base, plant(MEASURED), Options())
    [(row, _)] = run_groups(base)
    path = tmp_path / "run.json"
    path.write_bytes(archive.export(base, [row.id]))
    other = tmp_path / "other"
    shutil.copytree(
        base.root, other, ignore=shutil.ignore_patterns("measurements", "verdicts", "figures", ".kb")
    )
    return path, hashlib.sha256(path.read_bytes()).hexdigest(), Base(other)


def bring(base, path, expect=""):
    return archive.import_file(base, path, expect, who="jay", at="2026-07-03T00:00:00Z", dry_run=False)


def test_with_the_expected_digest_it_counts_as_measured(packed):
    path, sha, other = packed
    [added] = bring(other, path, sha)
    assert (added.new, added.known, added.verified) == (3, 0, True)
    [verdict] = other.verdicts().values()
    assert (verdict.verdict, verdict.level) == ("holds", "measured")
    assert all(m.imported["by"] == "jay" and m.imported["archive"] == sha for m in other.measurements("toy"))


def test_without_it_the_run_is_never_measured(packed):
    path, _, other = packed
    bring(other, path)
    assert {m.level for m in other.measurements("toy")} == {"proxy"}
    assert other.verdicts()["toy/third"].level == "proxy"


def test_a_run_of_our_own_counts_before_an_unverified_one(packed, plant):
    path, _, other = packed
    bring(other, path)
    run_unit(other, plant(), Options())
    assert other.verdicts()["toy/third"].level == "derived"


def test_importing_twice_adds_nothing_and_the_digest_can_come_later(packed):
    path, sha, other = packed
    bring(other, path)
    assert bring(other, path)[0].new == 0
    assert bring(other, path, sha)[0].new == 3
    after = files_of(other)
    assert bring(other, path, sha)[0].new == 0
    assert files_of(other) == after
    assert other.verdicts()["toy/third"].level == "measured"


def test_another_file_than_the_expected_is_refused(packed):
    path, sha, other = packed
    before = files_of(other)
    path.write_bytes(path.read_bytes().replace(b"0.33", b"0.34", 1))
    with pytest.raises(BadInput, match="not imported"):
        bring(other, path, sha)
    assert files_of(other) == before


def tamper(path, change, *, mend_sum):
    body = json.loads(path.read_text())
    change(body["runs"][0]["measurements"][0])
    if mend_sum:
        del body["sum"]
        body["sum"] = digest(body)
    path.write_text(json.dumps(body))


@pytest.mark.parametrize("mend_sum", [False, True], ids=["checksum-left-as-it-was", "checksum-mended"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda m: m.update(samples=[0.9]), id="samples"),
        pytest.param(lambda m: m["case"].update(n=301), id="case"),
        pytest.param(lambda m: m.update(rule="another"), id="rule"),
        pytest.param(lambda m: m.update(env="000000000000"), id="machine-class"),
        pytest.param(lambda m: m.update(repro="other"), id="reproduction"),
    ],
)
def test_a_tampered_archive_is_refused(packed, change, mend_sum):
    path, _, other = packed
    before = files_of(other)
    tamper(path, change, mend_sum=mend_sum)
    with pytest.raises(BadInput):
        bring(other, path)
    assert files_of(other) == before


@pytest.mark.parametrize("name", ["../items", "a/b", "", "x" * 300 + "/", "measurements/../../up", "A b"])
def test_a_name_that_leads_elsewhere_is_refused(packed, name):
    path, _, other = packed
    before = files_of(other)
    body = json.loads(path.read_text())
    body["runs"][0]["repro"] = name
    for one in body["runs"][0]["measurements"]:
        one["repro"] = name
        one["id"] = identify(Measurement.model_validate(one))
    del body["sum"]
    body["sum"] = digest(body)
    path.write_text(json.dumps(body))
    with pytest.raises(BadInput):
        bring(other, path)
    assert files_of(other) == before


def test_rules_that_are_not_the_declared_ones_are_refused(packed):
    path, _, other = packed
    body = json.loads(path.read_text())
    body["runs"][0]["rules"]["toy/third"]["holds"] = [0.0, 1.0]
    del body["sum"]
    body["sum"] = digest(body)
    path.write_text(json.dumps(body))
    with pytest.raises(BadInput, match="not imported"):
        bring(other, path)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\xff", b"[]", b"{}", b'{"kb": "runs/1", "runs": 3, "sum": ""}', b'{"kb": "runs/9", "runs": [], "sum": ""}',
     b"null", b'"text"', b"[" * 100_000],
    ids=["empty", "binary", "list", "object", "wrong-type", "unknown-format", "null", "text", "deep"],
)  # fmt: skip
def test_what_is_no_archive_is_refused_with_a_reason(data, tmp_path, base):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(BadInput, match="not imported"):
        bring(base, path)


def test_a_dry_run_verifies_and_changes_nothing(packed):
    path, sha, other = packed
    before = files_of(other)
    [added] = archive.import_file(other, path, sha, who="jay", at="", dry_run=True)
    assert added.new == 3
    assert files_of(other) == before


def test_export_and_import_keep_every_record(packed, base):
    path, sha, other = packed
    bring(other, path, sha)
    mine, theirs = list(base.measurements("toy")), list(other.measurements("toy"))
    assert [m.model_copy(update={"imported": {}}) for m in theirs] == mine
    assert base.environments() == other.environments()
    assert base.declared_rules() == other.declared_rules()


def test_a_run_is_found_by_the_beginning_of_its_id(base, packed):
    [(row, _)] = run_groups(base)
    assert [found.id for found, _ in archive.find_runs(base, [row.id[:6]])] == [row.id]
    with pytest.raises(NothingMatches):
        list(archive.find_runs(base, ["zzz"]))
