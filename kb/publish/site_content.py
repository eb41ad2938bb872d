"""Everything one language of the site consists of, as bytes by path: pages, figures, feeds, JSON, search index."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb.draft import list_drafts
from kb.files import read_bytes
from kb.model import Item, Text, Topic
from kb.publish.api import api_files, claim_row, stale_causes
from kb.publish.entries import Pair, anchor_of, system_slug
from kb.publish.escape import one_line
from kb.publish.feed import Entry, atom, json_feed, llms_text, newest, verdict_entries
from kb.publish.inputs import load_records, page_files, waiting_names
from kb.publish.page import Records, newest_items, system_of
from kb.publish.pages import all_pages, shown_pairs
from kb.publish.site_pages import Listed, claims_page, gone_page, home_page, list_page, search_page
from kb.publish.stage import holds_html, to_site, without_blocks, without_markers
from kb.publish.words import pick, say
from kb.search import plain
from kb.store import MAX_PAGE_BYTES, Base

MENU = 60
"""Pages a menu lists; with more, only their list is linked."""
ENTRY_CHARS = 20_000
"""Characters of one page that can be searched."""
FIXED = {
    "index.md",
    "topics/index.md",
    "guides/index.md",
    "systems/index.md",
    "claims/index.md",
    "search/index.md",
}
"""Pages the site makes itself."""


@dataclass
class Site:
    """One language of the site."""

    language: str
    title: str
    pages: dict[str, bytes] = field(default_factory=dict)
    """Markdown by path below the site's root."""
    raw: list[str] = field(default_factory=list)
    """Pages that hold HTML of a person."""
    assets: dict[str, bytes] = field(default_factory=dict)
    """Copied as they are: figures, style, script."""
    beside: dict[str, bytes] = field(default_factory=dict)
    """Written after the pages: feeds, JSON, Markdown twins."""
    nav: list[Any] = field(default_factory=list)
    """mkdocs' menu."""

    def say(self, key: str) -> str:
        """A set phrase in the site's language."""
        return say(key, self.language)


def make_site(base: Base, language: str, root: str, today: dt.date) -> Site:
    """Gather one language of the site.

    Args:
        base: The knowledge base.
        language: The base's own language shows the pages people own; the other one is generated from the records.
        root: Address of the site with a final slash, or empty for relative links.
        today: Day by which product states expire.
    """
    records = load_records(base)
    pairs = shown_pairs(records)
    site = Site(language, one_line(base.settings.title) or "kb")
    titles = _staged_pages(base, records, site)
    known = {item.id: item for item in newest_items(records.items, records.items)}
    _made_pages(site, records, pairs, titles, known, today)
    _assets(base, site, records)
    site.beside = _doors(base, site, records, pairs, titles, known, root, today)
    site.nav = _nav(site, records, titles)
    return site


def _staged_pages(base: Base, records: Records, site: Site) -> dict[str, Text]:
    """Stage every page; path → title."""
    titles: dict[str, Text] = {}
    if site.language == base.settings.language:
        held = waiting_names(base)
        for path in page_files(base):
            name = path.relative_to(base.root / "published").as_posix()
            data = read_bytes(path, limit=MAX_PAGE_BYTES)
            _stage(site, name, data, held)
            titles[name] = Text(zh=_heading(data) or name)
        for name in _withdrawn(base):
            site.pages[name] = gone_page(name, site.language).encode()
    else:
        for page in all_pages(records, site.language):
            text = page.render(page.blocks) + f"\n---\n\n*{say('machine-note', site.language)}*\n".encode()
            _stage(site, f"{page.path}/index.md", text, frozenset())
            titles[f"{page.path}/index.md"] = page.title
    return titles


def _stage(site: Site, name: str, data: bytes, held: frozenset[str]) -> None:
    text = without_markers(data, held, site.language)
    if holds_html(text):
        site.raw.append(name)
    site.pages[name] = to_site(text, name.rpartition("/")[0]).encode()


