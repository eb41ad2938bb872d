"""What comes later about works that are known: new versions, withdrawals, moved and vanished addresses, look-alikes, drafts."""

import pytest

from kb.draft import read_drafts
from kb.ingest.known import Known
from kb.ingest.likeness import bands, may_be_one, people, share
from kb.ingest.replay.content import api, papers
from tests.ingest.test_cases import ATOM, ENTRY, query_of, source
from tests.ingest.test_kinds import OAI, record

DRAFT = "Jay · 2026-06-10\n\n1️⃣ Tangram — arXiv:{id}（⭐⭐⭐⭐ 必读）\n\n  • 链接：https://arxiv.org/abs/{id}v1\n  • 建议动作：精读\n"


@pytest.fixture
def ingest(kb):
    def run(*args):
        return kb("ingest", "--no-triage", "--json", *args)

    return run


# Versions and withdrawals


def test_a_new_version_of_what_was_drafted_is_a_notice_on_it_P027(web, follow, ingest, base, kb, tmp_path):
    path = tmp_path / "brief.txt"
    path.write_text(DRAFT.format(id="2606.06302"), encoding="utf-8")
    assert kb("ingest", "--file", path).code == 0
    web.answers["/api"] = lambda asked, _: (200, {}, api(query_of(asked)).encode())
    follow("tangram", kind="arxiv", url=f"{web.url}/api", ids=["2606.06302"])
    ended = ingest()
    newest = max((item for item in base.items() if item.id == "arxiv:2606.06302"), key=lambda i: i.version)
    assert (newest.version, newest.notices) == (
        "2",
        ("version 2 is out; what was drafted speaks of version 1",),
    )
    assert "version 2 is out" in source(ended, "tangram")["detail"]
    assert source(ingest(), "tangram")["known"] == 1, "told once"


def test_nobody_is_told_of_a_version_that_nobody_drafted(web, follow, ingest, base):
    for comment in ("", "v2"):
        web.serve("/oai", OAI.format(record("2606.20001", comment=comment)))
        follow("oai", kind="oai", url=f"{web.url}/oai")
        ingest("--since", "2026-06-15")
    assert all(item.notices == () for item in base.items())


@pytest.mark.parametrize(
    "comment",
    [
        "This paper has been withdrawn by the authors",
        "withdrawn due to an error in Lemma 2",
        "Retracted by arXiv",
    ],
)
def test_a_withdrawal_or_retraction_becomes_a_notice_P039(web, follow, ingest, base, comment):
    paper = next(paper for paper in papers().values() if not paper.comment)

    def answer(asked, _):
        text = api(query_of(asked))
        head, _, tail = text.partition("<arxiv:primary_category")
        return (
            200,
            {},
            f"{head}<arxiv:comment>{comment}</arxiv:comment><arxiv:primary_category{tail}".encode(),
        )

    web.answers["/api"] = lambda asked, _: (200, {}, api(query_of(asked)).encode())
    follow("one", kind="arxiv", url=f"{web.url}/api", ids=[paper.id])
    ingest()
    web.answers["/api"] = answer
    ended = ingest()
    assert source(ended, "one")["updated"] == 1
    assert list(base.items())[-1].notices == (f"withdrawn: {comment}",)


def test_a_notice_of_an_item_is_shown_on_the_page_it_was_published_on(base):
    from kb.model import Item
    from kb.publish.page import newest_items

    def item(version, notices=()):
        stamp = {"at": "2026-06-10T00:00:00Z", "field": "first_seen"}
        return Item(id="arxiv:2606.00001", version=version, source="s", title="T", first_seen=stamp,
                    fetched_at="2026-06-10T00:00:00Z", notices=notices)  # fmt: skip

    (shown,) = newest_items(
        ["arxiv:2606.00001"], {"arxiv:2606.00001": {"1": item("1"), "2": item("2", ("withdrawn: x",))}}
    )
    assert shown.notices == ("withdrawn: x",)


# Addresses


