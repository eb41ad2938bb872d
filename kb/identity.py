"""What a work is called: one id however its address is written, and its version.

``arxiv:2606.06302`` (never a version in the id), ``doi:10.…``, ``url:host/path``. arXiv ids follow
https://info.arxiv.org/help/arxiv_identifier.html: old style ``archive/YYMMNNN`` (a subject class such as ``math.GT`` is
not part of it), four digits until 1412, five from 1501. A DOI or an arXiv id is taken from text only where a prefix or
a host says what it is, because digits alone lie.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kb.urls import clean_url, find_urls, url_key, url_parts

ARCHIVES = (
    "acc-phys adap-org alg-geom ao-sci astro-ph atom-ph bayes-an chao-dyn chem-ph cmp-lg comp-gas cond-mat cs dg-ga "
    "econ eess funct-an gr-qc hep-ex hep-lat hep-ph hep-th math math-ph mtrl-th nlin nucl-ex nucl-th patt-sol physics "
    "plasm-ph q-alg q-bio q-fin quant-ph solv-int stat supr-con"
).split()
"""Archives of old-style arXiv ids, those that were merged into others included."""

_NEW = r"(?P<new>\d{2}(?:0[1-9]|1[0-2])\.\d{4,5})"
_OLD = rf"(?P<archive>{'|'.join(ARCHIVES)})(?:\.[A-Za-z-]{{2,}})?/(?P<number>\d{{2}}(?:0[1-9]|1[0-2])\d{{3}})"
_ID = rf"(?:{_NEW}|{_OLD})(?:v(?P<version>[1-9]\d{{0,3}}))?"
_WHOLE_ARXIV = re.compile(rf"(?:oai:)?(?:arxiv(?:\.org)?\s*:\s*|arxiv\s+)?{_ID}", re.IGNORECASE | re.ASCII)
_PROSE_ARXIV = re.compile(
    rf"(?<![\w/.])(?:oai:)?arxiv(?:\.org)?\s*[:：\s]\s*{_ID}(?![\w]|\.\d)", re.IGNORECASE | re.ASCII
)
_DOI = re.compile(r"10\.\d{4,9}(?:\.\d+)*/[^\s\"<>{}|\\^`]+", re.IGNORECASE | re.ASCII)
_WHOLE_DOI = re.compile(rf"doi\s*:\s*({_DOI.pattern})", re.IGNORECASE)
_PROSE_DOI = re.compile(rf"(?<!\w)doi\s*[:：]?\s*({_DOI.pattern})", re.IGNORECASE)
_ARXIV_DOI = re.compile(r"10\.48550/arxiv\.(.+)", re.IGNORECASE)
_ARXIV_SUFFIX = re.compile(r"\.(?:pdf|ps|ps\.gz|html?|txt)$", re.IGNORECASE)

ARXIV_PATHS: tuple[tuple[str, str], ...] = (
    (r"(?:[a-z]+\.)?arxiv\.org", r"/(?:abs|pdf|html|src|e-print|ps|format|tb|dvi|ftp|show-email)/"),
    (r"xxx\.lanl\.gov", r"/(?:abs|pdf|ps)/"),
    (r"ar5iv(?:\.labs\.arxiv)?\.org", r"/(?:abs/|html/|pdf/)?"),
    (r"alphaxiv\.org", r"/(?:[a-z]{2}/)?(?:abs|pdf|html|overview|audio|resources)/"),
    (r"(?:huggingface\.co|hf\.co)", r"/papers/"),
    (r"arxiv-vanity\.com", r"/papers/"),
    (r"scirate\.com", r"/arxiv/"),
    (r"papers\.cool", r"/arxiv/"),
)
"""(host, path before the id) of sites whose pages are about one arXiv paper."""
_SITES = [(re.compile(host), re.compile(path, re.IGNORECASE)) for host, path in ARXIV_PATHS]
DOI_HOSTS = frozenset({"doi.org", "dx.doi.org"})
MAX_TEXT = 4096
"""Longer strings are no address."""
NAME_BYTES = 60
"""Longest readable part of a file name."""


@dataclass(frozen=True)
class Work:
    """What an address or an id names."""

    id: str
    """``arxiv:…``, ``doi:…`` or ``url:…``; never a version."""
    version: str = ""
    """Digits of arXiv's ``vN``; empty where the text names none."""
    url: str = ""
    """Address that can be fetched."""