def _heading(data: bytes) -> str:
    found = re.search(r"^#[ \t]+(.+?)[ \t#]*$", data.decode("utf-8", "replace"), re.MULTILINE)
    return one_line(found[1]) if found else ""


def _withdrawn(base: Base) -> list[str]:
    """Addresses of accepted drafts that were published once and are not any more."""
    standing = {draft.id for draft in list_drafts(base) if draft.stage == "published"}
    gone = {
        entry.target.partition("#")[0]
        for entry in base.log()
        if entry.act == "move" and entry.from_ == "published"
    }
    return sorted(f"drafts/{name.partition('/')[2]}.md" for name in gone - standing)


def _shown_on(records: Records, topic: Topic) -> list[Pair]:
    return [records.pairs[claim.id] for claim in records.claims_of(topic) if claim.id in records.pairs]


def _listed(records: Records, pairs: list[Pair], titles: dict[str, Text]) -> dict[str, list[Listed]]:
    """Topics, guides and systems that have a page, with their verdicts."""

    def one(path: str, title: Text, mine: list[Pair]) -> list[Listed]:
        counts = Counter(verdict.verdict for _, verdict in mine)
        return [Listed(path, title, counts)] if f"{path}/index.md" in titles else []

    by_system: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_system.setdefault(system_of(pair[0]), []).append(pair)
    by_topic = {path: _shown_on(records, topic) for path, topic in records.topics.items()}
    return {
        "topics": [
            x for path, topic in records.topics.items() for x in one(path, topic.title, by_topic[path])
        ],
        "guides": [
            x for path, guide in records.guides.items() for x in one(f"guides/{path}", guide.title, [])
        ],
        "systems": [
            x
            for name, mine in sorted(by_system.items())
            for x in one(f"systems/{system_slug(name)}", Text(en=name), mine)
        ],
    }


def _made_pages(
    site: Site,
    records: Records,
    pairs: list[Pair],
    titles: dict[str, Text],
    known: dict[str, Item],
    today: dt.date,
) -> None:
    listed = _listed(records, pairs, titles)
    language = site.language
    rows = [claim_row(claim, verdict, stale_causes(claim, known, today)) for claim, verdict in pairs]
    topics = {path: topic.title for path, topic in records.topics.items()}
    made = {
        "index.md": home_page(site.title, pairs, listed["topics"][:MENU], listed["guides"][:MENU], language),
        "claims/index.md": claims_page(rows, pairs, topics, language),
        "search/index.md": search_page(language),
    }
    for key, found in listed.items():
        made[f"{key}/index.md"] = list_page(say(key, language), found, language)
    for path in ("claims/index.md", "search/index.md"):  # they need the width
        made[path] = f"---\nhide:\n  - toc\n  - navigation\n---\n{made[path]}"
    site.pages |= {path: text.encode() for path, text in made.items()}


def _assets(base: Base, site: Site, records: Records) -> None:
    for figure in records.figures:
        for suffix in ("svg", "json"):
            path = base.figure_path(figure.repro, figure.name, suffix)
            if path.is_file():
                site.assets[f"figures/{figure.repro}/{figure.name}.{suffix}"] = read_bytes(
                    path, limit=MAX_PAGE_BYTES
                )
    for name in ("kb.css", "kb.js"):
        site.assets[f"assets/{name}"] = (Path(__file__).parent / "assets" / name).read_bytes()