def test_a_permanent_redirect_is_recorded_and_proposed_and_nothing_is_changed_P101_P128(
    web, follow, ingest, base
):
    web.serve("/new", ATOM.format(ENTRY.format("https://example.org/a", "A")))
    follow("blog", kind="feed", url=web.serve("/old", status=301, location="/new"))
    before = (base.root / "sources/blog.toml").read_bytes()
    first, second = ingest(), ingest()
    assert (first.code, source(first, "blog")["status"], source(first, "blog")["new"]) == (0, "moved", 1)
    assert f"moved for good to {web.url}/new; change url" in source(first, "blog")["detail"]
    assert "(2 runs in a row)" in source(second, "blog")["detail"]
    assert (base.root / "sources/blog.toml").read_bytes() == before
    web.serve("/old", status=302, location="/new")
    assert source(ingest(), "blog")["status"] == "no-news"
    web.serve("/old", status=301, location="/new")
    assert "in a row" not in source(ingest(), "blog")["detail"]


def test_410_stops_a_source_until_a_person_asks_it_P101(web, follow, ingest, kb):
    follow("blog", kind="feed", url=web.serve("/f", status=410))
    assert source(ingest(), "blog")["status"] == "gone"
    again = ingest()
    assert (again.code, source(again, "blog")["status"], source(again, "blog")["requests"]) == (4, "gone", 0)
    assert "kb sources test blog" in source(again, "blog")["detail"]
    assert len(web.asked) == 1
    web.serve("/f", ATOM.format(ENTRY.format("https://example.org/a", "A")))
    assert kb("sources", "test", "blog").code == 0
    assert source(ingest(), "blog")["new"] == 1


# Look-alikes

PAIRS = [
    ("Tangram: Unlocking Non-Uniform KV Cache Compression", "Tangram: unlocking nonuniform KV-cache compression", True),
    ("大模型推理中的KV缓存压缩与分页管理", "大模型推理中 KV 缓存压缩与分页管理", True),
    ("Efficient LLM serving with paged KV cache", "Efficient LLM Serving With Paged KV Cache on GPUs", True),
    ("Scaling laws for sparse models, part I", "Scaling laws for sparse models, part II", False),
    ("vLLM v0.20.1 release notes", "vLLM v0.20.2 release notes", False),
    ("深入理解推理引擎（第一篇章）", "深入理解推理引擎（第二篇章）", False),
    ("Introduction", "Introduction", False),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "is_alike"), PAIRS, ids=[pair[0][:20] for pair in PAIRS])
def test_titles_that_may_name_one_work_P120(one, other, is_alike):
    assert (bool(set(bands(one)) & set(bands(other))) and share(one, other) >= 0.8) is is_alike


def test_authors_can_speak_against_it_P120():
    assert may_be_one(people(("Kim, H.", "A. Lee")), people(("Hyun Kim",)))
    assert may_be_one(people(()), people(("Hyun Kim",)))
    assert not may_be_one(people(("Park, J.",)), people(("Hyun Kim",)))


def test_a_look_alike_is_proposed_shown_and_undone_by_merge_or_split_P120_P125(
    web, follow, ingest, kb, items
):
    first = ENTRY.format("https://one.example.org/a", "Efficient serving with a paged KV cache")
    other = ENTRY.format("https://two.example.org/b", "Efficient Serving with a Paged KV-Cache")
    third = ENTRY.format("https://three.example.org/c", "Efficient Serving With a Paged KV Cache!")
    follow("one", kind="feed", url=web.serve("/one", ATOM.format(first)))
    ingest()
    follow("two", kind="feed", url=web.serve("/two", ATOM.format(other + third)))
    ended = ingest()
    pairs = {(row["item"], row["like"]) for row in ended.json["proposed"]}
    assert ("url:two.example.org/b", "url:one.example.org/a") in pairs
    assert len(items()) == 3, "proposed, not merged"
    shown = kb("why", "url:two.example.org/b")
    assert "looks like url:one.example.org/a" in shown.out
    likes = {row["like"] for row in kb("why", "url:two.example.org/b", "--json").json["proposed"]}
    assert likes == {"url:one.example.org/a", "url:three.example.org/c"}
    kb("merge", "url:two.example.org/b", "url:one.example.org/a", "--reason", "one text")
    kb("split", "url:two.example.org/b", "url:three.example.org/c", "--reason", "two texts")
    assert kb("why", "url:two.example.org/b", "--json").json["proposed"] == []
    kb("split", "url:two.example.org/b", "--reason", "two texts after all")
    assert kb("why", "url:two.example.org/b", "--json").json["proposed"] == []


