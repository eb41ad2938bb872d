"""What the base knows decides what is new: names, merges, deletions by people, ids that change, gaps."""

import subprocess

import pytest

from kb.ingest.known import Known
from tests.ingest.test_cases import ATOM, ENTRY, source


def post(number, title=None, day=10, url=None):
    text = ENTRY.format(url or f"https://example.org/{number}", title or f"Post {number}")
    return text.replace("2026-06-10", f"2026-06-{day:02}")


@pytest.fixture
def blog(web, follow):
    """Serve a feed of these entries."""

    def serve(*entries):
        web.serve("/feed", ATOM.format("".join(entries)))
        follow("blog", kind="feed", url=f"{web.url}/feed")

    return serve


@pytest.fixture
def ingest(kb):
    def run(*args):
        return kb("ingest", "--no-triage", "--json", *args)

    return run


def test_the_same_post_under_another_spelling_is_known(blog, ingest, items):
    blog(post(1, url="https://example.org/a?utm_source=rss"))
    ingest()
    blog(post(1, url="http://www.example.org/a/"))
    assert source(ingest(), "blog")["known"] == 1
    assert list(items()) == ["url:example.org/a"]


def test_a_renamed_address_is_known_by_its_guid(blog, ingest, base):
    entry = post(1).replace("<id>https://example.org/1</id>", "<id>tag:example.org,2026:1</id>")
    blog(entry)
    ingest()
    blog(entry.replace("https://example.org/1", "https://example.org/better-name"))
    ended = ingest()
    assert (source(ended, "blog")["new"], source(ended, "blog")["known"]) == (0, 1)
    assert len({item.id for item in base.items()}) == 1


def test_a_changed_text_is_an_update_and_a_changed_stamp_is_none(blog, ingest, base):
    blog(post(1))
    ingest()
    blog(post(1).replace("<updated>2026-06-10", "<updated>2026-06-29"))
    assert source(ingest(), "blog")["updated"] == 0
    blog(post(1).replace("<summary>text", "<summary>other text"))
    ended = ingest()
    assert ended.json["items"] == {"new": [], "updated": ["url:example.org/1"]}
    assert len(list(base.items())) == 2
    assert {item.first_seen.at for item in base.items()} == {"2026-07-02T03:05:00Z"}


def test_what_a_second_source_says_of_a_known_work_changes_nothing(web, follow, ingest, base):
    web.serve("/a", ATOM.format(post(1, title="First")))
    web.serve("/b", ATOM.format(post(1, title="Second")))
    follow("a", kind="feed", url=f"{web.url}/a")
    follow("b", kind="feed", url=f"{web.url}/b")
    for _ in range(3):
        ingest()
    assert [item.title for item in base.items()] == ["First"]


def test_a_feed_that_changes_all_its_ids_is_quarantined_P086(blog, ingest, items):
    blog(*[post(n, day=n) for n in range(1, 11)])
    ingest()
    before = items()
    blog(*[post(n, day=n, url=f"https://new.example.org/{n}") for n in range(1, 11)])
    ended = ingest()
    assert (ended.code, source(ended, "blog")["status"]) == (4, "mass-id-change")
    assert items() == before


def test_a_feed_shorter_than_the_gap_is_told_P082(blog, ingest):
    blog(*[post(n, day=n) for n in range(1, 4)])
    ingest()
    blog(*[post(n, day=n) for n in range(20, 23)])
    ended = ingest()
    assert (ended.code, source(ended, "blog")["status"], source(ended, "blog")["new"]) == (4, "partial", 3)
    assert "3-item feed, no known id" in source(ended, "blog")["detail"]
    assert ingest().code == 0


def test_a_feed_that_begins_after_the_first_day_says_so_when_it_is_new_P082(blog, ingest):
    blog(*[post(n, day=n) for n in range(20, 23)])
    ended = ingest("--since", "2026-06-10")
    assert (ended.code, source(ended, "blog")["status"]) == (0, "ok")
    assert "3-item feed, followed for the first time" in source(ended, "blog")["detail"]
    assert "between 2026-06-10 and 2026-06-20" in source(ended, "blog")["detail"]


def test_undated_stays_undated_and_enters_once_P078(blog, ingest, base):
    import re

    undated = re.sub(r"<(published|updated)>[^<]*</\1>", "", post(1))
    blog(undated)
    assert source(ingest("--since", "2026-07-01"), "blog")["new"] == 1
    assert source(ingest("--since", "2026-07-01"), "blog")["known"] == 1
    (item,) = base.items()
    assert (item.announced, item.updated, item.submitted) == (None, None, None)


@pytest.mark.parametrize(
    ("moment", "is_inside"),
    [("2026-06-09T15:59:59Z", False), ("2026-06-09T16:00:00Z", True), ("2026-06-10T00:00:00+08:00", True)],
)
def test_since_means_that_day_in_the_zone_of_the_base_to_the_second_P144(blog, ingest, moment, is_inside):
    blog(post(1).replace("2026-06-10T00:00:00Z", moment))
    ended = ingest("--since", "2026-06-10", "--tz", "Asia/Shanghai")
    assert ended.json["window"]["utc"][0] == "2026-06-09T16:00:00Z"
    assert source(ended, "blog")["new"] == int(is_inside)


