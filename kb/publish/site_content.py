"""Everything one language of the site consists of, as bytes by path: pages, figures, and the doors beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kb.draft import list_drafts
from kb.files import read_bytes
from kb.model import Text
from kb.publish.entries import Pair, system_slug
from kb.publish.escape import one_line
from kb.publish.inputs import page_files, waiting_names
from kb.publish.page import Records, system_of
from kb.publish.pages import all_pages
from kb.publish.site_doors import doors
from kb.publish.site_model import Shown, Site
from kb.publish.site_pages import Listed, claims_page, gone_page, home_page, list_page, search_page
from kb.publish.stage import heading_of, holds_html, read_page, to_site, without_own_markers
from kb.publish.words import say
from kb.store import MAX_PAGE_BYTES, Base

MENU = 60
"""Pages a menu lists; with more, only their list is linked."""


def make_site(base: Base, shown: Shown, language: str, root: str) -> Site:
    """Gather one language of the site.

    Args:
        base: The knowledge base.
        shown: From `gather`.
        language: The base's own language shows the pages people own; the other one is generated from the records.
        root: Address of the site with a final slash, or empty for relative links.
    """
    site = Site(language, one_line(base.settings.title) or "kb", is_own=language == base.settings.language)
    if site.is_own:
        _read_pages(base, site)
    else:
        _generate_pages(shown.records, site)
    twins = dict(site.pages)
    _made_pages(site, shown)
    _assets(base, site, shown.records)
    site.beside = {**doors(base, site, shown, root), **twins}
    site.nav = _nav(site, shown.records)
    return site


def _read_pages(base: Base, site: Site) -> None:
    """Stage the pages of the base, and a notice where an accepted draft stood that was withdrawn."""
    held = waiting_names(base)
    for path in page_files(base):
        name = path.relative_to(base.root / "published").as_posix()
        page = read_page(read_bytes(path, limit=MAX_PAGE_BYTES), held, site.language)
        site.people[name] = page.people
        site.titles[name] = Text(zh=heading_of(page.text) or name)
        _stage(site, name, page.text)
    for name in _withdrawn(base, site.pages):
        site.pages[name] = gone_page(name, site.language).encode()


def _generate_pages(records: Records, site: Site) -> None:
    note = f"\n---\n\n*{site.say('machine-note')}*\n"
    for page in all_pages(records, site.language):
        name = f"{page.path}/index.md"
        site.titles[name] = page.title
        _stage(site, name, without_own_markers(page.render(page.blocks)) + note)


def _stage(site: Site, name: str, text: str) -> None:
    if holds_html(text):
        site.raw.append(name)
    site.pages[name] = to_site(text, name.rpartition("/")[0], site.above).encode()


def _withdrawn(base: Base, standing: Mapping[str, bytes]) -> list[str]:
    """Addresses of accepted drafts that were published once and are not any more; none that another page has."""
    here = {draft.id for draft in list_drafts(base) if draft.stage == "published"}
    gone = {
        entry.target.replace("#", "-")
        for entry in base.log()
        if entry.act == "move" and entry.from_ == "published"
    }
    places = (f"drafts/{name}.md" for draft in gone - here for name in (draft.partition("/")[2], draft))
    return sorted(place for place in places if place not in standing)


def _listed(shown: Shown, titles: Mapping[str, Text]) -> dict[str, list[Listed]]:
    """Topics, guides and systems that have a page, with their verdicts."""
    records = shown.records
    by_system: dict[str, list[Pair]] = {}
    for pair in shown.pairs:
        by_system.setdefault(system_of(pair[0]), []).append(pair)
    found: dict[str, list[tuple[str, Text, list[Pair]]]] = {
        "topics": [(path, topic.title, shown.pairs_of(topic)) for path, topic in records.topics.items()],
        "guides": [(f"guides/{path}", guide.title, []) for path, guide in records.guides.items()],
        "systems": [
            (f"systems/{system_slug(name)}", Text(en=name), mine) for name, mine in sorted(by_system.items())
        ],
    }
    return {
        key: [
            Listed(path, title, Counter(verdict.verdict for _, verdict in mine))
            for path, title, mine in pages
            if f"{path}/index.md" in titles
        ]
        for key, pages in found.items()
    }


def _made_pages(site: Site, shown: Shown) -> None:
    listed = _listed(shown, site.titles)
    language = site.language
    topics = {path: topic.title for path, topic in shown.records.topics.items()}
    made = {
        "index.md": home_page(site, shown.pairs, listed["topics"][:MENU], listed["guides"][:MENU]),
        "claims/index.md": claims_page(site, shown.pairs, shown.stale, topics),
        "search/index.md": search_page(language),
    }
    for key, found in listed.items():
        made[f"{key}/index.md"] = list_page(say(key, language), found, language)
    hidden = {
        "claims/index.md": ("toc", "navigation"),
        "search/index.md": ("toc", "navigation"),
        "index.md": ("navigation",),
    }
    for path, columns in hidden.items():  # they need the width, or have nothing to show there
        made[path] = "---\nhide:\n" + "".join(f"  - {name}\n" for name in columns) + f"---\n{made[path]}"
    site.pages |= {path: text.encode() for path, text in made.items()}


def _assets(base: Base, site: Site, records: Records) -> None:
    for figure in records.figures:
        for suffix in ("svg", "json"):
            path = base.figure_path(figure.repro, figure.name, suffix)
            if path.is_file():
                name = f"figures/{figure.repro}/{figure.name}.{suffix}"
                site.assets[name] = read_bytes(path, limit=MAX_PAGE_BYTES)
    for name in ("kb.css", "kb.js"):
        site.assets[f"assets/{name}"] = (Path(__file__).parent / "assets" / name).read_bytes()


def _nav(site: Site, records: Records) -> list[Any]:
    titles = site.titles

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
