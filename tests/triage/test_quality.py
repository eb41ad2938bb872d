"""What people made of the rules' decisions is counted by source, star and rule."""

from kb import stages
from kb.draft import read_drafts
from kb.model import Assessment
from kb.triage.quality import measure
from kb.triage.run import run_triage
from kb.triage.why import explain

from .conftest import BAD, GOOD, MOMENT, make_item


def filled(base):
    base.append_items(
        [
            make_item(**GOOD),
            make_item("url:a.example/x", **BAD, source="hype"),
            make_item(
                "arxiv:2607.00002", title="Speculative decoding in SGLang", summary=GOOD["summary"][::-1]
            ),
        ]
    )
    run_triage(base)
    return [found for found, _ in read_drafts(base)]


def test_nobody_reviewed_means_no_rate(shelf):
    filled(shelf)
    found = measure(shelf)
    assert (found["assessed"], found["kept"], found["reviewed"]) == (3, 2, 0)
    assert found["overturn_rate"] is None
    assert found["agreement"]["kappa"] is None


def test_a_draft_moved_away_overturns_its_entries(shelf):
    drafts = filled(shelf)
    stages.move(shelf, drafts[0].id, "dropped", reason="no", who="r", at=MOMENT)
    found = measure(shelf)
    assert (found["reviewed"], found["overturned"]) == (1, 1)
    assert {"source": "hype", "assessed": 1, "kept": 0}.items() <= found["by_source"][1].items()


def test_a_draft_that_is_accepted_confirms_them(shelf):
    drafts = filled(shelf)
    for stage in ("review", "published"):
        stages.move(shelf, drafts[0].id, stage, reason="good", who="r", at=MOMENT)
    found = measure(shelf)
    assert (found["reviewed"], found["overturned"]) == (1, 0)
    assert found["agreement"]["accuracy"] == 1.0


def test_an_edited_front_matter_is_an_opinion(shelf):
    drafts = filled(shelf)
    text = drafts[0].path.read_text()
    drafts[0].path.write_text(text.replace('"decision": "keep"', '"decision": "watch"'))
    found = measure(shelf)
    assert (found["reviewed"], found["overturned"]) == (1, 1)
    rules = {row["rule"]: row for row in found["by_rule"]}
    assert rules["on-topic"]["overturned"] == 1


def test_a_curators_own_draft_is_an_opinion(shelf):
    filled(shelf)
    own = Assessment(item="arxiv:2607.00001", by="jay", decision="keep", stars=2, at=MOMENT, draft="jay/x#1")
    shelf.append_assessments([own])
    found = measure(shelf)
    assert (found["reviewed"], found["overturned"]) == (1, 0)
    assert found["agreement"]["mean_star_gap"] >= 1


def test_stats_of_the_program_are_the_same_numbers(shelf, kb):
    filled(shelf)
    assert kb("-C", shelf.root, "stats", "--json").json == measure(shelf)
    assert "3 assessed by the rules" in kb("-C", shelf.root, "stats").out


class TestWhy:
    def test_it_gives_every_rule_with_its_evidence(self, shelf, kb):
        filled(shelf)
        found = kb("-C", shelf.root, "why", "arxiv:2607.00001", "--json").json
        assert found["decision"] == "keep"
        assert found["blocked_by"] == []
        assert {"rule", "weight", "evidence"} == set(found["rules"][0])
        assert found["score"] == round(sum(rule["weight"] for rule in found["rules"]), 3)

    def test_it_says_why_not(self, shelf):
        filled(shelf)
        assert explain(shelf, "url:a.example/x")["blocked_by"][0].startswith("rule:")

    def test_an_item_is_found_by_address_and_by_entry(self, shelf):
        drafts = filled(shelf)
        by_address = explain(shelf, "https://arxiv.org/pdf/2607.00001v3")
        held = by_address["drafts"][0]
        assert held.partition("#")[0] in {draft.id for draft in drafts}
        assert explain(shelf, held)["item"] == by_address["item"]

    def test_what_nobody_looked_at_says_so(self, shelf):
        shelf.append_items([make_item(**GOOD)])
        assert explain(shelf, "arxiv:2607.00001")["blocked_by"] == ["not-assessed"]

    def test_an_unknown_name_matches_nothing(self, shelf, kb):
        ended = kb("-C", shelf.root, "why", "arxiv:2607.99999")
        assert ended.code == 2
        assert "try: kb list items" in ended.err
