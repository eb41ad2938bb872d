"""Addresses: one spelling for each page, and where addresses stand in prose.

A page's key drops what does not choose the page: scheme, ``www.``, default port, fragment, credentials, tracking
parameters, AMP, the trailing slash. The address that is fetched keeps scheme, host and slash as given. Names of
tracking parameters are those that miniflux, Firefox and common mailers strip; parameters with a secret are dropped too,
because addresses end up in git.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urlsplit

TRACKING_PREFIXES = (
    "utm_",
    "mc_",
    "pk_",
    "piwik_",
    "matomo_",
    "mtm_",
    "ga_",
    "hsa_",
    "__hs",
    "_hs",
    "wt.",
    "at_",
)
TRACKING = frozenset(
    "fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid twclid ttclid igshid igsh li_fat_id mkt_tok vero_id vero_conv "
    "oly_enc_id oly_anon_id rb_clickid s_cid s_kwcid cmpid ncid trk trkcampaign _ga _gl spm scm share_source share_from "
    "share_medium share_plat share_session_id share_tag share_times sharefrom wickedid ml_subscriber "
    "ml_subscriber_hash ref ref_src ref_url referrer hsctatracking srsltid epik _branch_match_id".split()
)
SECRETS = frozenset(
    "token access_token auth_token authtoken api_key apikey sig signature password passwd pwd secret "
    "sessionid jsessionid phpsessid x-amz-signature x-amz-credential x-amz-security-token".split()
)
LONG_SECRETS = frozenset({"key", "session", "sid"})
"""Secrets where the value is long; short values choose a page."""
SECRET_CHARS = 16
KEEPS_REF = frozenset({"github.com", "gitlab.com", "codeberg.org"})
"""Hosts where ``ref`` names a branch."""
AMP = frozenset({"amp", "amp_js_v", "usqp", "outputtype"})
DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HOST = re.compile(
    r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.?"
)
_BARE = re.compile(r"(?:[\w-]+\.)+[^\W\d_]{2,}(?::\d+)?(?:[/?#].*)?", re.DOTALL)
_SAFE_PATH = "/:@!$&'()*+,;=~-._"
_UNRESERVED = re.compile(r"%(?:2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
_IN_PROSE = re.compile(r"https?://[^\s<>\"`{}|\\^，。；、：！？（）【】「」《》“”]+", re.IGNORECASE)
_HALF = re.compile("[\ud800-\udfff]")
"""Half a character, as JSON can spell it; no address has one."""
MAX_PASSES = 6
"""Wrappers nested deeper than this are left as they are."""


def clean_url(text: str) -> str | None:
    """Return an address without tracking, secrets, AMP, wrappers, fragment and default port, or None.

    A missing scheme is read as https. The result is stable: cleaning it again changes nothing.

    Returns:
        None for anything that is not one http or https address with a host.
    """
    text = "".join(c for c in text.strip() if c >= " " and c != "\x7f")
    if _HALF.search(text):
        return None
    if not _SCHEME.match(text) or re.match(r"[\w.-]+:\d+(?:[/?#]|$)", text):
        if not _BARE.fullmatch(text):
            return None
        text = f"https://{text}"
    for _ in range(MAX_PASSES):
        cleaned = _clean_once(text)
        if cleaned is None or cleaned == text:
            return cleaned
        text = cleaned
    return text


def _clean_once(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    host = clean_host(parts.hostname or "")
    if scheme not in DEFAULT_PORTS or host is None:
        return None
    query = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
    if inner := _unwrapped(host, parts.path, query):
        return inner
    kept = [(k, v) for k, v in query if not _is_noise(host, k, v)]
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != DEFAULT_PORTS[scheme]:
        place += f":{port}"
    path = _clean_path(parts.path)
    tail = f"?{urlencode(kept, errors='surrogateescape')}" if kept else ""
    return f"{scheme}://{place}{path}{tail}"


def clean_host(host: str) -> str | None:
    """Return a host in lower case ASCII (punycode), an address in its short form, or None if it is no host."""
    host = unicodedata.normalize("NFKC", host).strip().rstrip(".").lower()
    if ":" in host or host[-1:].isdigit():
        try:
            return str(ipaddress.ip_address(host))
        except ValueError:
            pass
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return None
    return host if _HOST.fullmatch(host) and len(host) <= 253 else None  # noqa: PLR2004  RFC 1035


def _clean_path(path: str) -> str:
    path = quote(unquote_keep(path), safe=_SAFE_PATH + "%")
    if "/." in path:
        slash = "/" if path.endswith(("/", "/.", "/..")) else ""
        path = posixpath.normpath(path).rstrip("/") + slash
        path = "/" + path.lstrip("/")
    path = re.sub(r"(?:/amp/?|\.amp)$", "", path, flags=re.IGNORECASE) if path.lower() != "/amp" else path
    path = re.sub(r"\.amp\.html$", ".html", path, flags=re.IGNORECASE)
    return path or "/"


def unquote_keep(path: str) -> str:
    """Decode escapes of unreserved characters, write the others in upper case, escape a lone percent sign."""
    path = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", path)
    path = _UNRESERVED.sub(lambda m: unquote_to_bytes(m.group()).decode("ascii"), path)
    return re.sub(r"%[0-9a-fA-F]{2}", lambda m: m.group().upper(), path)


def _is_noise(host: str, name: str, value: str) -> bool:
    low = name.lower()
    if low == "ref" and host.removeprefix("www.") in KEEPS_REF:
        return False
    if low == "source":
        return value.lower().startswith(("rss", "email", "twitter", "weibo", "wechat"))
    if low in AMP:
        return low == "amp" or low.startswith("amp_") or low == "usqp" or value.lower() == "amp"
    return low in TRACKING or _is_secret(name, value) or low.startswith(TRACKING_PREFIXES)


def _unwrapped(host: str, path: str, query: list[tuple[str, str]]) -> str | None:
    """The address inside a known wrapper: AMP caches, search and feed redirects."""
    google = re.fullmatch(r"(?:www\.)?google\.[a-z.]+", host)
    cache = r"/amp/(s/)?(.+)" if google else r"/[a-z]/(s/)?(.+)"
    is_cache = google or host == "cdn.ampproject.org" or host.endswith(".cdn.ampproject.org")
    if is_cache and (found := re.match(cache, path)):
        return f"http{'s' if found.group(1) else ''}://{found.group(2)}"
    if google and path == "/url":
        inner = next((v for k, v in query if k in {"url", "q"}), "")
        return inner if re.match(r"https?://", inner) else None
    return None


def url_parts(url: str) -> tuple[str, str]:
    """Host (without port) and path of a cleaned address."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.path