def test_works_that_are_gone_are_proposed_to_nobody(web, follow, ingest, base):
    entries = [
        ENTRY.format(f"https://{n}.example.org/a", "Efficient serving with a paged KV cache") for n in "xy"
    ]
    follow("blog", kind="feed", url=web.serve("/f", ATOM.format("".join(entries))))
    ingest()
    with Known(base) as known:
        assert [one.id for one in known.alike("url:x.example.org/a")] == ["url:y.example.org/a"]
    (path,) = (base.root / "items").iterdir()
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    with Known(base) as known:
        assert known.alike("url:x.example.org/a") == []


# Drafts as a source


def test_a_folder_of_drafts_is_a_source_and_each_is_taken_in_once(follow, ingest, base, snapshot):
    folder = base.root / "incoming"
    folder.mkdir()
    (folder / "brief.txt").write_text(DRAFT.format(id="2606.06302"), encoding="utf-8")
    (folder / "no-day.txt").write_text("1️⃣ A — arXiv:2606.18431\n", encoding="utf-8")
    follow("drafts", kind="draft", query="incoming/*.txt", publisher="Jay")
    ended = ingest()
    row = source(ended, "drafts")
    assert (ended.code, row["status"], row["new"], row["unusable"]) == (4, "partial", 1, 1)
    assert "its header names no date" in row["detail"]
    assert [draft["path"] for draft in ended.json["drafts"]] == ["inbox/jay/2026-06-10-brief.md"]
    assert [found.id for found, _ in read_drafts(base)] == ["jay/2026-06-10-brief"]
    before = snapshot()
    assert source(ingest(), "drafts")["known"] == 1
    assert snapshot() == before


def test_a_draft_at_an_address_is_taken_in_and_asked_conditionally(web, follow, ingest, base):
    body = DRAFT.format(id="2606.06302").encode()
    web.answers["/brief.txt"] = lambda _, h: (
        (304, {}, b"") if "if-none-match" in h else (200, {"etag": '"1"'}, body)
    )
    follow("jay", kind="draft", url=f"{web.url}/brief.txt")
    assert source(ingest(), "jay")["new"] == 1
    assert source(ingest(), "jay")["status"] == "not-modified"
    assert {item.id for item in base.items()} == {"arxiv:2606.06302"}


@pytest.mark.parametrize("pattern", ["../*.txt", "/etc/*", "", "a**b/*", "inbox/**/*.md", ".kb/*"])
def test_a_draft_source_reads_nothing_but_files_that_curators_left_in_the_base(follow, ingest, base, pattern):
    (base.root.parent / "secret.txt").write_text(DRAFT.format(id="2606.06302"), encoding="utf-8")
    follow("drafts", kind="draft", query=pattern)
    ended = ingest()
    assert source(ended, "drafts")["new"] == 0
    assert list(base.items()) == []


def test_a_link_in_a_folder_of_drafts_is_not_followed(follow, ingest, base):
    secret = base.root.parent / "secret.txt"
    secret.write_text(DRAFT.format(id="2606.06302"), encoding="utf-8")
    (base.root / "incoming").mkdir()
    (base.root / "incoming/a.txt").symlink_to(secret)
    follow("drafts", kind="draft", query="incoming/*.txt")
    ended = ingest()
    assert (source(ended, "drafts")["unusable"], list(base.items())) == (1, [])
