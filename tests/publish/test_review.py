"""A person settles what a machine may not: every way out of a clash, each kept in the log."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys

import pytest

BLOCK = "inference/kvcache/evidence"
MINE = "18.5 %（我不信）"
NEW = "19 % (15.7–21.3 %)"


@pytest.fixture
def clash(shelf, capsys):
    """A block with a person's edit and a new result on the same line."""
    shelf.kb("publish")
    shelf.edit("18.5 % (15.7–21.3 %)", MINE)
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 3
    capsys.readouterr()
    return shelf


def acts(shelf) -> list[tuple[str, str, str]]:
    return [(entry.act, entry.target, entry.reason) for entry in shelf.base.log()]


def proposal(shelf):
    return shelf.base.proposal_path(BLOCK)


def test_what_waits_is_listed_with_both_sides(clash, capsys):
    assert clash.kb("review", "--json") == 3
    [row] = json.loads(capsys.readouterr().out)
    assert (row["id"], row["page"], row["line"]) == (BLOCK, "published/inference/kvcache/index.md", 11)
    assert (
        f"+| [`eai/evict-14400`](../../systems/eai/index.md#evict-14400) 逐出九成 token 几乎不归还页 | 约 0–5 % | [{MINE}"
        in row["your_edit"]
    )
    assert NEW in row["new_result"]


def test_accepting_takes_the_new_text(clash):
    assert clash.kb("review", BLOCK, "--accept", "--reason", "more samples") == 0
    assert NEW in clash.page.read_text()
    assert MINE not in clash.page.read_text()
    assert not proposal(clash).exists()
    assert acts(clash) == [("accept", BLOCK, "more samples")]
    before = clash.page.read_bytes()
    assert clash.kb("publish") == 0
    assert clash.page.read_bytes() == before


def test_rejecting_keeps_mine_and_later_results_merge_into_it(clash):
    assert clash.kb("review", "evidence", "--reject", "--reason", "wrong machine") == 0
    before = clash.page.read_bytes()
    assert MINE.encode() in before
    assert clash.kb("publish") == 0
    assert clash.page.read_bytes() == before
    clash.claim("eai/third", statement={"zh": "第三条", "en": "third"})
    assert clash.kb("publish") == 0
    assert MINE in clash.page.read_text()
    assert "`third`" in clash.page.read_text()


@pytest.mark.parametrize(
    ("key", "code", "act"),
    [("a", 0, "accept"), ("h", 0, "hold"), ("q", 3, "")],
)
def test_on_a_terminal_one_key_decides(clash, key, code, act):
    """A real terminal, as far as the program can tell: its answer to a key without Enter."""
    ours, theirs = os.openpty()
    program = [sys.executable, "-m", "kb", "-C", str(clash.root), "review"]
    with subprocess.Popen(
        program, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the other side hangs up when it ends
            while True:
                if select.select([ours], [], [], 0.2)[0]:
                    seen += os.read(ours, 4096)
                elif (
                    b"[q]uit" in seen
                ):  # a key pressed before the program listens is lost, as on any terminal
                    os.write(ours, key.encode())
        assert process.wait(timeout=60) == code
    os.close(ours)
    assert MINE in seen.decode("utf-8", "replace")
    assert [done for done, _, _ in acts(clash)] == ([act] if act else [])
    assert (MINE in clash.page.read_text()) == (key != "a")


def test_a_third_text_can_be_written_in_an_editor(clash, monkeypatch, tmp_path):
    editor = tmp_path / "edit.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/（我不信）/ 到 19 %/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert clash.kb("review", BLOCK, "--edit", "--reason", "both") == 0
    text = clash.page.read_text()
    assert "18.5 % 到 19 %" in text
    assert "everything below this line" not in text
    assert clash.kb("publish") == 0
    assert clash.page.read_text() == text


def test_an_edited_text_that_breaks_the_markers_is_refused(clash, monkeypatch, tmp_path, capsys):
    editor = tmp_path / "edit.sh"
    editor.write_text('#!/bin/sh\nsed -i "1i \\`\\`\\`" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    before = clash.bytes()
    assert clash.kb("review", BLOCK, "--edit", "--reason", "x") == 2
    assert "markers cannot be found again" in capsys.readouterr().err
    assert clash.bytes() == before


def test_a_hold_keeps_the_page_and_asks_nobody_until_it_is_released(clash):
    assert clash.kb("review", BLOCK, "--hold", "--reason", "under discussion") == 0
    before = clash.page.read_bytes()
    clash.verdict(value=0.2)
    assert clash.kb("publish") == 0
    assert clash.page.read_bytes() == before
    assert "20 % (15.7–21.3 %)" in proposal(clash).read_text()
    assert clash.kb("review") == 0, "a held block asks nobody"
    assert clash.kb("release", BLOCK, "--reason", "settled") == 0
    assert clash.kb("publish") == 3
    assert [act for act, _, _ in acts(clash)] == ["hold", "release"]


def test_holding_twice_writes_one_line(shelf):
    shelf.kb("publish")
    for _ in range(2):
        assert shelf.kb("hold", "inference/kvcache", "--reason", "rewriting it") == 0
    assert acts(shelf) == [("hold", "inference/kvcache", "rewriting it")]
    before = shelf.page.read_bytes()
    shelf.verdict(value=0.2)
    assert shelf.kb("publish") == 0
    assert shelf.page.read_bytes() == before, "a held page holds all its blocks"


def test_release_brings_back_a_removed_page_and_a_block_taken_over(shelf):
    shelf.kb("publish")
    first = shelf.page.read_bytes()
    shelf.page.unlink()
    shelf.kb("publish")
    assert not shelf.page.exists()
    assert shelf.kb("release", "inference/kvcache", "--reason", "I miss it") == 0
    shelf.kb("publish")
    assert shelf.page.read_bytes() == first
    text = first.decode()
    start = text.index("<!-- kb:begin inference/kvcache/figure-freed")
    end = text.index("<!-- kb:end inference/kvcache/figure-freed -->\n")
    shelf.page.write_text(text[:start] + text[end:].partition("\n")[2])
    shelf.kb("publish")
    assert "figure-freed" not in shelf.page.read_text()
    assert shelf.kb("release", "inference/kvcache/figure-freed", "--reason", "back") == 0
    shelf.kb("publish")
    assert "kb:begin inference/kvcache/figure-freed" in shelf.page.read_text()


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("review", "nosuch", "--accept"), 2, "nothing to review"),
        (("review", "--accept"), 2, "which block?"),
        (("hold", "inference/kvcach", "--reason", "x"), 2, "did you mean inference/kvcache?"),
        (("release", "nosuch", "--reason", "x"), 2, "no such block or page"),
    ],
)
def test_what_does_not_exist_is_refused(clash, capsys, args, code, says):
    before = clash.bytes()
    assert clash.kb(*args) == code
    assert says in capsys.readouterr().err
    assert clash.bytes() == before


def test_nothing_to_review_is_an_empty_list(shelf, capsys):
    shelf.kb("publish")
    capsys.readouterr()
    assert shelf.kb("review", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
