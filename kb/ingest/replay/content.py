"""What the replay server knows, one TOML file per paper or post, and the documents it makes of it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

HERE = Path(__file__).parent
ATOM_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"'


@dataclass(frozen=True)
class Paper:
    """A paper as arXiv's API tells of it."""

    id: str
    title: str
    versions: tuple[str, ...]
    """Day of each version, first to last."""
    categories: tuple[str, ...]
    authors: tuple[str, ...]
    summary: str
    comment: str = ""
    first_title: str = ""
    """Title of v1 where it changed."""


@dataclass(frozen=True)
class Post:
    """A post or a documentation page."""

    url: str
    publisher: str
    title: str
    published: str
    """Day, or empty where the page shows none."""
    feed: str
    """Address of the feed it stands in, or empty."""
    authors: tuple[str, ...]
    markup: str


@cache
def papers() -> dict[str, Paper]:
    """Papers by id."""
    found = {}
    for path in sorted((HERE / "papers").glob("*.toml")):
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        lists = {key: tuple(values[key]) for key in ("versions", "categories", "authors")}
        found[values["id"]] = Paper(**{**values, **lists, "summary": " ".join(values["summary"].split())})
    return found


@cache
def posts() -> dict[str, Post]:
    """Posts by ``host/path``."""
    found = {}
    for path in sorted((HERE / "posts").glob("*.toml")):
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        post = Post(**{**values, "authors": tuple(values["authors"])})
        found[place_of(post.url)] = post
    return found


def place_of(url: str) -> str:
    """``host/path`` of an address, as the server is asked for it."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def answer(place: str, query: str) -> tuple[str, str] | None:
    """The document at ``host/path`` with its content type, or None."""
    place = place.rstrip("/")
    if place in {"export.arxiv.org/api/query", "arxiv.org/api/query"}:
        return "application/atom+xml; charset=utf-8", api(parse_qs(query))
    if place in posts():
        return "text/html; charset=utf-8", page(posts()[place])
    listed = [post for post in posts().values() if post.feed and place_of(post.feed) == place]
    if listed:
        return "application/atom+xml; charset=utf-8", feed(listed)
    return None


# arXiv's API


def api(query: dict[str, list[str]]) -> str:
    """Answer of the API for ``id_list`` or ``search_query`` (categories, abs: phrases, a submittedDate range)."""
    start, size = int(query.get("start", ["0"])[0]), int(query.get("max_results", ["10"])[0])
    if "id_list" in query:
        wanted = [re.fullmatch(r"(.+?)(?:v(\d+))?", text) for text in query["id_list"][0].split(",")]
        hits = [(papers()[m[1]], int(m[2] or 0)) for m in wanted if m and m[1] in papers()]
    else:
        hits = [(paper, 0) for paper in _search(query.get("search_query", [""])[0])]
    entries = "".join(_entry(paper, version) for paper, version in hits[start : start + size])
    return (
        f'{ATOM_HEAD} xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom">\n'
        f"<title>replayed answer</title><id>https://arxiv.org/api/replay</id><updated>2026-07-02T00:00:00Z</updated>\n"
        f"<opensearch:totalResults>{len(hits)}</opensearch:totalResults><opensearch:startIndex>{start}</opensearch:startIndex>"
        f"<opensearch:itemsPerPage>{size}</opensearch:itemsPerPage>\n{entries}</feed>\n"
    )


def _search(text: str) -> list[Paper]:
    categories = set(re.findall(r"\bcat:([\w.-]+)", text))
    phrases = [phrase.lower() for phrase in re.findall(r'\b(?:abs|all|ti):"([^"]+)"', text)]
    days = re.search(r"submittedDate:\[(\d{8})\d{4} TO (\d{8})\d{4}\]", text)
    hits = [
        paper
        for paper in papers().values()
        if (not categories or categories & set(paper.categories))
        and (not phrases or any(phrase in f"{paper.title} {paper.summary}".lower() for phrase in phrases))
        and (not days or days[1] <= paper.versions[0].replace("-", "") <= days[2])
    ]
    return sorted(hits, key=lambda paper: (paper.versions[0], paper.id), reverse=True)


def _entry(paper: Paper, version: int) -> str:
    shown = version or len(paper.versions)
    day = paper.versions[min(shown, len(paper.versions)) - 1]
    title = paper.first_title if shown == 1 and paper.first_title else paper.title
    authors = "".join(f"<author><name>{escape(name)}</name></author>" for name in paper.authors)
    categories = "".join(
        f'<category term="{name}" scheme="http://arxiv.org/schemas/atom"/>' for name in paper.categories
    )
    comment = f"<arxiv:comment>{escape(paper.comment)}</arxiv:comment>" if paper.comment else ""
    return (
        f"<entry><id>http://arxiv.org/abs/{paper.id}v{shown}</id><title>{escape(title)}</title>"
        f"<updated>{day}T00:00:00Z</updated><published>{paper.versions[0]}T00:00:00Z</published>"
        f'<link href="https://arxiv.org/abs/{paper.id}v{shown}" rel="alternate" type="text/html"/>'
        f"<summary>{escape(paper.summary)}</summary>{categories}{comment}"
        f'<arxiv:primary_category term="{paper.categories[0]}"/>{authors}</entry>\n'
    )


# Feeds and pages


def feed(listed: list[Post]) -> str:
    """An Atom feed of posts, newest first."""
    entries = "".join(
        f"<entry><id>{escape(post.url)}</id><title>{escape(post.title)}</title>"
        f'<link rel="alternate" type="text/html" href="{escape(post.url)}"/>'
        f"<published>{post.published}T00:00:00Z</published><updated>{post.published}T00:00:00Z</updated>"
        + "".join(f"<author><name>{escape(name)}</name></author>" for name in post.authors)
        + f'<content type="html">{escape(post.markup)}</content></entry>\n'
        for post in sorted(listed, key=lambda post: (post.published, post.url), reverse=True)
    )
    first = listed[0]
    return (
        f"{ATOM_HEAD}>\n<title>{escape(first.publisher)}</title><id>{escape(first.feed)}</id>"
        f"<updated>{max(post.published for post in listed)}T00:00:00Z</updated>\n{entries}</feed>\n"
    )


def page(post: Post) -> str:
    """An article page with the metadata that publishers set."""
    date = f'<meta property="article:published_time" content="{post.published}">' if post.published else ""
    authors = "".join(f'<meta name="author" content="{escape(name)}">' for name in post.authors)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(post.title)} - {escape(post.publisher)}'
        f'</title><meta property="og:title" content="{escape(post.title)}"><meta property="og:site_name" '
        f'content="{escape(post.publisher)}"><link rel="canonical" href="{escape(post.url)}">{date}{authors}</head>\n'
        f"<body><nav><a href='/'>Home</a></nav><article><h1>{escape(post.title)}</h1>\n{post.markup}</article></body></html>\n"
    )
