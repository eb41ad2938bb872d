"""``kb publish`` as a reviewer meets it: pages appear once, then only blocks change, and edits stay."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest

TABLE_ROW = "| [`eai/evict-14400`]"
CASES = "../shared/cases/kb.tsv"


def row(shelf) -> str:
    """The evidence row of the judged claim."""
    return next(line for line in shelf.page.read_text().splitlines() if line.startswith(TABLE_ROW))


def published(shelf):
    """The base after a first publish; then the source of the block changes in one number."""
    assert shelf.kb("publish") == 0
    return shelf


# What a page says


def test_a_page_is_made_with_title_introduction_and_the_evidence(shelf, capsys):
    assert shelf.kb("publish") == 0
    text = shelf.page.read_text()
    assert text.startswith("# KV cache 压缩工程陷阱\n\n*KV cache*\n\n驱逐省下的是 token，不一定是显存。\n")
    assert row(shelf).split(" | ")[1:] == [
        "约 0–5 %",
        "[18.5 % (15.7–21.3 %), n = 30](../../../measurements/paged-eviction/)",
        "**部分成立**",
        "推导",
        "2026-07-02 |",
    ]
    assert "- 复跑：`kb repro paged-eviction` · `kb verdict eai/evict-14400 --explain` · [样本]" in text
    assert "有的保留方式能归还页" in text
    assert "没有说明什么" in text
    assert "../../../figures/paged-eviction/freed.svg" in text
    assert (shelf.page.parent / "../../../figures/paged-eviction/freed.svg").resolve().is_file()
    assert (shelf.page.parent / "../../systems/eai/index.md").resolve().is_file()
    assert '<a id="evict-14400"></a>' in (shelf.root / "published/systems/eai/index.md").read_text()
    assert "add     published/inference/kvcache/index.md" in capsys.readouterr().out


def test_a_claim_nobody_judged_says_so_and_is_never_zero(shelf):
    shelf.kb("publish")
    line = next(x for x in shelf.page.read_text().splitlines() if "[`compaction`]" in x)
    assert line.startswith("- **[eai](../../systems/eai/index.md)** (1) ")
    system = (shelf.root / "published/systems/eai/index.md").read_text()
    assert "### `eai/compaction` · 未验证" in system
    assert "怎样验证：CPU" in system
    assert "| `eai/compaction`" not in shelf.page.read_text()


def test_claims_from_memory_stay_out_and_are_counted(shelf):
    shelf.claim("eai/heard", provenance="memory", statement={"zh": "听说的", "en": "hearsay"})
    shelf.kb("publish")
    text = shelf.page.read_text()
    assert "eai/heard" not in text
    assert "听说的" not in text
    assert "另有 1 条只凭记忆" in text


def test_relay_errors_and_superseded_sources_are_named(shelf):
    relay = {"draft": "jay/2026-06-10-x#4", "said": "10x faster", "match": "bound-dropped"}
    shelf.claim(version="1", relayed=[relay])
    shelf.item(version="2")
    shelf.kb("publish")
    text = shelf.page.read_text()
    assert "丢了限定词" in text
    assert "10x faster" in text
    assert "读的是 v1，现在是 v2" in text


def test_accepted_drafts_fill_the_reading_list_by_decision(shelf):
    entries = [
        {"n": "1", "item": "arxiv:2606.06302", "version": 1, "decision": "keep", "stars": 4, "topics": ["inference/kvcache"]},
        {"n": "2", "item": "url:absent.example/x", "decision": "keep", "topics": ["inference/kvcache"]},
    ]  # fmt: skip
    head = f'---\nkb: draft/1\ncurator: "jay"\ndate: "2026-06-10"\nentries: {json.dumps(entries)}\n---\n'
    shelf.base.write(shelf.root / "published/drafts/2026-06-10-x.md", head + "## 1 · Tangram\n")
    shelf.kb("publish")
    text = shelf.page.read_text()
    assert (
        "**保留**\n\n- [Tangram](<https://arxiv.org/abs/2606.06302>) `arxiv:2606.06302` · ★★★★ · v1 · 2026-06-10"
        in text
    )
    assert "absent.example" not in text


# KB-EDITS


def test_only_lines_inside_the_block_change(shelf):
    """KB-EDITS-01"""
    published(shelf)
    shelf.edit("## 证据\n", "证据与判定\n==========\n\n* 我的要点  \n* 另一点\n\n")
    before = shelf.page.read_bytes()
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 0
    after = shelf.page.read_bytes()
    assert [line for line in after.splitlines(True) if line not in before.splitlines(True)] == [
        line
        for line in after.splitlines(True)
        if b"19 %" in line or b"kb:begin inference/kvcache/evidence" in line
    ]
    assert len(after.splitlines()) == len(before.splitlines())


def test_a_line_added_inside_and_one_outside_survive_a_new_result(shelf, capsys):
    """KB-EDITS-02"""
    published(shelf)
    shelf.edit("### 没有说明什么\n\n", "### 没有说明什么\n\n- 评审：也没有说明抢占。\n")
    shelf.edit("## 证据\n", "评审写在块外。\n\n## 证据\n")
    shelf.verdict(value=0.19)
    capsys.readouterr()
    assert shelf.kb("publish", "--json") == 0
    text = shelf.page.read_text()
    assert "- 评审：也没有说明抢占。\n" in text
    assert "评审写在块外。\n" in text
    assert "19 % (15.7–21.3 %)" in row(shelf)
    states = {block["id"]: block["state"] for block in json.loads(capsys.readouterr().out)["blocks"]}
    assert states["inference/kvcache/evidence"] == "edited"
    assert states["inference/kvcache/reading"] == "clean"


def test_a_clash_leaves_the_file_byte_identical_and_writes_the_rest(shelf, capsys):
    published(shelf)
    shelf.topic("rag", title={"zh": "检索", "en": "RAG"})
    shelf.edit("18.5 % (15.7–21.3 %)", "18.5 %（我不信）")
    before = shelf.page.read_bytes()
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 3
    assert shelf.page.read_bytes() == before
    assert "19 % (15.7–21.3 %)" in shelf.base.proposal_path("inference/kvcache/evidence").read_text()
    assert shelf.base.page_path("rag").exists()
    err = capsys.readouterr().err
    assert "published/inference/kvcache/index.md:11 inference/kvcache/evidence" in err
    assert "try: kb review" in err
    assert shelf.kb("publish") == 3, "it stays held until a person decides"
    assert shelf.page.read_bytes() == before


def test_a_settled_clash_takes_its_proposal_away(shelf):
    published(shelf)
    shelf.edit("18.5 % (15.7–21.3 %)", "18.5 %（我不信）")
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 3
    shelf.edit("18.5 %（我不信）", "18.5 % (15.7–21.3 %)")
    assert shelf.kb("publish") == 0
    assert not shelf.base.proposal_path("inference/kvcache/evidence").exists()
    assert "19 % (15.7–21.3 %)" in row(shelf)


@pytest.mark.parametrize("harm", ["end removed", "same id in another page"])
def test_broken_markers_stop_the_run_before_anything_is_written(shelf, capsys, harm):
    """KB-EDITS-05"""
    published(shelf)
    if harm == "end removed":
        shelf.edit("<!-- kb:end inference/kvcache/evidence -->\n", "")
        named = ["published/inference/kvcache/index.md:11: kb:begin inference/kvcache/evidence has no kb:end"]
    else:
        shutil.copytree(shelf.page.parent, shelf.root / "published/copy")
        named = ["published/copy/index.md:11: block", "published/inference/kvcache/index.md:11: block"]
    shelf.topic("rag")
    shelf.verdict(value=0.19)
    before = shelf.snapshot()
    assert shelf.kb("publish") == 1
    err = capsys.readouterr().err
    assert all(place in err for place in named)
    assert shelf.bytes() == {name: data for name, (data, _) in before.items() if not name.startswith(".kb/")}


def test_markers_in_a_fenced_example_are_ignored(shelf):
    published(shelf)
    example = "```\n<!-- kb:begin inference/kvcache/evidence v=1 run=a sum=b -->\n```\n"
    shelf.edit("## 证据\n", example + "## 证据\n")
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 0
    assert example in shelf.page.read_text()


@pytest.mark.parametrize("changed", [False, True], ids=["unchanged result", "changed result"])
def test_a_page_saved_with_crlf_and_without_final_newline_keeps_both(shelf, changed):
    """KB-EDITS-07"""
    published(shelf)
    saved = shelf.page.read_bytes().replace(b"\n", b"\r\n").rstrip(b"\r\n")
    shelf.page.write_bytes(saved)
    if changed:
        shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 0
    after = shelf.page.read_bytes()
    assert (after != saved) == changed
    assert b"\n" not in after.replace(b"\r\n", b"")
    assert not after.endswith(b"\n")


def test_another_run_time_host_or_key_order_changes_nothing(shelf):
    """KB-EDITS-10"""
    published(shelf)
    before = shelf.bytes()
    since = shelf.base.verdicts()["eai/evict-14400"].at
    shelf.verdict(run="r2", at="2026-12-24T23:59:00Z", since=since, env="another-env", digests={"code": "x"})
    path = shelf.root / "verdicts/eai.json"
    value = json.loads(path.read_text())
    value["verdicts"] = [dict(reversed(list(v.items()))) for v in value["verdicts"]]
    path.write_text(json.dumps(value))
    assert shelf.kb("publish", "--check") == 0
    assert shelf.kb("publish") == 0
    after = shelf.bytes()
    assert {n: d for n, d in after.items() if n != "verdicts/eai.json"} == {
        n: d for n, d in before.items() if n != "verdicts/eai.json"
    }


def test_a_moved_heading_and_a_moved_block_still_get_new_text(shelf):
    published(shelf)
    text = shelf.page.read_text()
    start, end = text.index("<!-- kb:begin inference/kvcache/figure-freed"), text.index("## 阅读清单")
    shelf.page.write_text(text[:start] + text[end:] + "\n# 新标题\n\n" + text[start:end])
    shelf.verdict(value=0.19)
    shelf.figure(title={"zh": "新的图题", "en": "a new title"})
    assert shelf.kb("publish") == 0
    text = shelf.page.read_text()
    assert text.index("# 新标题") < text.index("新的图题")
    assert "19 % (15.7–21.3 %)" in text


def test_a_page_or_block_that_a_person_removed_is_not_written_again(shelf, capsys):
    published(shelf)
    text = shelf.page.read_text()
    start = text.index("<!-- kb:begin inference/kvcache/figure-freed")
    shelf.page.write_text(text[:start] + text[text.index("## 阅读清单") :])
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 0
    assert "figure-freed" not in shelf.page.read_text()
    shelf.page.unlink()
    assert shelf.kb("publish") == 0
    assert not shelf.page.exists()
    assert "a person removed this page" in capsys.readouterr().err


def test_a_figure_that_appears_later_gets_a_place_on_the_page(shelf):
    published(shelf)
    before = shelf.page.read_text()
    shelf.figure("cost")
    assert shelf.kb("publish") == 0
    after = shelf.page.read_text()
    start = after.index("\n<!-- kb:begin inference/kvcache/figure-cost")
    end = after.index("<!-- kb:end inference/kvcache/figure-cost -->\n")
    assert after[:start] + after[end + len("<!-- kb:end inference/kvcache/figure-cost -->\n") :] == before


# Looking without writing


def test_a_dry_run_lists_each_file_with_hashes_and_touches_nothing(shelf, capsys):
    """KB-PUBLISH-08"""
    published(shelf)
    shelf.verdict(value=0.19)
    shelf.topic("rag")
    before = shelf.snapshot()
    capsys.readouterr()
    assert shelf.kb("publish", "--dry-run", "--json") == 0
    changes = {c["path"]: c for c in json.loads(capsys.readouterr().out)["changes"]}
    assert shelf.snapshot() == before
    page = changes["published/inference/kvcache/index.md"]
    assert page["action"] == "change"
    assert page["before"] == hashlib.sha256(shelf.page.read_bytes()).hexdigest()
    assert changes["published/rag/index.md"]["action"] == "add"
    assert changes["published/rag/index.md"]["before"] is None
    assert shelf.kb("publish") == 0
    for path, change in changes.items():
        assert hashlib.sha256((shelf.root / path).read_bytes()).hexdigest() == change["after"]


def test_check_ends_with_1_while_a_run_would_change_something(shelf):
    before = shelf.bytes()
    assert shelf.kb("publish", "--check") == 1
    assert shelf.bytes() == before
    published(shelf)
    assert shelf.kb("publish", "--check") == 0


def test_diff_shows_the_bytes_and_writes_none(shelf, capsys):
    published(shelf)
    shelf.verdict(value=0.19)
    before = shelf.bytes()
    capsys.readouterr()
    assert shelf.kb("publish", "--diff") == 0
    out = capsys.readouterr().out
    assert "--- a/published/inference/kvcache/index.md\n" in out
    assert "+| [`eai/evict-14400`]" in out
    assert shelf.bytes() == before


def test_one_page_may_be_named_and_an_unknown_one_is_refused(shelf, capsys):
    shelf.topic("rag")
    assert shelf.kb("publish", "rag") == 0
    assert not shelf.page.exists()
    assert shelf.kb("publish", "nosuch") == 2
    assert "pages are inference/kvcache, rag, systems/eai, ledger" in capsys.readouterr().err


def test_a_second_run_changes_no_byte(shelf):
    published(shelf)
    before = shelf.snapshot()
    published(shelf)
    assert {n: v for n, v in shelf.snapshot().items() if not n.startswith(".kb/")} == {
        n: v for n, v in before.items() if not n.startswith(".kb/")
    }


def test_a_symlinked_page_is_not_followed_out_of_the_base(shelf, tmp_path):
    published(shelf)
    outside = tmp_path / "outside.md"
    shutil.copy(shelf.page, outside)
    before = outside.read_bytes()
    shelf.page.unlink()
    shelf.page.symlink_to(outside)
    shelf.verdict(value=0.19)
    assert shelf.kb("publish") == 2
    assert outside.read_bytes() == before
