"""Three versions into one: laws that hold for every page and every list of lines."""

from hypothesis import given
from hypothesis import strategies as st

from kb.markers import find_blocks
from kb.sync.merge import block_text, merge_lines, merge_page, text_outside, without_lines

NAMES = ("a", "b/c", "d")
words = st.text(alphabet="ab 显存\t|", min_size=0, max_size=8)
texts = st.lists(words, max_size=3).map("\n".join)


@st.composite
def pages(draw, names=NAMES):
    """A page with some of the blocks, text between them, and one kind of line ending."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    parts = [draw(texts)]
    for name in chosen:
        inner = draw(texts)
        parts += [
            "",
            f"<!-- kb:begin {name} v=1 run=r1 sum=0 -->",
            inner,
            f"<!-- kb:end {name} -->",
            "",
            draw(texts),
        ]
    return draw(st.sampled_from(["\n", "\r\n"])).join("\n".join(parts).split("\n")).encode()


lines = st.lists(st.sampled_from([b"1", b"2", b"3", b"4", b"5", "六".encode()]), max_size=6).map(
    lambda found: b"".join(line + b"\n" for line in found)
)


@given(pages(), pages(), pages())
def test_what_stands_outside_blocks_is_the_branchs(base, work, tip):
    """New blocks add only themselves and blank lines."""
    merged = merge_page(base, work, tip)
    fresh = [name for name in merged.planned if block_text(tip, name) is None]
    outside = text_outside(merged.data)
    for name in fresh:
        outside = outside.replace(f"<!-- kb:begin {name} -->\n".encode(), b"")
    assert outside.replace(b"\n", b"") == text_outside(tip).replace(b"\n", b"")
    assert fresh or text_outside(merged.data) == text_outside(tip)


@given(pages(), pages(), pages())
def test_a_block_is_ours_only_where_the_branch_left_it(base, work, tip):
    merged = merge_page(base, work, tip)
    for name in NAMES:
        old, mine, theirs, now = (block_text(page, name) for page in (base, work, tip, merged.data))
        if name in merged.planned:
            assert now == mine
            assert theirs == old
        else:
            assert now == theirs
        if name in merged.held:
            assert theirs not in (old, mine)


@given(pages(), pages(), pages())
def test_the_same_plan_again_changes_nothing(base, work, tip):
    """After a push the page of the branch is the base of nothing new."""
    once = merge_page(base, work, tip).data
    again = merge_page(base, work, once)
    assert again.data == once
    assert again.planned == []


@given(pages(), pages())
def test_an_unchanged_page_plans_nothing(base, tip):
    merged = merge_page(base, base, tip)
    assert (merged.data, merged.planned, merged.held) == (tip, [], {})


@given(pages(), pages(), pages())
def test_a_page_stays_sound(base, work, tip):
    """No marker is doubled or torn by a splice."""
    assert find_blocks(merge_page(base, work, tip).data)[1] == []


@given(lines, lines, lines)
def test_lines_of_both_sides_arrive_and_none_of_the_branch_goes(base, work, tip):
    merged = merge_lines(base, work, tip)
    assert merged.startswith(tip)
    new = set(work.splitlines()) - set(base.splitlines())
    assert set(merged.splitlines()) == set(tip.splitlines()) | new
    assert merge_lines(base, work, merged) == merged


@given(lines, lines)
def test_lines_removed_on_the_branch_stay_removed(base, tip):
    assert merge_lines(base, base, tip) == tip


def test_a_missing_final_newline_is_completed_first():
    assert merge_lines(b"1\n", b"1\n3\n", b"1\n2") == b"1\n2\n3\n"
    assert merge_lines(b"1\r\n", b"1\n3\n", b"1\r\n") == b"1\r\n3\r\n"
    assert without_lines(b"1\n2\r\n3", {b"2", b"3"}) == b"1\n"
