"""Reads an HTML page: its bytes as text, its tree without what readers do not see, and what it says about itself.

Dates come from JSON-LD, meta elements, ``<time>`` and the address, never from a copyright line or from prose. Titles lose
their site's name. A canonical address counts only on the same site and if it is not the home page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from kb.http import Answer
from kb.identity import identify
from kb.ingest.dates import ReadDate, date_in_path, read_date
from kb.ingest.text import guess_charset, one_line
from kb.urls import clean_url, same_site

META_SCAN = 4096
"""Bytes in which a charset declaration counts (browsers take 1,024; real pages are worse)."""
CHARSETS = {"gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "iso-8859-1": "cp1252", "latin1": "cp1252",
            "us-ascii": "cp1252", "ascii": "cp1252", "shift_jis": "cp932", "ks_c_5601-1987": "cp949"}  # fmt: skip
"""Labels that mean a wider set in practice (WHATWG Encoding)."""
_META_CHARSET = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?:px|pt|em|rem|%)?\s*(?:;|!|$)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$)"
    r"|(?:^|;)\s*color\s*:\s*(?:white|#fff(?:fff)?|transparent|rgba?\(\s*255\s*,\s*255\s*,\s*255[^)]*\))\s*(?:;|!|$)"
    r"|text-indent\s*:\s*-\d{3,}|(?:left|top)\s*:\s*-\d{4,}px",
    re.IGNORECASE,
)
DROPPED_TAGS = frozenset(
    "script style template noscript iframe object embed svg canvas form button input select textarea dialog nav".split()
)
PUBLISHED = (
    "article:published_time", "og:article:published_time", "datepublished", "citation_publication_date", "citation_date",
    "dc.date.issued", "dcterms.issued", "dcterms.created", "dc.date", "dc.date.created", "publishdate", "pubdate",
    "publish-date", "publish_date", "parsely-pub-date", "sailthru.date", "article.published", "date", "weibo: article:create_at",
)  # fmt: skip
MODIFIED = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "dcterms.modified",
    "last-modified",
    "revised",
    "lastmod",
)
_DATE_NAME = re.compile(
    r"(?:^|[\s_-])(?:pub(?:lish(?:ed)?)?[-_]?(?:date|time)|(?:post|article|entry|header|news)[-_](?:date|time)|pubtime|date|time)(?:$|[\s_-])",
    re.IGNORECASE,
)
TITLES = ("citation_title", "dc:title", "twitter:title", "dc.title")
AUTHORS = ("citation_author", "dc:creator", "author", "article:author", "dc.creator", "parsely-author", "byl")
AUTHOR_JUNK = re.compile(
    r"^(?:view all posts by\s+|posted by\s+|written by\s+|by\s+|作者\s*[:：]?\s*|编辑\s*[:：]?\s*)",
    re.IGNORECASE,
)
SEPARATORS = re.compile(r"\s+[-–—|·•:»]\s+|\s*[|_]\s*|(?<=[^\x00-\x7f])[-–—](?=[^\x00-\x7f])")


@dataclass
class Page:
    """A page's tree and what it says about itself."""

    tree: Any
    """lxml element; hidden nodes are gone."""
    url: str
    base: str
    """What relative links are relative to."""
    title: str = ""
    site: str = ""
    authors: tuple[str, ...] = ()
    published: tuple[ReadDate, str] | None = None
    updated: tuple[ReadDate, str] | None = None
    canonical: str = ""
    other: str = ""
    """A canonical address elsewhere: an alias, not the page."""
    refresh: str = ""
    """Where a meta refresh leads."""
    is_partial: bool = False
    """A teaser: the page says the rest is not free, or shows a subscription wall."""
    code_blocks: int = 0
    """Blocks of code in the document, wherever they stand."""
    hidden: int = 0
    """Hidden nodes that held text and were dropped."""
    warnings: list[str] = field(default_factory=list)


def decode(answer: Answer) -> str:
    """The text of a page: byte order mark, HTTP, meta element, then what its bytes are."""
    body = answer.body
    for mark, name in ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    found = _META_CHARSET.search(body[:META_SCAN]) or _META_CHARSET.search(body[: META_SCAN * 64])
    labels = [answer.charset, found.group(1).decode("ascii", "replace").lower() if found else ""]
    try:
        return body.decode("utf-8")  # valid UTF-8 is UTF-8, whatever a label says: other text hardly ever is
    except UnicodeDecodeError:
        pass
    for label in [label for label in labels if label]:
        try:
            return body.decode(CHARSETS.get(label, label), "replace")
        except LookupError:
            continue
    name = guess_charset(body)
    return body.decode(name or "utf-8", "replace")


