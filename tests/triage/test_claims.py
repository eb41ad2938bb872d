"""Claims come from a source's own bytes: proposed with their offset, refused where the quote is not there."""

import pytest

from kb.files import sha256
from kb.triage.claims import find_quote, propose

PAPER = """Paged eviction revisited

Reclaiming pages takes up to 25% of prefill time. Compared with plain paging, decoding is 1.7x faster on 4x A100.
缓存占用降低 62.5 %，首字延迟从 1.2 秒降到 0.4 秒。
"""
HTML = "<html><body><style>p {width: 90%}</style><p>Throughput rises by <b>2.4x</b> over the eager engine.</p></body></html>"


@pytest.fixture
def paper(kb, base, tmp_path):
    """An item of the base and the bytes it was read in."""
    draft = tmp_path / "d.txt"
    draft.write_text(
        "Ann 2026-06-01\n\n1️⃣ Paging — arXiv:2601.00099（⭐⭐⭐⭐ x）\n\n  • 链接：https://arxiv.org/abs/2601.00099v1\n"
    )
    assert kb("ingest", "--file", draft).code == 0
    path = tmp_path / "paper.txt"
    path.write_text(PAPER)
    return path


def new(kb, paper, *more, quote="takes up to 25% of prefill time", name="paging/reclaim", body=True):
    given = ["--body", paper] if body else []
    words = ["--zh", "回收占用", "--en", "Reclaim takes time"]
    return kb("claim", "new", name, "--item", "arxiv:2601.00099@1", "--quote", quote, *words, *given, *more)


def test_proposals_point_into_the_fetched_bytes():
    body = PAPER.encode()
    proposals = propose(body)
    assert [(p.quantity.quote, p.quantity.unit, p.quantity.bound) for p in proposals] == [
        ("25%", "fraction", "up-to"),
        ("1.7x", "ratio", "exact"),
        ("62.5 %", "fraction", "exact"),
        ("从 1.2 秒降到 0.4 秒", "s", "range"),
    ]
    for proposal in proposals:
        assert body[proposal.offset : proposal.offset + proposal.length].decode() == proposal.quote
        assert proposal.quantity.quote in proposal.quote
        assert proposal.body == sha256(body)
    assert proposals[1].conditions == ("4x A100",) or "4x" in proposals[1].conditions
    assert (proposals[1].metric, proposals[3].metric) == ("speed_up", "ttft")


def test_markup_is_not_quoted_and_moves_no_offset():
    body = HTML.encode()
    (proposal,) = propose(body)
    assert proposal.quantity.baseline == "eager engine"
    assert body[proposal.offset : proposal.offset + proposal.length].decode() == proposal.quote
    assert "90%" not in proposal.quote


@pytest.mark.parametrize(
    ("body", "quote", "found"),
    [
        pytest.param(b"takes up  to\n25% of", "takes up to 25% of", True, id="white-space-may-differ"),
        pytest.param(b"A &amp; B are 2x", "A & B are 2x", True, id="entities-may-differ"),
        pytest.param(b"takes up to 26% of", "takes up to 25% of", False, id="another-number"),
        pytest.param(b"up to", "  ", False, id="an-empty-quote"),
    ],
)
def test_a_quote_is_found_only_where_it_stands(body, quote, found):
    assert (find_quote(body, quote) is not None) is found


def test_a_claim_is_written_with_the_digest_of_its_bytes(kb, base, paper):
    answer = new(kb, paper, "--locator", "abstract", "--condition", "hardware=A100", "--json")
    assert answer.code == 0, answer.err
    claim = base.claims()["paging/reclaim"]
    assert (claim.low, claim.high, claim.unit, claim.bound) == (0.25, 0.25, "fraction", "up-to")
    assert claim.quote_sha256 == sha256(paper.read_bytes())
    assert claim.version == "1"
    assert claim.conditions == {"hardware": "A100"}
    assert answer.json == claim.to_json()
    assert kb("claim", "lint").code == 0


def test_two_claims_share_a_file_and_the_first_keeps_its_bytes(kb, base, paper):
    new(kb, paper)
    before = (base.root / "claims/paging.toml").read_bytes()
    assert new(kb, paper, quote="decoding is 1.7x faster", name="paging/speed").code == 0
    assert (base.root / "claims/paging.toml").read_bytes().startswith(before)
    assert list(base.claims()) == ["paging/reclaim", "paging/speed"]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        pytest.param(
            {"quote": "takes up to 35% of prefill time"}, 2, "not in the source", id="quote-not-in-the-source"
        ),
        pytest.param({"quote": "x" * 301}, 2, "301 characters", id="quote-too-long"),
        pytest.param({"quote": "Paged eviction revisited"}, 2, "0 figures", id="no-figure-in-the-quote"),
        pytest.param({"name": "Paging"}, 2, "no claim id", id="malformed-id"),
        pytest.param({"body": False}, 5, "no fetched bytes", id="nobody-has-the-bytes"),
    ],
)
def test_what_cannot_be_checked_is_refused_and_nothing_is_written(kb, base, paper, change, code, says):
    answer = new(kb, paper, **change)
    assert answer.code == code
    assert says in answer.err
    assert not (base.root / "claims/paging.toml").exists()


def test_without_bytes_a_claim_is_unverified_and_says_so(kb, base, paper):
    assert new(kb, paper, "--unverified", body=False).code == 0
    assert base.claims()["paging/reclaim"].quote_sha256 == ""
    assert kb("claim", "list", "--json").json[0]["is_verified"] is False


def test_fetched_bytes_are_found_by_themselves(kb, base, paper):
    body = paper.read_bytes()
    base.write(base.bodies / sha256(body), body)
    base.write(base.bodies / ("0" * 64), body)  # not what its name says
    assert new(kb, paper, body=False).code == 0
    assert base.claims()["paging/reclaim"].quote_sha256 == sha256(body)


def test_a_taken_id_an_unknown_item_and_a_dry_run(kb, base, paper):
    assert new(kb, paper, "--dry-run").code == 0
    assert not (base.root / "claims/paging.toml").exists()
    assert new(kb, paper).code == 0
    assert new(kb, paper).code == 2
    assert (
        kb(
            "claim",
            "new",
            "a/b",
            "--item",
            "arxiv:2601.99999",
            "--quote",
            "25%",
            "--zh",
            "甲",
            "--en",
            "a",
            "--body",
            paper,
        ).code
        == 2
    )


def test_listing_and_showing(kb, base, paper):
    assert kb("claim", "list", "--json").json == []
    new(kb, paper)
    assert kb("claim", "list", "--json", "--fields", "id,bound").json == [
        {"id": "paging/reclaim", "bound": "up-to"}
    ]
    assert kb("claim", "show", "paging/reclaim", "--json").json["low"] == 0.25
    assert "prefill time" in kb("claim", "show", "paging/reclaim").out
    assert kb("claim", "show", "paging/other").code == 2
    offered = kb("claim", "new", "--item", "arxiv:2601.00099", "--body", paper, "--json").json
    assert [p["figure"] for p in offered] == ["25%", "1.7x", "62.5 %", "从 1.2 秒降到 0.4 秒"]


def test_lint_of_claims_names_what_is_missing(kb, base, paper):
    new(kb, paper, quote="62.5 %")
    answer = kb("claim", "lint", "paging", "--json")
    assert answer.code == 1
    assert {f["code"] for f in answer.json} == {"no-locator", "no-conditions"}
    assert kb("claim", "lint", "nowhere").code == 2
