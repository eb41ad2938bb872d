"""One paper, many addresses: what names what (pitfalls P027, P029, P030, P043, P044, P106, P118, P119)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.identity import ARCHIVES, file_name, find_works, identify
from kb.urls import clean_url, find_urls, same_site, url_key

SEEDS = Path(__file__).parents[1] / "../shared/ingest/seeds_urls.tsv"

TANGRAM = [
    "2606.06302",
    "2606.06302v2",
    "arXiv:2606.06302",
    "arXiv 2606.06302v2",
    "arxiv:2606.06302",
    "oai:arXiv.org:2606.06302v1",
    "https://arxiv.org/abs/2606.06302",
    "http://arxiv.org/abs/2606.06302v2",
    "https://www.arxiv.org/abs/2606.06302?context=cs.DC",
    "https://export.arxiv.org/abs/2606.06302",
    "https://arxiv.org/pdf/2606.06302",
    "https://arxiv.org/pdf/2606.06302v2.pdf",
    "https://arxiv.org/html/2606.06302v1#S3",
    "https://arxiv.org/src/2606.06302",
    "https://arxiv.org/e-print/2606.06302",
    "https://ar5iv.org/abs/2606.06302",
    "https://ar5iv.labs.arxiv.org/html/2606.06302",
    "https://www.alphaxiv.org/abs/2606.06302v2",
    "https://alphaxiv.org/overview/2606.06302",
    "https://huggingface.co/papers/2606.06302",
    "https://hf.co/papers/2606.06302",
    "https://doi.org/10.48550/arXiv.2606.06302",
    "doi:10.48550/arXiv.2606.06302",
    "https://dx.doi.org/10.48550/ARXIV.2606.06302",
    "https://www.google.com/url?url=https%3A%2F%2Farxiv.org%2Fabs%2F2606.06302&sa=D",
    "arxiv.org/abs/2606.06302",
]


@pytest.mark.parametrize("spelling", TANGRAM)
def test_every_spelling_of_a_paper_is_one_id(spelling):
    work = identify(spelling)
    assert work is not None
    assert work.id == "arxiv:2606.06302"


@pytest.mark.parametrize(
    ("spelling", "version"),
    [("https://arxiv.org/html/2606.06302v2", "2"), ("arXiv:2606.06302", ""), ("2606.06302v10", "10")],
)
def test_the_version_is_kept_beside_the_id(spelling, version):
    assert identify(spelling).version == version


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("hep-th/9901001", "arxiv:hep-th/9901001"),
        ("math.GT/0309136", "arxiv:math/0309136"),
        ("https://arxiv.org/abs/math.GT/0309136v1", "arxiv:math/0309136"),
        ("cs/0503050v1", "arxiv:cs/0503050"),
        ("http://arxiv.org/abs/astro-ph/0601001v1", "arxiv:astro-ph/0601001"),
        ("0704.0001", "arxiv:0704.0001"),
        ("1501.00001", "arxiv:1501.00001"),
        ("https://doi.org/10.1145/3600006.3613165", "doi:10.1145/3600006.3613165"),
        ("DOI: 10.1145/3600006.3613165", "doi:10.1145/3600006.3613165"),
        ("https://dl.acm.org/doi/abs/10.1145/3600006.3613165", "doi:10.1145/3600006.3613165"),
        ("https://doi.org/10.1007/S10817-009-9150-Z", "doi:10.1007/s10817-009-9150-z"),
    ],
)
def test_old_ids_and_dois(spelling, expected):
    assert identify(spelling).id == expected


@pytest.mark.parametrize(
    "text",
    ["10.1000/2606.06302", "2613.06302", "2600.06302", "12606.06302", "2606.063021", "", "  ", "abc", "x" * 5000,
     "file:///etc/passwd", "javascript:alert(1)", "ftp://example.org/x", "http://", "https:///path", "http://[::1",
     "http://exa mple.org/"],
)  # fmt: skip
def test_what_names_nothing(text):
    assert identify(text) is None


def test_listing_and_author_pages_are_pages_not_papers():
    for page in ("https://arxiv.org/list/cs.DC/new", "https://arxiv.org/a/smith_j_1"):
        assert identify(page).id.startswith("url:arxiv.org/")


@pytest.mark.parametrize(
    ("given_url", "key"),
    [
        ("HTTP://WWW.Example.ORG:80/a/?utm_source=x&id=5#top", "example.org/a?id=5"),
        ("https://example.org/a?b=2&a=1", "example.org/a?a=1&b=2"),
        ("https://example.org:8443/", "example.org:8443"),
        ("https://example.org/a/../b/./c", "example.org/b/c"),
        ("https://example.org/%7Euser/%e4%b8%ad", "example.org/~user/%E4%B8%AD"),
        ("https://example.org/中", "example.org/%E4%B8%AD"),
        ("https://例子.测试/x", "xn--fsqu00a.xn--0zwm56d/x"),
        ("https://example.org/post/amp/", "example.org/post"),
        ("https://example.org/post?amp=1", "example.org/post"),
        ("https://cdn.ampproject.org/c/s/example.org/post", "example.org/post"),
        ("https://medium.com/p/x?source=rss-1234", "medium.com/p/x"),
        ("https://example.org/x?source=docs", "example.org/x?source=docs"),
        ("https://github.com/o/r/blob/x?ref=main", "github.com/o/r/blob/x?ref=main"),
        ("https://example.org/feed?token=s3cret&page=2", "example.org/feed?page=2"),
        ("https://user:pw@example.org/x", "example.org/x"),
        ("https://rocm.blogs.amd.com/x/README.html", "rocm.blogs.amd.com/x/README.html"),
    ],
)
def test_a_page_has_one_key(given_url, key):
    assert url_key(clean_url(given_url)) == key


def test_the_fetched_address_keeps_scheme_host_and_slash():
    assert clean_url("http://www.example.org/a/?utm_medium=rss") == "http://www.example.org/a/"


PROSE = (
    "见 RTP-LLM（arXiv:2605.29639），链接：https://arxiv.org/html/2605.29639v1；另见 https://ollama.com/blog/x。"
    "doi: 10.1145/3600006.3613165. 数字 2606.06302 不算, x10.1000/2606.06302"
)


def test_prose_names_only_what_it_says_it_names():
    found = [(work.id, work.version) for work in find_works(PROSE)]
    assert found == [
        ("arxiv:2605.29639", ""),
        ("arxiv:2605.29639", "1"),
        ("url:ollama.com/blog/x", ""),
        ("doi:10.1145/3600006.3613165", ""),
    ]


def test_brackets_that_belong_to_an_address_stay():
    text = "(see https://en.wikipedia.org/wiki/Roofline_(model)) and <https://x.org/a>."
    assert [url for _, _, url in find_urls(text)] == [
        "https://en.wikipedia.org/wiki/Roofline_(model)",
        "https://x.org/a",
    ]


def test_same_site():
    assert same_site("https://www.a.org/x", "https://blog.a.org/y")
    assert not same_site("https://a.org/x", "https://ba.org/y")


def test_seed_addresses_resolve_to_the_stated_keys():
    if not SEEDS.is_file():
        pytest.skip("../shared/ingest/seeds_urls.tsv is absent")
    with SEEDS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    wrong = []
    for row in rows:
        work = identify(row["as_written"])
        if work is None or (work.id, work.version) != (row["expected_key"], row["version"] or ""):
            wrong.append((row["as_written"], work))
    assert rows
    assert not wrong


# Laws

hosts = st.from_regex(r"[a-z][a-z0-9-]{0,8}(\.[a-z]{2,6}){1,2}", fullmatch=True)
addresses = st.builds(
    lambda scheme, host, path, query: f"{scheme}://{host}/{path}" + (f"?{query}" if query else ""),
    st.sampled_from(["http", "https"]),
    hosts | st.sampled_from(["arxiv.org", "doi.org", "www.google.com", "cdn.ampproject.org", "alphaxiv.org"]),
    st.text(alphabet="ab/.%2Fv1é中~?&=#()amp 0123456789", max_size=30) | st.text(max_size=20),
    st.text(alphabet="ab&=%utm_ref1é", max_size=20),
)
papers = st.builds(
    lambda number, version: number + version,
    st.from_regex(r"(0[7-9]|1[0-9]|2[0-6])(0[1-9]|1[0-2])\.[0-9]{5}", fullmatch=True)
    | st.builds("{}/{}".format, st.sampled_from(ARCHIVES), st.from_regex(r"9[0-9](0[1-9]|1[0-2])[0-9]{3}", fullmatch=True)),
    st.just("") | st.integers(1, 99).map("v{}".format),
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(addresses | papers | st.text(max_size=60))
def test_identify_is_idempotent(text):
    work = identify(text)
    if work is None:
        return
    assert identify(work.url) == work
    again = identify(work.id)
    assert again is not None
    assert again.id == work.id


@settings(deadline=None, max_examples=300)
@given(addresses | st.text(max_size=80))
def test_cleaning_is_idempotent_and_total(text):
    cleaned = clean_url(text)
    if cleaned is not None:
        assert clean_url(cleaned) == cleaned
        assert cleaned.isascii()


@settings(deadline=None)
@given(papers)
def test_all_forms_of_any_paper_agree(paper):
    forms = [paper, f"arXiv:{paper}", f"https://arxiv.org/abs/{paper}", f"https://arxiv.org/pdf/{paper}.pdf",
             f"https://alphaxiv.org/abs/{paper}", f"https://doi.org/10.48550/arXiv.{paper}"]  # fmt: skip
    assert len({(identify(form).id, identify(form).version) for form in forms}) == 1


@settings(deadline=None)
@given(st.text(min_size=1, max_size=300), st.text(max_size=500))
def test_file_names_are_short_ascii_and_have_no_path(work, title):
    name = file_name(work, title)
    assert name == file_name(work, title)
    assert len(name.encode()) <= 77
    assert name == name.lower()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.startswith("-")


def test_equal_titles_of_two_works_give_two_names():
    assert file_name("arxiv:2606.06302", "Same") != file_name("arxiv:2606.06303", "Same")
