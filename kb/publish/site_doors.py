"""The doors of the site beside its pages: feeds, ``llms.txt``, static JSON, samples, the index its own search reads."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

from kb.draft import list_drafts
from kb.files import read_bytes
from kb.publish.api import api_files
from kb.publish.entries import Pair, anchor_of, system_slug
from kb.publish.escape import one_line
from kb.publish.feed import Entry, atom, json_feed, llms_text, newest, verdict_entries
from kb.publish.page import system_of
from kb.publish.site_model import Shown, Site
from kb.publish.stage import heading_of
from kb.publish.words import pick
from kb.search import plain
from kb.store import MAX_PAGE_BYTES, Base

ENTRY_CHARS = 20_000
"""Characters of one page that can be searched."""


def doors(base: Base, site: Site, shown: Shown, root: str) -> dict[str, bytes]:
    """Path → bytes; what knows no language is written once, with the base's own.

    Args:
        base: The knowledge base.
        site: With its pages.
        shown: Records of the site.
        root: Address of the site with a final slash, or empty for relative links.
    """
    here = root and root + site.folder
    entries = newest([*verdict_entries(shown.pairs, site.language), *(_briefs(base) if site.is_own else ())])
    listed = sorted(
        (path.removesuffix("/index.md"), title)
        for path, title in site.titles.items()
        if path.endswith("/index.md")
    )
    files = {
        "feed.xml": atom(site.title, entries, here),
        "feed.json": json_feed(site.title, entries, here),
        "llms.txt": llms_text(site.title, listed, here, site.above),
        "search/index.json": _search_index(site, shown.pairs),
    }
    if site.is_own:
        files |= api_files(shown) | _samples(base, shown.pairs)
    return files


def _samples(base: Base, pairs: Sequence[Pair]) -> dict[str, bytes]:
    """What every number was computed from."""
    files: dict[str, bytes] = {}
    for repro in sorted({verdict.repro for _, verdict in pairs if re.fullmatch(r"[\w-]+", verdict.repro)}):
        taken = [measurement.to_json() for measurement in base.measurements(repro)]
        files[f"api/measurements/{repro}.json"] = (json.dumps(taken, ensure_ascii=False) + "\n").encode()
    return files


def _briefs(base: Base) -> list[Entry]:
    """Accepted drafts; publishing one again is another entry, so an id is never used twice."""
    times = Counter(e.target for e in base.log() if e.act == "move" and e.to == "published")
    found = []
    for draft in list_drafts(base):
        if draft.stage == "published":
            text = read_bytes(draft.path, limit=MAX_PAGE_BYTES).decode("utf-8", "replace")
            day = re.search(r"\d{4}-\d{2}-\d{2}", draft.id)
            name = f"tag:kb,2026:draft/{draft.id}/{times[draft.id]}"
            place = draft.path.relative_to(base.root / "published").with_suffix("").as_posix()
            at = day[0] if day else "1970-01-01"
            found.append(Entry(name, heading_of(text) or draft.id, f"{place}/", draft.id, at, ("draft",)))
    return found


def _search_index(site: Site, pairs: Sequence[Pair]) -> bytes:
    """What the site's own search looks through: people's text of every page, and every claim."""
    entries: list[dict[str, str]] = []
    for path, title in site.titles.items():
        url = path.removesuffix("index.md") if path.endswith("index.md") else path.removesuffix(".md") + "/"
        body = one_line(plain(site.people.get(path, "")), ENTRY_CHARS)
        entries.append({"k": "page", "t": pick(title, site.language), "u": url, "x": body})
    for claim, verdict in pairs:
        body = " ".join([pick(claim.statement, "en"), claim.item, claim.quote, *claim.conditions.values()])
        url = f"systems/{system_slug(system_of(claim))}/#{anchor_of(claim.id)}"
        name = f"{claim.id} {pick(claim.statement, site.language)}"
        entries.append(
            {"k": "claim", "t": one_line(name), "u": url, "x": one_line(f"{body} {verdict.verdict}")}
        )
    return (json.dumps(entries, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
