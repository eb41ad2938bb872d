"""The records a draft holds: its front matter, one item and one decision per entry. Nothing that it does not say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kb.curated import Curated, Entry
from kb.curated.advice import filed_under
from kb.curated.header import read_day
from kb.curated.words import first_action, first_decision
from kb.files import digest
from kb.model import (
    Action,
    Assessment,
    Candidate,
    DateStamp,
    Decision,
    Draft,
    DraftEntry,
    Item,
    Origin,
    Topic,
)

MAX_SUMMARY = 300
"""Characters of an entry's own text kept as its item's summary."""

MIN_WORD = 4
"""Characters from which a topic's word also counts inside a longer tag: KVCache in KVCache优化."""


def to_draft(curated: Curated, name: str, *, sha256: str, topics: Iterable[Topic]) -> Draft:
    """Front matter of a draft.

    Args:
        curated: The text.
        name: ``curator/date-slug``.
        sha256: Of its bytes.
        topics: Of the base; a tag that a topic lists sends an entry there.
    """
    shelves = list(topics)
    curator, _, rest = name.partition("/")
    entries = []
    for entry in curated.entries:
        decision, _ = decision_of(entry, curated)
        entries.append(
            DraftEntry(
                n=entry.n,
                item=item_id(entry, name),
                version=int(version_of(entry)) if version_of(entry) else None,
                decision=decision,
                stars=entry.stars,
                credibility=entry.credibility,
                action=action_of(entry, curated),
                topics=topics_of(entry, curated, shelves),
            )
        )
    candidates = tuple(Candidate(title=row.title, reason=row.reason) for row in curated.candidates)
    return Draft(
        curator=curator,
        date=rest[:10],
        origin=Origin(sha256=sha256),
        entries=tuple(entries),
        candidates=candidates,
    )


def item_id(entry: Entry, draft: str) -> str:
    """Id of an entry's work; the entry's own where it names none."""
    return entry.works[0].id if entry.works else f"draft:{draft}#{entry.n}"


def version_of(entry: Entry) -> str:
    """Version of the work that the entry speaks of, empty where it names none."""
    return entry.works[0].version if entry.works else ""


def to_items(curated: Curated, draft: str, *, at: str, zone: str) -> list[Item]:
    """One item per entry; entries of one work are one item.

    Args:
        curated: The text.
        draft: ``curator/date-slug``.
        at: Moment of the import, UTC.
        zone: Zone of days in the text, where it names none itself.
    """
    found: dict[tuple[str, str], Item] = {}
    for entry in curated.entries:
        item = _to_item(entry, draft, at=at, zone=curated.zone or zone, assumed=not curated.zone)
        found.setdefault((item.id, item.version), item)
    return list(found.values())


def _to_item(entry: Entry, draft: str, *, at: str, zone: str, assumed: bool) -> Item:
    work = entry.works[0] if entry.works else None
    day = read_day(entry.value("published"))
    announced = DateStamp(at=day, field="draft:published", zone=zone, assumed=assumed) if day else None
    others = [w.id for w in entry.works[1:]] + [url for url in entry.urls if work and url != work.url]
    summary = _summary(entry)
    values = {
        "title": entry.title,
        "url": work.url if work else "",
        "authors": authors_of(entry),
        "text": summary,
    }
    return Item(
        id=item_id(entry, draft),
        version=version_of(entry),
        source=f"draft:{draft}",
        url=work.url if work else "",
        aliases=tuple(dict.fromkeys(others)),
        title=entry.title,
        authors=authors_of(entry),
        announced=announced,
        first_seen=DateStamp(at=at, field="kb", zone="UTC"),
        summary=summary,
        content_sha256=digest(values),
        fetched_at=at,
    )


def authors_of(entry: Entry) -> tuple[str, ...]:
    """Authors as the entry lists them."""
    names = re.split(r"\s*[·、,，;；&]\s*|\s+and\s+", entry.value("authors"))
    return tuple(name.strip() for name in names if name.strip())


def _summary(entry: Entry) -> str:
    facts = {
        f.line for f in entry.fields if f.key in {"link", "tags", "category", "action", "stars", "close"}
    }
    texts = [line.text for line in entry.lines if line.kind != "code" and line.number not in facts]
    text = " ".join(" ".join(texts).split())
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…"


def to_assessments(curated: Curated, record: Draft, draft: str, *, at: str) -> list[Assessment]:
    """The curator's decision on each entry."""
    found = []
    for entry, kept in zip(curated.entries, record.entries, strict=True):
        _, reason = decision_of(entry, curated)
        found.append(
            Assessment(
                item=kept.item,
                version=version_of(entry),
                by=record.curator,
                decision=kept.decision,
                stars=kept.stars,
                credibility=kept.credibility,
                action=kept.action,
                tags=tags_of(entry),
                topics=kept.topics,
                reason=reason,
                draft=f"{draft}#{entry.n}",
                at=at,
            )
        )
    return found


def decision_of(entry: Entry, curated: Curated) -> tuple[Decision | None, str]:
    """What the curator decided and why: the verdict table, else the entry's own fields; None and "" where absent."""
    row = next((v for v in curated.verdicts if v.entry == entry.n), None)
    word = row.decision if row else first_decision(entry.value("decision"))
    return Decision(word) if word else None, (row.reason if row else "") or entry.value("reason")


def action_of(entry: Entry, curated: Curated) -> Action | None:
    """What the reader is asked to do: the entry's field, else a list of advice, else ✅ on “read closely?”."""
    word = first_action(entry.value("action")) or curated.actions.get(entry.n)
    if word is None and re.match(r"[✅✔]|是(?!否)|yes\b", entry.value("close"), re.IGNORECASE):
        word = "read"
    return Action(word) if word else None


def tags_of(entry: Entry) -> tuple[str, ...]:
    """Free tags as given: the tag field by blanks, else the category field by dots."""
    tags, category = entry.value("tags"), entry.value("category")
    found = re.split(r"\s*[·,，、;；|]\s*", tags) if re.search(r"[·,，、;；|]", tags) else tags.split()
    found = found if tags else re.split(r"\s*[·,，、;；|]\s*", category)
    return tuple(dict.fromkeys(tag.strip().lstrip("#") for tag in found if tag.strip()))


def topics_of(entry: Entry, curated: Curated, topics: list[Topic]) -> tuple[str, ...]:
    """Topic paths the text sends an entry to, then those of the base whose name or tags it carries."""
    text = " ".join([entry.value("close"), entry.value("action"), entry.value("category")])
    paths = [*filed_under(text), *curated.shelves.get(entry.n, ())]
    tags = {tag.casefold() for tag in tags_of(entry)}
    for topic in topics:
        names = {topic.path.casefold(), topic.path.rsplit("/", 1)[-1].casefold()}
        words = {word.casefold() for word in topic.tags}
        long = {word for word in words if len(word) >= MIN_WORD}
        if tags & (names | words) or any(word in tag for tag in tags for word in long):
            paths.append(topic.path)
    return tuple(dict.fromkeys(paths))