@lru_cache(maxsize=4096)
def identify(text: str) -> Work | None:
    """Return the work that an address or an id names, or None where it names none.

    Takes a URL with or without scheme, ``arXiv:2606.06302v2``, a bare ``2606.06302`` or ``hep-th/9901001``,
    ``doi:10.…``, ``oai:arXiv.org:…`` and every id this module returns. Idempotent: the work's own ``id`` and ``url``
    name the same work.
    """
    text = unicodedata.normalize("NFC", text.strip())
    if not text or len(text) > MAX_TEXT:
        return None
    if found := _WHOLE_ARXIV.fullmatch(text):
        return _arxiv(found)
    if found := _WHOLE_DOI.fullmatch(text):
        return doi_work(found.group(1))
    if text.startswith("url:"):
        return _page(f"https://{text.removeprefix('url:')}")
    return _page(text)


def arxiv_work(text: str) -> Work | None:
    """Return the paper that a bare or prefixed arXiv id names, or None if it is no id; URLs are for `identify`."""
    found = _WHOLE_ARXIV.fullmatch(text.strip())
    return _arxiv(found) if found else None


def doi_work(doi: str) -> Work:
    """Return the work of a DOI; arXiv's own DOIs (10.48550) name the paper. DOIs do not depend on case."""
    doi = _trim(doi).lower()
    if (own := _ARXIV_DOI.fullmatch(doi)) and (paper := _WHOLE_ARXIV.fullmatch(own.group(1))):
        return _arxiv(paper)
    return Work(f"doi:{doi}", url=f"https://doi.org/{_quote_doi(doi)}")


def find_works(text: str) -> list[Work]:
    """Return the works that prose names, in order, each (id, version) once.

    Only addresses, ``arXiv:…`` and ``doi:…`` count: bare numbers in prose are numbers.
    """
    hits: list[tuple[int, Work]] = []
    covered: list[tuple[int, int]] = []
    for start, end, url in find_urls(text):
        if work := identify(url):
            hits.append((start, work))
            covered.append((start, end))
    for start, end, work in _prose(text):
        if not any(a < end and start < b for a, b in covered):
            hits.append((start, work))
    return list(dict.fromkeys(work for _, work in sorted(hits, key=lambda hit: hit[0])))


def _prose(text: str) -> Iterator[tuple[int, int, Work]]:
    plain = text.lower()
    if "arxiv" not in plain and "doi" not in plain:
        return
    for found in _PROSE_ARXIV.finditer(text):
        yield found.start(), found.end(), _arxiv(found)
    for found in _PROSE_DOI.finditer(text):
        yield found.start(), found.end(), doi_work(found.group(1))


def _arxiv(found: re.Match[str]) -> Work:
    number = found["new"] or f"{found['archive'].lower()}/{found['number']}"
    version = found["version"] or ""
    return Work(f"arxiv:{number}", version, arxiv_url(number, version))


def arxiv_url(number: str, version: str = "") -> str:
    """Address of a paper's abstract page."""
    return f"https://arxiv.org/abs/{number}" + (f"v{version}" if version else "")


def _page(text: str) -> Work | None:
    url = clean_url(text)
    if url is None:
        return None
    host, path = url_parts(url)
    bare = host.removeprefix("www.")
    for site, before in _SITES:
        if site.fullmatch(bare) and (head := before.match(path)):
            rest = _ARXIV_SUFFIX.sub("", path[head.end() :].rstrip("/"))
            if paper := _WHOLE_ARXIV.fullmatch(rest):
                return _arxiv(paper)
    if found := _doi_in(bare, path):
        return doi_work(found)
    return Work(f"url:{url_key(url)}", url=url)


def _doi_in(host: str, path: str) -> str | None:
    from urllib.parse import unquote

    if host not in DOI_HOSTS and "/doi/" not in path.lower():
        return None
    plain = unquote(path)
    if host in DOI_HOSTS and (found := _DOI.fullmatch(plain.lstrip("/"))):
        return found.group()
    # publishers' own pages: dl.acm.org/doi/abs/10.1145/…
    if found := re.search(rf"/doi/(?:[a-z]+/)?({_DOI.pattern})$", plain, re.IGNORECASE):
        return found.group(1)
    return None


def _trim(doi: str) -> str:
    doi = doi.rstrip(".,;:'\"，。；、）】」/")
    while doi.endswith((")", "]")) and doi.count("(") < doi.count(")") + doi.count("]"):
        doi = doi[:-1].rstrip(".,;:/")
    return doi


def _quote_doi(doi: str) -> str:
    from urllib.parse import quote

    return quote(doi, safe="/():;.-_~!*'@,+$&=")


def file_name(work: str, title: str = "") -> str:
    """Name for a file about a work: ASCII, lower case, at most 77 bytes, no path, the same every time.

    Args:
        work: Its id; eight digits of its digest keep two works apart whatever their titles are.
        title: Readable part; the id itself where the title has no ASCII letters.
    """
    tail = hashlib.sha256(work.encode()).hexdigest()[:8]
    for text in (title, work):
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:NAME_BYTES].rstrip("-")
        if slug:
            return f"{slug}-{tail}"
    return f"item-{tail}"
