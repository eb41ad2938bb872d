"""Figures, topics and topic pages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kb.model.base import Record, Text
from kb.model.evidence import Claim, Verdict
from kb.model.items import Item
from kb.model.triage import Assessment


class Point(Record):
    """One point of a series, with its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Series(Record):
    """One line of a figure."""

    label: Text
    """Legend."""
    points: tuple[Point, ...]
    """In drawing order."""
    predicted: bool = False
    """True: a closed form or model, drawn dashed. False: measured or counted, drawn solid."""


class Figure(Record):
    """What to draw, from recorded numbers alone; `kb.publish` draws it."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    """Slug, unique within its reproduction."""
    repro: str
    """Name of the reproduction."""
    title: Text
    """The finding, as a sentence."""
    x: Text
    """Axis label with unit."""
    y: Text
    """Axis label with unit."""
    x_scale: Literal["linear", "log", "log2"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    series: tuple[Series, ...]
    alt: Text
    """What a reader who cannot see it must know."""
    topics: tuple[str, ...] = ()
    """Topic pages that show it."""


class Passage(Record):
    """A titled piece of prose of our own; it belongs to people once the page is there."""

    title: Text
    text: Text


class Topic(Record):
    """Settings of one topic page, ``topics/<path>.toml``."""

    path: str = Field(pattern=r"^[a-z0-9-]+(/[a-z0-9-]+)*$")
    """From the file name: ``inference/kvcache``."""
    title: Text
    tags: tuple[str, ...] = ()
    """Words that draw an item here, zh and en."""
    systems: tuple[str, ...] = ()
    """Systems whose claims the page shows."""
    order: int = 100
    """Place in menus, low first."""
    intro: Text = Text()
    """Introduction written when the page is created; from then on it belongs to people."""
    notes: tuple[Passage, ...] = ()
    """What each reproduction of the topic found and cannot show, after the introduction."""


class GuideSection(Record):
    """One part of a guide: prose of our own, then the claims it rests on."""

    slug: str = Field(pattern=r"^[a-z0-9-]+$")
    """Name of its block, unique in the guide."""
    title: Text
    intro: Text = Text()
    """Written when the page is created; from then on it belongs to people."""
    claims: tuple[str, ...] = ()
    """Ids, or patterns with ``*``: ``vllm/*-default``. Without any, the section is prose only."""
    show: Literal["findings", "checklist", "timeline", "matrix", "relays"] = "findings"
    """findings: a list; checklist: a list to tick off; timeline: by the date of the source; matrix: a table by system;
    relays: a table of second-hand quotations that differ from their source."""


class Guide(Record):
    """Settings of one page that answers a question across topics, ``guides/<path>.toml``."""

    path: str = Field(pattern=r"^[a-z0-9-]+$")
    """From the file name: ``vllm-vs-sglang``."""
    title: Text
    order: int = 100
    """Place in menus, low first."""
    intro: Text = Text()
    """Introduction written when the page is created."""
    sections: tuple[GuideSection, ...] = ()


class TopicPage(Record):
    """All that publish shows on one topic page. Knows no Markdown."""

    topic: Topic
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Figure, ...] = ()
    reading: tuple[tuple[Assessment, Item], ...] = ()
    """Reading list: accepted entries with their items."""
    sources: tuple[Item, ...] = ()
    """Newest version of every item the claims were read in."""
    num_memory: int = 0
    """Claims that are known from memory only and therefore not shown."""
