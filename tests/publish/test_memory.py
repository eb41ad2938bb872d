"""What the last run saw saves work and never hides a change: every edit, from either side, is met by the next run."""

from __future__ import annotations

import json

import pytest

from kb.model import Outcome
from kb.publish.memory import recall
from kb.publish.run import make_plan


@pytest.fixture
def seen(shelf):
    """A base that was published; the run before last had nothing to do."""
    assert shelf.kb("publish") == 0
    return shelf


def changed(shelf) -> list[str]:
    return [change.path for change in make_plan(shelf.base).changes]


def test_a_run_with_nothing_to_do_sees_that_from_file_times_alone(seen):
    assert recall(seen.base).nothing_changed
    assert changed(seen) == []
    seen.verdict(value=0.19)
    assert not recall(seen.base).nothing_changed


def test_states_and_notes_are_the_same_with_and_without_memory(seen, capsys):
    seen.page.write_text(
        seen.page.read_text().replace("### 没有说明什么\n\n", "### 没有说明什么\n\n- 我的一行\n")
    )
    text = seen.page.read_text()
    start, end = (
        text.index("<!-- kb:begin inference/kvcache/reading"),
        text.index("<!-- kb:end inference/kvcache/reading"),
    )
    seen.page.write_text(text[:start] + text[end:].partition("\n")[2])
    assert seen.kb("publish") == 0
    capsys.readouterr()
    seen.kb("publish", "--dry-run", "--json")
    with_memory = json.loads(capsys.readouterr().out)
    (seen.base.cache / "publish.json").unlink()
    seen.kb("publish", "--dry-run", "--json")
    assert json.loads(capsys.readouterr().out) == with_memory
    assert {block["state"] for block in with_memory["blocks"]} == {"clean", "edited", "taken-over"}


@pytest.mark.parametrize(
    ("what", "touched"),
    [
        ("verdict", {"inference/kvcache", "systems/eai", "ledger"}),
        ("claim", {"inference/kvcache", "systems/eai"}),
        ("figure", {"inference/kvcache"}),
        ("topic", set()),
        ("item", {"systems/eai"}),
    ],
)
def test_one_changed_record_touches_only_its_pages(seen, what, touched):
    seen.topic("rag", title={"zh": "检索", "en": "RAG"})
    seen.claim("vllm/x", topics=["rag"])
    seen.kb("publish")
    if what == "verdict":
        seen.verdict(verdict=Outcome.HOLDS)
    elif what == "claim":
        seen.claim(low=0.01)
    elif what == "figure":
        seen.figure(alt={"zh": "换一句", "en": "another"})
    elif what == "topic":
        seen.topic(title={"zh": "新名字", "en": "renamed"})
    else:
        seen.item(version="2", title="Tangram 2")
    pages = {
        path.removeprefix("published/").removesuffix("/index.md")
        for path in changed(seen)
        if path.endswith("index.md")
    }
    # the item's title stands on its system's page only; the topic's own title belongs to people once it is written
    assert pages == touched | ({"systems/vllm"} if what == "item" else set())


@pytest.mark.parametrize("harm", ["page", "base", "marker"])
def test_an_edit_by_hand_is_met_by_the_next_run(seen, harm):
    if harm == "page":
        seen.edit("18.5 % (15.7–21.3 %)", "别的")
        seen.verdict(value=0.19)
        assert seen.kb("publish") == 3
    elif harm == "base":
        seen.base.block_path("inference/kvcache/evidence").unlink()
        assert changed(seen) == ["published/.blocks/inference/kvcache/evidence.md"]
    else:
        seen.edit("<!-- kb:end inference/kvcache/reading -->\n", "")
        assert seen.kb("publish") == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"code": 1}', "\x00"])
def test_a_broken_memory_is_no_memory(seen, text):
    (seen.base.cache / "publish.json").write_text(text)
    seen.verdict(value=0.19)
    assert seen.kb("publish") == 0
    assert "19 % (15.7–21.3 %)" in seen.page.read_text()


def test_a_dry_run_remembers_nothing(shelf):
    shelf.kb("publish", "--dry-run")
    assert not (shelf.base.cache / "publish.json").exists()