def read_page(answer: Answer, zone: str) -> Page | None:
    """Read a page, or return None where there is no document.

    Args:
        answer: The fetched bytes; its url is the one after redirects.
        zone: Zone of dates that carry none.
    """
    from lxml import etree, html

    text = decode(answer)
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "", text)
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    if not text.strip():
        return None
    parser = html.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True
    )
    try:
        tree = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    page = Page(tree, answer.url, _base(tree, answer.url))
    _read_head(page, zone)
    page.code_blocks = sum(1 for _ in tree.iter("pre"))
    page.hidden = drop_hidden(tree)
    return page


def _base(tree: Any, url: str) -> str:
    href = next((node.get("href") for node in tree.iter("base") if node.get("href")), "")
    return _join(url, href) or url


def _join(base: str, href: str) -> str:
    try:
        joined = urljoin(base, href.strip())
    except ValueError:
        return ""
    return joined if joined.lower().startswith(("http://", "https://")) else ""


def drop_hidden(tree: Any) -> int:
    """Remove what a reader does not see and what is no text; how many removed nodes held text."""
    doomed: list[tuple[Any, bool]] = []
    for node in tree.iter():
        if not isinstance(node.tag, str):
            continue
        if node.tag in DROPPED_TAGS:
            doomed.append((node, False))
        elif node.tag not in {"html", "body"} and _is_hidden(node):
            doomed.append((node, True))
    count = 0
    for node, is_hidden in doomed:
        if node.getparent() is None:
            continue
        count += bool(is_hidden and node.text_content().strip())
        node.drop_tree()
    return count


def _is_hidden(node: Any) -> bool:
    if node.get("hidden") is not None or node.get("aria-hidden", "").lower() == "true":
        # formulae are hidden from screen readers and shown to eyes
        return "math" not in node.get("class", "").lower() and "katex" not in node.get("class", "").lower()
    return bool(_HIDDEN_STYLE.search(node.get("style", "")))


# What the page says about itself


def _read_head(page: Page, zone: str) -> None:
    metas = _metas(page.tree)
    linked = list(_linked_data(page.tree))
    page.site = one_line(metas.get("og:site_name", "") or metas.get("application-name", ""), 120)
    page.title = _title(page, metas, linked)
    page.authors = _authors(page, metas, linked)
    _canonical(page, metas)
    page.published, page.updated = _dates(page, metas, linked, zone)
    refresh = next(
        (
            n.get("content", "")
            for n in page.tree.iter("meta")
            if n.get("http-equiv", "").lower() == "refresh"
        ),
        "",
    )
    if found := re.match(r"\s*(\d+)[^;,]*[;,]\s*(?:url\s*=\s*)?[\"']?([^\"'>\s]+)", refresh, re.IGNORECASE):
        page.refresh = _join(page.base, found.group(2)) if int(found.group(1)) <= 10 else ""  # noqa: PLR2004  seconds
    free = [str(data.get("isAccessibleForFree")).lower() for data in linked]
    page.is_partial = "false" in free or metas.get("article:content_tier", "").lower() in {
        "locked",
        "metered",
    }


def _metas(tree: Any) -> dict[str, str]:
    """Meta elements by name; ``property`` is believed before ``name``, the first of several counts, authors are joined."""
    found: dict[str, str] = {}
    for attribute in ("property", "name", "itemprop"):
        for node in tree.iter("meta"):
            content = (node.get("content") or "").strip()
            for name in (node.get(attribute) or "").lower().split() if content else ():
                if name in {"author", "citation_author"} and name in found:
                    found[name] += f"\n{content}"
                else:
                    found.setdefault(name, content)
    return found


def _linked_data(tree: Any) -> Iterator[dict[str, Any]]:
    """Objects of JSON-LD that are articles or pages, graphs flattened."""
    for node in tree.iter("script"):
        if node.get("type", "").lower().strip() != "application/ld+json":
            continue
        try:
            text = re.sub(r"^\s*(?://)?<!\[CDATA\[|(?://)?\]\]>\s*$", "", node.text or "")
            value = json.loads(text[:500_000], strict=False)
        except (ValueError, RecursionError):
            continue
        stack = [value]
        for _ in range(500):
            if not stack:
                break
            current = stack.pop()
            if isinstance(current, list):
                stack.extend(current[:100])
            elif isinstance(current, dict):
                stack.extend(
                    v
                    for k, v in current.items()
                    if k in {"@graph", "mainEntity", "mainEntityOfPage"} and not isinstance(v, str)
                )
                kind = str(current.get("@type", ""))
                if re.search(r"Article|Posting|WebPage|Report|Paper|HowTo|Question", kind):
                    yield current