def _doors(
    base: Base, site: Site, records: Records, pairs: list[Pair], titles: dict[str, Text], known: dict[str, Item],
    root: str, today: dt.date,
) -> dict[str, bytes]:  # fmt: skip
    """Feeds, JSON, ``llms.txt``, Markdown twins, samples and the search index."""
    entries = newest([*verdict_entries(pairs, site.language), *_draft_entries(base)])
    listed = sorted(
        (path.removesuffix("/index.md"), title)
        for path, title in titles.items()
        if path.endswith("/index.md")
    )
    shown = [
        (topic, [claim.id for claim, _ in _shown_on(records, topic)]) for topic in records.topics.values()
    ]
    files = {
        "feed.xml": atom(site.title, entries, root),
        "feed.json": json_feed(site.title, entries, root),
        "llms.txt": llms_text(site.title, listed, root),
        "search/index.json": _search_index(base, site, pairs, titles),
        **api_files(pairs, shown, known, today),
        **{path: data for path, data in site.pages.items() if path not in FIXED},
    }
    for repro in sorted({verdict.repro for _, verdict in pairs if re.fullmatch(r"[\w-]+", verdict.repro)}):
        taken = [measurement.to_json() for measurement in base.measurements(repro)]
        files[f"api/measurements/{repro}.json"] = (json.dumps(taken, ensure_ascii=False) + "\n").encode()
    return files


def _draft_entries(base: Base) -> list[Entry]:
    """Accepted drafts; publishing one again is another entry, so an id is never used twice."""
    times = Counter(e.target for e in base.log() if e.act == "move" and e.to == "published")
    found = []
    for draft in list_drafts(base):
        if draft.stage == "published":
            title = _heading(read_bytes(draft.path, limit=MAX_PAGE_BYTES)) or draft.id
            day = re.search(r"\d{4}-\d{2}-\d{2}", draft.id)
            name = f"tag:kb,2026:draft/{draft.id}/{times[draft.id]}"
            url = f"drafts/{draft.path.stem}/"
            found.append(Entry(name, title, url, draft.id, day[0] if day else "1970-01-01", ("draft",)))
    return found


def _search_index(base: Base, site: Site, pairs: list[Pair], titles: dict[str, Text]) -> bytes:
    """What the site's own search looks through: people's text of every page, and every claim."""
    entries: list[dict[str, str]] = []
    for path, title in titles.items():
        source = base.root / "published" / path
        own = site.language == base.settings.language
        text = without_blocks(read_bytes(source, limit=MAX_PAGE_BYTES)) if own else ""
        is_draft = path.startswith("drafts/")
        url = path.removesuffix(".md") + "/" if is_draft else path.removesuffix("index.md")
        body = one_line(plain(text), ENTRY_CHARS)
        entries.append({"k": "page", "t": pick(title, site.language), "u": url, "x": body})
    for claim, verdict in pairs:
        body = " ".join([pick(claim.statement, "en"), claim.item, claim.quote, *claim.conditions.values()])
        url = f"systems/{system_slug(system_of(claim))}/#{anchor_of(claim.id)}"
        name = f"{claim.id} {pick(claim.statement, site.language)}"
        entries.append(
            {"k": "claim", "t": one_line(name), "u": url, "x": one_line(f"{body} {verdict.verdict}")}
        )
    return (json.dumps(entries, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _nav(site: Site, records: Records, titles: dict[str, Text]) -> list[Any]:
    def section(key: str, paths: list[str]) -> dict[str, Any]:
        shown = [f"{path}/index.md" for path in paths if f"{path}/index.md" in titles]
        return {site.say(key): [f"{key}/index.md", *(shown if len(shown) <= MENU else [])]}

    nav: list[Any] = [{site.say("home"): "index.md"}, section("topics", list(records.topics))]
    if records.guides:
        nav.append(section("guides", [f"guides/{path}" for path in records.guides]))
    nav.append({site.say("systems"): "systems/index.md"})
    claims = ["claims/index.md"] + (["ledger/index.md"] if "ledger/index.md" in titles else [])
    nav.append({site.say("claims"): claims})
    if drafts := sorted(path for path in titles if path.startswith("drafts/"))[:MENU]:
        nav.append({site.say("drafts"): drafts})
    nav.append({site.say("search"): "search/index.md"})
    return nav
