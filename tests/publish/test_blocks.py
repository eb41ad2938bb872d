"""Machine text and human text share a page: no byte of a person's is lost, none outside a block is touched."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from kb.markers import begin_marker, find_blocks, sum_of
from kb.publish.blocks import Output, new_page, run_name, update_page

ID = "a/evidence"
OLD = b"\n| claim | ours |\n| --- | --- |\n| one | 18 % |\n\ntext\n\nlast line\n\n"
NEW = OLD.replace(b"18 %", b"19 %")
PAGE = new_page([b"# Title\n\n* a  \n\n", (ID, OLD), b"\nSetext\n======\n"])


def update(page: bytes, new: bytes = NEW, base: bytes | None = OLD, **rest):
    return update_page(page, {ID: Output(new, base, **rest)})


def state(result) -> str:
    return next(state.state for state in result.states if state.id == ID)


def inner(page: bytes) -> bytes:
    return next(block.inner(page) for block in find_blocks(page)[0] if block.id == ID)


# One block, one case each


def test_a_clean_block_takes_the_new_text_and_its_sum():
    result = update(PAGE)
    assert (state(result), inner(result.data)) == ("clean", NEW)
    assert f"run={run_name(NEW)} sum={sum_of(NEW)}".encode() in result.data
    assert result.bases == {ID: NEW}


def test_an_unchanged_result_changes_no_byte():
    edited = PAGE.replace(b"last line\n", b"last line\nmine\n")
    assert update(PAGE, OLD).data == PAGE
    assert update(edited, OLD).data == edited
    assert state(update(edited, OLD)) == "edited"


def test_an_edit_elsewhere_in_the_block_is_merged_and_its_sum_is_of_the_merged_text():
    result = update(PAGE.replace(b"last line\n", b"last line\nmine\n"))
    merged = NEW.replace(b"last line\n", b"last line\nmine\n")
    assert (state(result), inner(result.data)) == ("edited", merged)
    assert f"run={run_name(NEW)} sum={sum_of(merged)}".encode() in result.data
    assert result.bases == {ID: NEW}


def test_a_clash_leaves_the_page_and_offers_the_new_text():
    page = PAGE.replace(b"18 %", b"I doubt 18 %")
    result = update(page)
    assert (result.data, state(result), result.needs_person) == (page, "held", True)
    assert (result.proposals, result.bases) == ({ID: NEW}, {})


def test_one_clash_leaves_every_block_of_its_page():
    other = "a/reading"
    page = new_page([(ID, OLD), (other, b"x\n")]).replace(b"18 %", b"I doubt 18 %")
    result = update_page(page, {ID: Output(NEW, OLD), other: Output(b"y\n", b"x\n")})
    assert (result.data, result.bases) == (page, {})


def test_a_person_who_writes_what_kb_would_write_settles_it():
    result = update(PAGE.replace(OLD, NEW))
    assert (state(result), result.bases, result.proposals) == ("clean", {ID: NEW}, {ID: None})


def test_removed_markers_mean_a_person_took_the_block_over():
    page = re.sub(rb"<!-- kb:.*?-->\n", b"", PAGE)
    result = update(page)
    assert (result.data, state(result)) == (page, "taken-over")
    assert not result.needs_person


def test_a_new_block_goes_after_the_block_before_it():
    page = new_page([b"top\n", (ID, OLD), b"between\n", ("a/reading", b"r\n"), b"end"])
    outputs = {ID: Output(OLD, OLD), "a/figure-x": Output(b"f\n", None), "a/reading": Output(b"r\n", b"r\n")}
    result = update_page(page, outputs)
    assert [block.id for block in find_blocks(result.data)[0]] == [ID, "a/figure-x", "a/reading"]
    assert result.data.replace(b"\n" + new_page([("a/figure-x", b"f\n")]), b"") == page


def test_a_page_without_any_block_of_ours_gets_none():
    page = b"# by hand\n"
    assert update_page(page, {ID: Output(NEW, None)}).data == page


def test_a_bare_pair_of_markers_asks_for_the_block_again():
    page = f"before\n<!-- kb:begin {ID} -->\n<!-- kb:end {ID} -->\nafter\n".encode()
    result = update(page, OLD, OLD)
    assert result.data == new_page([b"before\n", (ID, OLD), b"after\n"])


def test_without_the_record_of_the_last_text_an_edit_is_never_guessed_at():
    """sum covers merged text too, so only the run's digest proves that nobody edited the block."""
    assert inner(update(PAGE, base=None).data) == NEW
    merged = PAGE.replace(b"last line\n", b"mine\n")
    marker = begin_marker(ID, run_name(OLD), inner(merged))
    page = re.sub(rb"<!-- kb:begin.*?-->", lambda _: marker, merged)
    assert state(update(page, base=None)) == "held"


def test_a_held_block_waits_without_asking_anybody():
    result = update(PAGE, held=True)
    assert (result.data, state(result), result.needs_person) == (PAGE, "held", False)
    assert result.proposals == {ID: NEW}


def test_a_block_of_another_format_version_is_held():
    page = PAGE.replace(b" v=1 ", b" v=2 ")
    result = update(page)
    assert (result.data, state(result)) == (page, "held")


def test_a_block_nobody_writes_is_left_alone():
    page = new_page([(ID, OLD), ("x/y", b"z\n")])
    result = update(page)
    assert {s.id: s.state for s in result.states} == {ID: "clean", "x/y": "foreign"}
    assert new_page([("x/y", b"z\n")]) in result.data