def _title(page: Page, metas: dict[str, str], linked: list[dict[str, Any]]) -> str:
    named = next(
        (d["headline"] for d in linked if isinstance(d.get("headline"), str) and d["headline"].strip()), ""
    )
    raw = next((n.text_content() for n in page.tree.iter("title")), "")
    heads = [n.text_content() for n in page.tree.iter("h1")]
    title = one_line(
        metas.get("og:title", "")
        or named
        or next((metas[key] for key in TITLES if key in metas), "")
        or raw
        or (heads[0] if heads else "")
    )
    headings = {one_line(head) for head in heads}
    return next(_without_site(title, page.site, headings), title)


def _without_site(title: str, site: str, headings: set[str]) -> Iterator[str]:
    """Shorter forms of a title that lacks its site's name: what stands as a heading, what is left without the name."""
    pieces = list(SEPARATORS.finditer(title))
    for piece in reversed(pieces):
        left, right = title[: piece.start()].strip(), title[piece.end() :].strip()
        if left in headings or (site and right.casefold() == site.casefold()):
            yield left
        if right in headings and len(pieces) == 1:
            yield right
    if pieces and not headings:
        left, right = title[: pieces[-1].start()].strip(), title[pieces[-1].end() :].strip()
        if len(left) > 2 * len(right) and len(left) > 8:  # noqa: PLR2004  a short tail is a site's name
            yield left


def _authors(page: Page, metas: dict[str, str], linked: list[dict[str, Any]]) -> tuple[str, ...]:
    names: list[str] = []
    for data in linked:
        people = data.get("author")
        for person in people if isinstance(people, list) else [people]:
            name = person.get("name") if isinstance(person, dict) else person
            if isinstance(name, str):
                names.append(name)
    for key in AUTHORS:
        if not names and key in metas:
            names.extend(metas[key].split("\n"))
    if not names:
        names.extend(
            n.text_content() for n in page.tree.xpath("//a[@rel='author']") if n.text_content().strip()
        )
    kept = [AUTHOR_JUNK.sub("", one_line(name, 120)) for name in names]
    return tuple(
        dict.fromkeys(
            name for name in kept if name and not name.startswith(("http", "//")) and name != "作者"
        )
    )[:50]


def _dates(
    page: Page, metas: dict[str, str], linked: list[dict[str, Any]], zone: str
) -> tuple[tuple[ReadDate, str] | None, tuple[ReadDate, str] | None]:
    published = [("json-ld:datePublished", d.get("datePublished")) for d in linked]
    published += [(f"meta:{name}", metas.get(name)) for name in PUBLISHED]
    updated = [("json-ld:dateModified", d.get("dateModified")) for d in linked]
    updated += [(f"meta:{name}", metas.get(name)) for name in MODIFIED]
    for node in page.tree.xpath(
        "//time[@pubdate or @itemprop='datePublished' or contains(@class,'published') or contains(@class,'date')]"
    ):
        published.append(("time", node.get("datetime") or node.text_content()))
    times = page.tree.xpath("//article//time[@datetime]") or page.tree.xpath("//header//time[@datetime]")
    if len({node.get("datetime") for node in times}) == 1:
        published.append(("time", times[0].get("datetime")))
    published += _visible_dates(page.tree)
    first = _first_date(published, zone)
    for url in (page.url, page.canonical, page.other):
        if first is None and (day := date_in_path(urlsplit(url.removeprefix("url:")).path)):
            first = (day, "url")
    return first, _first_date(updated, zone)


def _visible_dates(tree: Any) -> list[tuple[str, Any]]:
    """Texts of elements that are named as dates and hold nothing else, such as ``2023 11/17 17:02:33``."""
    found: list[tuple[str, Any]] = []
    for node in tree.iter("span", "div", "p", "li"):
        name = node.get("class") or node.get("id") or ""
        if _DATE_NAME.search(name) and (text := node.text_content()) and len(text) < 200:  # noqa: PLR2004
            text = re.sub(r"\s*([/.:-])\s*", r"\1", " ".join(text.split()))
            found.append((f"class:{name.split()[0]}", re.sub(r"^(\d{4}) (\d{1,2})/", r"\1/\2/", text)))
    return found[:20]


def _first_date(fields: list[tuple[str, Any]], zone: str) -> tuple[ReadDate, str] | None:
    for name, text in fields:
        if isinstance(text, (str, int, float)) and (date := read_date(text, zone)):
            return date, name
    return None


def _canonical(page: Page, metas: dict[str, str]) -> None:
    hrefs = [
        n.get("href", "")
        for n in page.tree.iter("link")
        if "canonical" in (n.get("rel") or "").lower().split()
    ]
    for href in [*hrefs, metas.get("og:url", "")]:
        url = clean_url(_join(page.base, href)) if href else None
        if url is None or urlsplit(url).path in {"", "/"}:
            continue
        if same_site(url, page.url):
            page.canonical = url
            return
        if (work := identify(url)) and not page.other:
            page.other = work.id
