"""All pages kb writes: topics, systems, guides and the ledger, each as its blocks and the page around them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from kb.errors import BadConfig
from kb.files import sha256
from kb.model import Figure, Guide, Item, Record, Text, Topic
from kb.publish.blocks import write_block
from kb.publish.entries import Pair, other_language
from kb.publish.escape import Safe
from kb.publish.guides import check_guide, chosen_claims, guide_page_path, render_guide
from kb.publish.page import Records, newest_items, ordered, system_of, topic_page
from kb.publish.render import fill, render_topic
from kb.publish.systems import LEDGER, render_ledger, render_system, system_page_path
from kb.publish.words import PHRASES, pick, say

RESERVED = frozenset({"systems", "guides", LEDGER, "drafts"})
"""First folders below ``published/`` that are no topics."""


@dataclass(frozen=True)
class Page:
    """One page kb writes; its text is made when it is asked for."""

    path: str
    """Below ``published/``: ``inference/kvcache``."""
    title: Text
    make: Callable[[], dict[str, bytes]]
    """Makes the blocks: id → text, in the order of a new page."""
    key: str
    """Digest of everything ``make`` looks at."""
    render: Callable[[dict[str, bytes]], bytes]
    """Makes the whole page around its blocks; used once, when there is none."""
    figures: tuple[Figure, ...] = ()
    """Pictures it shows."""

    @cached_property
    def blocks(self) -> dict[str, bytes]:
        """Block id → text."""
        return self.make()


def _key(*parts: Any) -> str:
    """Digest of records, texts and numbers."""
    lines = [part.model_dump_json() if isinstance(part, Record) else repr(part) for part in parts]
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape"))


def _pairs_key(pairs: Iterable[Pair]) -> list[str]:
    return [record.model_dump_json() for pair in pairs for record in pair]


def all_pages(records: Records, language: str) -> list[Page]:
    """Every page of a base, topics first.

    Raises:
        BadConfig: A topic lies where other pages do, or two sections of a guide have the same slug.
    """
    pairs = shown_pairs(records)
    newest = {item.id: item for item in newest_items(records.items, records.items)}
    pages = [_topic(topic, records, language) for topic in records.topics.values()]
    pages += [_guide(guide, pairs, newest, language) for guide in records.guides.values()]
    if pairs:
        pages += _systems(records, pairs, language)
        pages.append(_ledger(pairs, language))
    return pages


def shown_pairs(records: Records) -> list[Pair]:
    """Every claim that may be shown, with its verdict; judged claims first."""
    return ordered(records.pairs.values())


def _around(title: Text, intro: Text, parts: list[dict[str, object]], language: str) -> bytes:
    """A new page; from now on it belongs to people."""
    text = fill(
        "page.md.j2",
        language,
        title=pick(title, language),
        other_title=other_language(title, language),
        intro=_paragraphs(pick(intro, language)),
        other_intro=other_language(intro, language),
        parts=parts,
    )
    return text.rstrip("\n").encode() + b"\n"


def _paragraphs(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _part(
    text: bytes, block: str, heading: str = "", intro: Text | None = None, language: str = ""
) -> dict[str, object]:
    intro = intro or Text()
    return {
        "heading": heading,
        "intro": _paragraphs(pick(intro, language)),
        "other_intro": other_language(intro, language),
        "text": Safe(write_block(block, text).decode().rstrip("\n")) if block else "",
    }


def _topic(topic: Topic, records: Records, language: str) -> Page:
    if topic.path.partition("/")[0] in RESERVED:
        raise BadConfig(
            f"topics/{topic.path}.toml: not used",
            cause=f"published/{topic.path.partition('/')[0]}/ holds other pages",
            remedy="give the topic another path",
        )
    page = topic_page(topic, records)
    headings = {"evidence": say("evidence", language), "reading": say("reading", language)}

    def render(blocks: dict[str, bytes]) -> bytes:
        parts = [_part(b"", "", pick(note.title, language), note.text, language) for note in topic.notes]
        parts += [
            _part(text, name, headings.get(name.rpartition("/")[2], "")) for name, text in blocks.items()
        ]
        title = topic.title if topic.title.zh or topic.title.en else Text(zh=topic.path)
        return _around(title, topic.intro, parts, language)

    return Page(
        topic.path,
        topic.title,
        lambda: render_topic(page, language),
        _key(page, language),
        render,
        page.figures,
    )


def _guide(guide: Guide, pairs: list[Pair], newest: dict[str, Item], language: str) -> Page:
    check_guide(guide)
    path = guide_page_path(guide)

    def render(blocks: dict[str, bytes]) -> bytes:
        parts = []
        for section in guide.sections:
            name = f"{path}/{section.slug}" if section.claims else ""
            heading = pick(section.title, language)
            parts.append(_part(blocks.get(name, b""), name, heading, section.intro, language))
        return _around(guide.title, guide.intro, parts, language)

    chosen = [pair for section in guide.sections for pair in chosen_claims(section, pairs)]
    dates = [newest[claim.item] for claim, _ in chosen if claim.item in newest]
    key = _key(guide, language, _pairs_key(chosen), *dates)
    return Page(path, guide.title, lambda: render_guide(guide, pairs, newest, language), key, render)


def _systems(records: Records, pairs: list[Pair], language: str) -> Iterable[Page]:
    claims: dict[str, list[Pair]] = {}
    for pair in pairs:
        claims.setdefault(system_of(pair[0]), []).append(pair)
    memory: dict[str, int] = {}
    for claim in records.claims.values():
        if claim.provenance == "memory":
            memory[system_of(claim)] = memory.get(system_of(claim), 0) + 1
    for system, mine in sorted(claims.items()):
        sources = newest_items(sorted({claim.item for claim, _ in mine}), records.items)
        num_memory = memory.get(system, 0)
        title = Text(zh=f"{system}：逐条论断", en=f"{system}: claim by claim")
        yield Page(
            system_page_path(system),
            title,
            partial(render_system, system, mine, sources, num_memory, language),
            _key(system, num_memory, language, _pairs_key(mine), *sources),
            _plain(title, PHRASES["system-intro"], language),
        )


def _ledger(pairs: list[Pair], language: str) -> Page:
    title = PHRASES["ledger"]
    counted = [(system_of(claim), verdict.verdict) for claim, verdict in pairs]
    return Page(
        LEDGER,
        title,
        lambda: render_ledger(pairs, language),
        _key(language, counted),
        _plain(title, PHRASES["ledger-intro"], language),
    )


def _plain(title: Text, intro: Text, language: str) -> Callable[[dict[str, bytes]], bytes]:
    def render(blocks: dict[str, bytes]) -> bytes:
        return _around(title, intro, [_part(text, name) for name, text in blocks.items()], language)

    return render