def test_a_wider_window_is_not_answered_with_304(web, blog, ingest):
    body = ATOM.format(post(1, day=1) + post(2, day=20)).encode()
    blog()
    web.answers["/feed"] = lambda _, h: (
        (304, {}, b"") if "if-none-match" in h else (200, {"etag": '"1"'}, body)
    )
    assert source(ingest("--since", "2026-06-15"), "blog")["new"] == 1
    assert source(ingest("--since", "2026-06-15"), "blog")["status"] == "not-modified"
    assert source(ingest("--since", "2026-05-01"), "blog")["new"] == 1


# People


def git(base, *args):
    subprocess.run(["git", "-C", str(base.root), *args], check=True, capture_output=True)


@pytest.mark.parametrize("has_index", [True, False], ids=["same-clone", "fresh-clone"])
def test_an_item_that_a_person_deleted_in_git_stays_deleted(blog, ingest, base, items, has_index):
    import shutil

    git(base, "init", "-q")
    blog(post(1), post(2))
    ingest()
    git(base, "add", ".")
    git(base, "commit", "-qm", "items")
    (path,) = (base.root / "items").iterdir()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    git(base, "commit", "-qam", "off topic")
    if not has_index:
        shutil.rmtree(base.cache)
    ended = ingest()
    assert (source(ended, "blog")["new"], source(ended, "blog")["dropped"]) == (0, 1)
    assert list(items()) == ["url:example.org/2"]
    (entry,) = base.log()
    assert (entry.act, entry.target) == ("drop", "url:example.org/1")
    assert ingest().code == 0
    assert len(base.log()) == 1


def test_lines_that_were_never_committed_are_forgotten_not_buried(blog, ingest, base, items):
    git(base, "init", "-q")
    git(base, "add", ".")
    git(base, "commit", "-qm", "empty")
    blog(post(1))
    ingest()
    (path,) = (base.root / "items").iterdir()
    path.unlink()
    assert source(ingest(), "blog")["new"] == 1
    assert base.log() == []


def test_merged_items_are_one_work_until_they_are_split(kb, blog, ingest, base, items):
    blog(post(1), post(2))
    ingest()
    merged = kb("merge", "url:example.org/2", "https://example.org/1", "--reason", "the same", "--json")
    assert merged.json == [{"act": "merge", "target": "url:example.org/1", "to": "url:example.org/2"}]
    blog(post(1).replace("<summary>text", "<summary>new words"), post(2))
    assert source(ingest(), "blog")["updated"] == 1
    assert kb("merge", "url:example.org/1", "url:example.org/2", "--reason", "again").code == 2
    assert kb("split", "url:example.org/1", "--reason", "they are not").code == 0
    assert [entry.act for entry in base.log()] == ["merge", "split"]
    with Known(base) as known:
        assert known.canonical("url:example.org/1") == ("url:example.org/1", "")


def test_a_name_that_is_no_item_ends_with_2(kb, base):
    assert kb("merge", "url:example.org/none", "url:example.org/nil", "--reason", "x").code == 2


def test_the_index_follows_files_that_others_change(base, blog, ingest):
    blog(post(1))
    ingest()
    (path,) = (base.root / "items").iterdir()
    line = path.read_text()
    with path.open("a") as out:
        out.write(line.replace("example.org/1", "example.org/77"))
    with Known(base) as known:
        assert known.has("url:example.org/77")
        assert known.has("url:example.org/1")
    path.write_text(line.replace("example.org/1", "example.org/78"))
    with Known(base) as known:
        assert [known.has(f"url:example.org/{n}") for n in (1, 77, 78)] == [False, False, True]
        assert known.vanished == {"url:example.org/1", "url:example.org/77"}


@pytest.mark.parametrize("damage", [b"", b"not a database" * 100])
def test_a_damaged_index_is_made_anew(base, blog, ingest, damage):
    blog(post(1))
    ingest()
    (base.cache / "known.sqlite").write_bytes(damage)
    assert source(ingest(), "blog")["known"] == 1


def test_a_reader_is_not_held_up_by_an_ingest_that_is_not_written_yet(base, blog, ingest):
    blog(post(1))
    ingest()
    (item,) = base.items()
    with Known(base) as writer:
        writer.stage([item.model_copy(update={"id": "url:example.org/staged"})])
        with Known(base) as reader:
            assert reader.has("url:example.org/1")
            assert not reader.has("url:example.org/staged")
    with Known(base) as later:
        assert not later.has("url:example.org/staged"), "what was never written is not known"


def test_asking_for_look_alikes_is_not_held_up_by_an_ingest_that_is_not_written_yet(base, blog, ingest):
    import time

    blog(post(1, "Efficient serving with a paged cache"), post(2, "Efficient Serving With a Paged Cache"))
    ingest()
    with Known(base) as one:
        assert [found.id for found in one.alike("url:example.org/1")] == ["url:example.org/2"]
    (item,) = [item for item in base.items() if item.id == "url:example.org/1"]
    with Known(base) as writer, Known(base) as reader:
        writer.stage([item.model_copy(update={"id": "url:example.org/staged"})])
        started = time.monotonic()
        assert [found.id for found in reader.alike("url:example.org/1")] == ["url:example.org/2"]
        assert time.monotonic() - started < 10, "it does not wait for the writer's 30 s"
