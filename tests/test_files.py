"""A crash at any byte leaves the old or the new bytes, or lines whose only flaw is a torn tail that is mended."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import BadInput
from kb.files import append_lines, decode_text, digest, read_bytes, read_lines, write_atomic

VALUES = st.lists(
    st.dictionaries(
        st.text(max_size=8), st.one_of(st.none(), st.integers(), st.text(max_size=12)), max_size=4
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def lines_of(path, bad=None):
    return [value for _, value in read_lines(path, bad)]


@given(before=VALUES, added=VALUES)
def test_what_was_appended_is_read_back(folder, before, added):
    path = folder / "a.jsonl"
    path.unlink(missing_ok=True)
    for values in (before, added):
        append_lines(path, values, scratch=folder / "tmp")
    assert lines_of(path) == before + added


@pytest.mark.parametrize("where", range(90))
def test_an_append_that_was_cut_anywhere_is_completed_by_running_it_again(tmp_path, where):
    """The file then equals one that was never cut, whichever byte the crash fell on; the torn bytes are kept aside.

    A run knows what the file holds: it appends what is missing, as `kb ingest` does.
    """
    path, scratch = tmp_path / "a.jsonl", tmp_path / ".kb/tmp"
    old, new = [{"n": 1, "text": "已有"}], [{"n": 2, "text": "page"}, {"n": 3, "text": "块"}]
    append_lines(path, old, scratch=scratch)
    start = path.stat().st_size
    append_lines(path, new, scratch=scratch)
    whole = path.read_bytes()
    cut = min(start + where, len(whole))
    path.write_bytes(whole[:cut])
    survived = lines_of(path)
    assert survived[:1] == old
    append_lines(path, [value for value in new if value not in survived], scratch=scratch)
    if survived != old + new:  # where only the last newline was missing there is nothing left to append
        assert path.read_bytes() == whole


def test_a_torn_tail_is_kept_aside_and_no_line_is_lost(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2,"te')
    append_lines(path, [{"n": 3}], scratch=tmp_path / ".kb/tmp")
    assert lines_of(path) == [{"n": 1}, {"n": 3}]
    assert [p.read_bytes() for p in (tmp_path / ".kb/torn").iterdir()] == [b'{"n":2,"te']


def test_a_person_who_forgot_the_last_newline_loses_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}')
    append_lines(path, [{"n": 3}], scratch=tmp_path / ".kb/tmp")
    assert lines_of(path) == [{"n": 1}, {"n": 2}, {"n": 3}]


@given(data=st.binary(max_size=300))
def test_any_bytes_can_be_read_as_lines(folder, data):
    """Nothing from outside raises: what is no JSON object is reported with its line number."""
    path = folder / "any.jsonl"
    path.write_bytes(data)
    bad = []
    good = list(read_lines(path, bad))
    filled = sum(1 for line in data.split(b"\n") if line.strip())
    assert len(good) + len(bad) == filled
    assert all(isinstance(value, dict) for _, value in good)


def test_nested_beyond_reason_is_a_bad_line_and_no_crash(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text("[" * 200_000 + "\n" + '{"n": 1}\n')
    bad = []
    assert lines_of(path, bad) == [{"n": 1}]
    assert len(bad) == 1


def test_a_write_that_dies_before_the_rename_leaves_the_old_bytes(tmp_path, monkeypatch):
    path = tmp_path / "page.md"
    path.write_bytes(b"old")

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", die)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, b"new", scratch=tmp_path / ".kb/tmp")
    assert path.read_bytes() == b"old"
    assert {p.name for p in tmp_path.iterdir()} == {".kb", "page.md"}


def test_unchanged_bytes_are_not_written_again(tmp_path):
    path = tmp_path / "page.md"
    assert write_atomic(path, b"same", scratch=tmp_path / ".kb/tmp") is True
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert write_atomic(path, b"same", scratch=tmp_path / ".kb/tmp") is False
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_a_write_keeps_the_mode_and_goes_through_a_link(tmp_path):
    real = tmp_path / "real.md"
    real.write_bytes(b"old")
    real.chmod(0o640)
    (tmp_path / "link.md").symlink_to(real)
    write_atomic(tmp_path / "link.md", b"new", scratch=tmp_path / ".kb/tmp")
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.md").is_symlink()


@given(value=st.dictionaries(st.text(), st.integers()))
def test_a_digest_does_not_depend_on_the_order_of_keys(value):
    assert digest(value) == digest(dict(reversed(value.items())))
    assert digest(value) == digest(json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\x89PNG\0", "binary", id="binary"),
        pytest.param("中文".encode("gb18030"), "UTF-8", id="another-encoding"),
        pytest.param(b"\xff\xfea\0b\0", "binary", id="utf-16"),
    ],
)
def test_bytes_that_are_no_utf8_text_are_refused_with_a_reason(data, why):
    with pytest.raises(BadInput) as caught:
        decode_text(data, "draft.md")
    assert why in caught.value.cause


def test_a_file_larger_than_the_limit_is_not_read(tmp_path):
    path = tmp_path / "large.md"
    with path.open("wb") as out:
        out.truncate(50 << 20)
    with pytest.raises(BadInput, match="not read") as caught:
        read_bytes(path, limit=8 << 20)
    assert "52,428,800" in caught.value.cause
