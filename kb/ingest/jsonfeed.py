"""JSON Feed 1.0 and 1.1 (https://www.jsonfeed.org/version/1.1/), which feedparser 6 does not read."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urljoin

from kb.http import NoAnswer
from kb.ingest.feedxml import Document, RawEntry, line_of
from kb.ingest.text import one_line

VERSIONS = re.compile(r"(?:https?://(?:www\.)?jsonfeed\.org/version/)?1(?:\.[01])?/?")

_SURROGATE = re.compile("[\ud800-\udfff]")
"""JSON can spell half a character, which no file can hold."""


def read_json_feed(body: bytes, url: str, most: int) -> Document:
    """Read a JSON Feed; members of the wrong type are left out, relative links resolved.

    Args:
        body: The answer.
        url: Where it was found.
        most: Items that are taken.

    Raises:
        NoAnswer: It is no JSON, another kind of JSON, or a version that is not known.
    """
    try:
        value = json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        kind = "truncated" if b'"items"' in body and not body.rstrip().endswith(b"}") else "not-a-feed"
        raise NoAnswer(kind, url, f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise NoAnswer("not-a-feed", url, "JSON, but no feed")
    if "rss" in value:
        raise NoAnswer(
            "unsupported", url, "RSS-in-JSON, unsupported; follow the publisher's RSS or Atom feed"
        )
    version = value.get("version")
    if not isinstance(version, str) or not VERSIONS.fullmatch(version.strip()):
        kind = "unsupported" if isinstance(version, str) and "jsonfeed.org" in version else "not-a-feed"
        raise NoAnswer(
            kind, url, f"version {one_line(str(version), 60)!r} is no JSON Feed version that is known"
        )
    items = value.get("items")
    document = Document(
        title=one_line(_text(value, "title")),
        link=_link(value, "home_page_url", url),
        version=f"json{version[-3:]}",
    )
    listed = items if isinstance(items, list) else []
    document.left_out = max(0, len(listed) - most)
    for item in listed[:most]:
        if isinstance(item, dict):
            document.entries.append(_entry(item, url))
        else:
            document.warnings.append(f"an item that is a {type(item).__name__} was left out")
    if not isinstance(items, list):
        document.warnings.append("it has no list of items")
    return document


def _entry(item: dict[str, Any], url: str) -> RawEntry:
    own, external = _link(item, "url", url), _link(item, "external_url", url)
    guid = item.get("id")
    markup = (
        _text(item, "content_html")
        or _escaped(_text(item, "content_text"))
        or _escaped(_text(item, "summary"))
    )
    return RawEntry(
        guid=one_line(str(guid), 1000)
        if isinstance(guid, (str, int, float)) and not isinstance(guid, bool)
        else "",
        link=own or external,
        related=external if own else "",
        title=_text(item, "title"),
        authors=_authors(item),
        published=tuple((name, _text(item, name)) for name in ("date_published",) if _text(item, name)),
        updated=tuple((name, _text(item, name)) for name in ("date_modified",) if _text(item, name)),
        markup=markup,
        text=line_of(markup),
    )


def _authors(item: dict[str, Any]) -> tuple[str, ...]:
    listed = item.get("authors")
    people = listed if isinstance(listed, list) else [item.get("author")]
    names = [one_line(_text(person, "name"), 120) for person in people if isinstance(person, dict)]
    return tuple(dict.fromkeys(name for name in names if name))


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return _SURROGATE.sub("\ufffd", found) if isinstance(found, str) else ""


def _link(value: dict[str, Any], key: str, base: str) -> str:
    found = _text(value, key).strip()
    try:
        return urljoin(base, found) if found else ""
    except ValueError:
        return ""


def _escaped(text: str) -> str:
    import html

    return html.escape(text, quote=False)
