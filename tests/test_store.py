"""The store: what was written is read back, what cannot be read is skipped and reported, nothing leaves the base."""

import pytest

from kb.errors import BadConfig, BadInput, WrongUse
from kb.model import Figure, Series, Stated, Text, Verdict
from kb.store import Base, find_root
from tests.records import assessment, claim, environment, item, measurement


def test_records_come_back_as_they_went_in(base):
    items = [item(version="1"), item(version="2", title="第二版 “引号” \\ \u2028")]
    base.append_items(items)
    base.append_assessments([assessment()])
    base.append_measurements("toy", environment(), [measurement()])
    fresh = Base(base.root)
    assert list(fresh.items()) == items
    assert list(fresh.assessments()) == [assessment()]
    assert list(fresh.measurements("toy")) == [measurement()]
    assert list(fresh.environments().values()) == [environment()]
    assert fresh.problems == []


def test_the_last_line_of_a_version_counts(base):
    base.append_items(
        [item(version="1", title="a"), item(version="2", title="b"), item(version="1", title="c")]
    )
    found = base.latest_items()["arxiv:2606.06302"]
    assert {version: one.title for version, one in found.items()} == {"1": "c", "2": "b"}


def test_acts_are_numbered_and_a_line_doubled_by_a_merge_counts_once(base):
    for stage in ("review", "published"):
        base.append_log("move", "jay/x", who="a", at="2026-07-02T03:05:00Z", to=stage)
    path = base.root / "log/2026-07.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert [(entry.seq, entry.to) for entry in base.log()] == [(1, "review"), (2, "published")]


def test_verdicts_do_not_depend_on_the_order_they_are_given_in(base):
    verdicts = [Verdict(claim=f"toy/{n}", verdict="untested", source=Stated(), reason="none") for n in "ba"]
    assert base.write_verdicts("toy", verdicts) is True
    assert base.write_verdicts("toy", verdicts[::-1]) is False
    assert list(base.verdicts()) == ["toy/a", "toy/b"]


def test_a_figure_comes_back(base):
    words = Text(zh="图", en="figure")
    figure = Figure(
        name="f",
        repro="toy",
        title=words,
        x=words,
        y=words,
        alt=words,
        series=(Series(label=words, points=()),),
    )
    base.write_figure(figure)
    assert base.figures() == [figure]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("[[claim]]\n", "id", id="without-an-id"),
        pytest.param("x = [", "TOML", id="no-toml"),
        pytest.param('[[claim]]\nid = "other/a"\n', "item", id="lacks-fields"),
    ],
)
def test_a_claims_file_that_cannot_be_used_is_named(base, text, complaint):
    (base.root / "claims").mkdir()
    (base.root / "claims/toy.toml").write_text(text)
    with pytest.raises(BadConfig, match=r"toy\.toml") as caught:
        base.claims()
    assert complaint in f"{caught.value.cause} {caught.value.remedy}"


def test_an_id_may_not_occur_twice(base):
    (base.root / "claims").mkdir()
    one = '[[claim]]\nid = "toy/a"\nitem = "arxiv:1"\nprovenance = "primary"\nstatement = {en = "a"}\n'
    (base.root / "claims/toy.toml").write_text(one * 2)
    with pytest.raises(BadConfig, match="toy/a"):
        base.claims()


@pytest.mark.parametrize("name", ["../out.md", "sub/../../out.md", "/tmp/kb-test-out.md"])
def test_nothing_is_written_outside_the_base(base, name):
    with pytest.raises(BadInput, match="not written"):
        base.write(base.root / name, "x")


def test_a_link_that_leads_out_is_not_followed(base, tmp_path):
    (tmp_path / "victim.md").write_text("mine")
    (base.root / "page.md").symlink_to(tmp_path / "victim.md")
    with pytest.raises(BadInput):
        base.write(base.root / "page.md", "x")
    assert (tmp_path / "victim.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param('zonne = "UTC"', "did you mean zone?", id="a-misspelt-key"),
        pytest.param('zone = "Mars/Base"', "IANA", id="an-unknown-zone"),
        pytest.param('language = "fr"', "language", id="another-language"),
        pytest.param('remote = "https://example.org/x.git"', "never an address", id="a-remote-address"),
        pytest.param("[triage]\nkeep = nan", "keep", id="a-threshold-that-is-no-number"),
        pytest.param("\udcff", "utf-8", id="not-utf-8"),
    ],
)
def test_settings_that_cannot_be_used_are_explained(base, kb, text, hint):
    (base.root / "kb.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    ended = kb("status")
    assert ended.code == 2
    assert "kb.toml" in ended.err
    assert hint in ended.err


def test_the_base_is_found_from_the_nearest_settings_upwards(base, monkeypatch, tmp_path):
    monkeypatch.delenv("KB_ROOT")
    assert find_root(base.root / "topics") == base.root.resolve()
    assert find_root(tmp_path, explicit=str(base.root)) == base.root.resolve()
    monkeypatch.setenv("KB_ROOT", str(base.root))
    assert find_root(tmp_path) == base.root.resolve()


def test_the_shipped_base_is_found_beside_the_clone(tmp_path, monkeypatch):
    monkeypatch.delenv("KB_ROOT", raising=False)
    shipped = tmp_path / "shared/research-kb"
    shipped.mkdir(parents=True)
    (shipped / "kb.toml").touch()
    assert find_root(tmp_path) == shipped.resolve()


def test_without_a_base_the_error_says_how_to_make_one(tmp_path):
    with pytest.raises(WrongUse) as caught:
        find_root(tmp_path, explicit=str(tmp_path))
    assert caught.value.next_command == f"kb init {tmp_path}"


def test_every_line_cut_at_every_byte_leaves_a_base_that_opens(base):
    """A crash at any byte: the other records are there, the torn one is reported, and writing goes on."""
    base.append_items([item(version="1"), item(version="2")])
    path = base.root / "items/2026-07.jsonl"
    whole = path.read_bytes()
    second = whole.index(b"\n") + 1
    for cut in range(second, len(whole)):
        path.write_bytes(whole[:cut])
        opened = Base(base.root)
        found = [one.version for one in opened.items()]
        assert found == ["1"] + ["2"] * (cut == len(whole) - 1)
        assert len(opened.problems) == (0 if cut in {second, len(whole) - 1} else 1)
    path.write_bytes(whole[: second + 40])
    base.append_items([item(version="2")])
    assert path.read_bytes() == whole


def test_a_claim_refuses_a_range_that_is_reversed():
    with pytest.raises(ValueError, match="exceeds"):
        claim(low=3.0, high=2.0)