@pytest.mark.parametrize("end", [b"\r\n", b""], ids=["final CRLF", "no final newline"])
def test_crlf_and_the_end_of_the_file_are_kept(end):
    page = PAGE.replace(b"\n", b"\r\n").removesuffix(b"\r\n") + end
    assert update(page, OLD).data == page
    result = update(page)
    assert result.data.replace(b"\r\n", b"").count(b"\n") == 0
    assert result.data.endswith(b"======" + end)
    assert inner(result.data) == NEW


def test_a_block_may_end_the_file_without_a_newline():
    page = new_page([b"x\n", (ID, OLD)]).rstrip(b"\n")
    result = update_page(page, {ID: Output(NEW, OLD), "a/reading": Output(b"r\n", None)})
    assert [b.inner(result.data) for b in find_blocks(result.data)[0]] == [NEW, b"r\n"]
    assert not result.data.endswith(b"\n")


def test_text_that_would_swallow_its_own_end_marker_is_not_written():
    """A person's open fence and ours may only close together: the result is read back before it is written."""
    base, ours = b"\na\n\n\nb\n\n\nc\n", b"\n```\na\n\n\nb\n\n\nc\n```\n"
    theirs = b"\na\n\n\nB\n```\n\n\nc\n"
    page = new_page([(ID, ours)])
    result = update_page(page, {ID: Output(theirs, base)})
    assert (result.data, state(result)) == (page, "held")


# The law, over random pages, edits and results

OUTSIDE = st.sampled_from([
    "text  ", "* bullet", "- [ ] task", "Setext", "======", "", "", "> quote", "中文，全角。", "| a | b |", "\ttab",
    "`<!-- kb:begin q/r -->`", "    <!-- kb:end q/r -->", "<div>", "</div>", "1. one", "<<<<<<< not ours", "\u2028x",
    "```\n<!-- kb:begin q/r v=1 run=a sum=b -->\n```", "~~~\n<!-- kb:end a/evidence -->\n~~~", "<!-- a note -->",
])  # fmt: skip
RESULT = st.lists(
    st.sampled_from(
        ["", "| one | 18 % |", "| two | 1.7× |", "- finding", "### 结论", "a", "b", "c", "```\ncode\n```"]
    ),
    max_size=8,
)


@dataclass(frozen=True)
class Edit:
    """What a person does to one line of the block."""

    at: int
    kind: str


EDITS = st.lists(
    st.builds(Edit, st.integers(0, 12), st.sampled_from(["insert", "append", "replace", "delete"])),
    max_size=4,
)
CASES = st.fixed_dictionaries({
    "before": st.lists(OUTSIDE, max_size=6),
    "after": st.lists(OUTSIDE, max_size=6),
    "old": RESULT,
    "new": RESULT,
    "edits": EDITS,
    "crlf": st.booleans(),
    "final": st.booleans(),
})  # fmt: skip


def text(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in ["", *lines, ""]).encode()


def apply(edits: list[Edit], old: bytes) -> tuple[bytes, list[bytes]]:
    """The block after a person's edits, and the lines that person wrote."""
    lines = old.decode().split("\n")[:-1]
    mine: list[str] = []
    for number, edit in enumerate(edits):
        at = edit.at % (len(lines) + 1)
        if edit.kind == "delete":
            del lines[at : at + 1]
            continue
        mine.append(f"human {number} 人写的")
        if edit.kind == "append" and at < len(lines):
            lines[at] += " " + mine[-1]
        else:
            lines[at : at + (edit.kind == "replace")] = [mine[-1]]
    return "".join(line + "\n" for line in lines).encode(), [line.encode() for line in mine]


def outside(page: bytes) -> list[bytes]:
    """Every byte that is not in a block."""
    pieces, done = [], 0
    for block in find_blocks(page)[0]:
        pieces.append(page[done : block.start])
        done = block.end if page[block.inner_end : block.end].endswith(b"\n") else len(page)
    return [*pieces, page[done:]]


def check_law(case) -> None:
    old, new = text(case["old"]), text(case["new"])
    ours, mine = apply(case["edits"], old)
    plain = [("".join(line + "\n" for line in case[side])).encode() for side in ("before", "after")]
    page = new_page([plain[0], (ID, old), plain[1]]).replace(old + b"<!-- kb:end", ours + b"<!-- kb:end", 1)
    if case["crlf"]:
        page = page.replace(b"\n", b"\r\n")
    if not case["final"]:
        page = page.rstrip(b"\r\n")
    blocks, problems = find_blocks(page)
    assume(
        not problems and [block.id for block in blocks] == [ID]
    )  # an open <div> hides a marker, as in any reader
    survived = [
        line for line in mine if line in page
    ]  # a later edit of the same person may replace an earlier one

    result = update(page, new, old)

    assert outside(result.data) == outside(page)
    assert all(line in result.data for line in survived)
    assert result.data.count(b"<<<<<<<") == page.count(b"<<<<<<<")
    assert b">>>>>>>" not in result.data
    if result.needs_person:
        assert (result.data, result.proposals, result.bases) == (page, {ID: new}, {})
    elif not case["edits"]:
        assert inner(result.data) == new
    again = update(result.data, new, result.bases.get(ID, old))
    assert (again.data, again.needs_person) == (result.data, result.needs_person)
    if case["crlf"]:
        assert b"\n" not in result.data.replace(b"\r\n", b"")


LAW = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@seed(20260610)
@settings(max_examples=200, database=None, **LAW)
@given(CASES)
def test_no_edit_is_lost_and_no_other_byte_is_touched(case):
    check_law(case)


@pytest.mark.soak
@seed(20260610)
@settings(max_examples=20_000, database=None, **LAW)
@given(CASES)
def test_no_edit_is_lost_and_no_other_byte_is_touched_20_000_times(case):
    check_law(case)