def url_key(url: str) -> str:
    """Return ``host/path?query`` of a cleaned address: no scheme, no ``www.``, no trailing slash, parameters sorted."""
    parts = urlsplit(url)
    place = parts.netloc
    while place.startswith("www.") and "." in place[4:]:
        place = place[4:]
    query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{place}{parts.path.rstrip('/')}" + (f"?{query}" if query else "")


def find_urls(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, address) of the http addresses in prose; punctuation that ends a sentence is not part of it."""
    for found in _IN_PROSE.finditer(text):
        url = found.group().rstrip(".,;:!?'*_~")
        while url.endswith((")", "]")) and url.count(url[-1]) > url.count({")": "(", "]": "["}[url[-1]]):
            url = url[:-1].rstrip(".,;:!?'*_~")
        yield found.start(), found.start() + len(url), url


def same_site(one: str, other: str) -> bool:
    """Whether two addresses belong to one site: equal hosts, or one ends in the other.

    No public-suffix list is consulted: sister hosts count as different sites, which errs towards two items.
    """
    a, b = (url_parts(url)[0].removeprefix("www.") for url in (one, other))
    return bool(a and b) and (a == b or a.endswith(f".{b}") or b.endswith(f".{a}"))


def without_secrets(url: str) -> str:
    """An address for messages: credentials and parameters with secrets are left out, nothing else changes."""
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
    except ValueError:
        return "".join(c for c in url if c.isprintable())[:200]
    place = parts.netloc.rpartition("@")[2]
    if any(_is_secret(name, value) for name, value in pairs):
        kept = [(name, "…" if _is_secret(name, value) else value) for name, value in pairs]
        parts = parts._replace(query="&".join(f"{name}={value}" for name, value in kept))
    return parts._replace(netloc=place).geturl()


def _is_secret(name: str, value: str) -> bool:
    low = name.lower()
    return low in SECRETS or (low in LONG_SECRETS and len(value) >= SECRET_CHARS)
