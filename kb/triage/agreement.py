"""How far two judges agree: confusion table, Cohen's κ, distance in stars, each beside what a constant answer gets."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.errors import BadInput
from kb.files import decode_text, read_bytes, read_lines
from kb.identity import identify
from kb.model import Assessment, DateStamp, Item
from kb.store import MAX_PAGE_BYTES
from kb.triage.reading import Reading
from kb.triage.score import Scorer

MOMENT = "1970-01-01T00:00:00Z"
"""Labelled texts are judged outside of time; nothing of it is written anywhere."""


@dataclass(frozen=True)
class Opinion:
    """A judgement by one of two judges; None where a judge said nothing."""

    decision: str | None
    stars: int | None


@dataclass(frozen=True)
class Agreement:
    """Two judges side by side."""

    confusion: Mapping[tuple[str, str], int]
    """(first judge, second judge) → how often."""
    star_gaps: tuple[int, ...]
    """|difference| for each pair in which both gave stars."""
    first_stars: tuple[int, ...]
    """Stars of the first judge in those pairs."""

    @property
    def num(self) -> int:
        """Pairs in which both decided."""
        return sum(self.confusion.values())

    @property
    def accuracy(self) -> float | None:
        """Share of equal decisions; None without pairs."""
        return sum(n for (a, b), n in self.confusion.items() if a == b) / self.num if self.num else None

    @property
    def kappa(self) -> float | None:
        """Cohen's κ: agreement beyond what the two judges' habits give by chance; None where that is undefined."""
        if not self.num:
            return None
        first, second = self._habits()
        chance = sum(first[key] * second[key] for key in first) / self.num**2
        return None if chance == 1 else ((self.accuracy or 0.0) - chance) / (1 - chance)

    @property
    def mean_star_gap(self) -> float | None:
        """Mean |Δ stars|; None without pairs."""
        return sum(self.star_gaps) / len(self.star_gaps) if self.star_gaps else None

    def _habits(self) -> tuple[Counter[str], Counter[str]]:
        first: Counter[str] = Counter()
        second: Counter[str] = Counter()
        for (a, b), count in self.confusion.items():
            first[a] += count
            second[b] += count
        return first, second

    def to_json(self) -> dict[str, Any]:
        """All of it, with the constant answers that do best; their κ is 0 by definition."""
        first, _ = self._habits()
        constant, count = max(first.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
        gap, star = min(
            ((sum(abs(s - one) for s in self.first_stars), one) for one in range(1, 6)), default=(0, 0)
        )
        return {
            "pairs": self.num,
            "confusion": [
                {"curator": a, "rules": b, "count": n} for (a, b), n in sorted(self.confusion.items())
            ],
            "accuracy": _rounded(self.accuracy),
            "kappa": _rounded(self.kappa),
            "star_pairs": len(self.star_gaps),
            "mean_star_gap": _rounded(self.mean_star_gap),
            "constant_answer": {
                "decision": constant,
                "accuracy": _rounded(count / self.num) if self.num else None,
                "kappa": 0.0 if self.num else None,
                "stars": star if self.first_stars else None,
                "mean_star_gap": _rounded(gap / len(self.first_stars)) if self.first_stars else None,
            },
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def compare(pairs: Iterable[tuple[Opinion, Opinion]]) -> Agreement:
    """Put pairs of opinions side by side; the first judge is the one that is believed."""
    confusion: Counter[tuple[str, str]] = Counter()
    gaps: list[int] = []
    stars: list[int] = []
    for first, second in pairs:
        if first.decision and second.decision:
            confusion[first.decision, second.decision] += 1
        if first.stars and second.stars:
            gaps.append(abs(first.stars - second.stars))
            stars.append(first.stars)
    return Agreement(dict(confusion), tuple(gaps), tuple(stars))


@dataclass(frozen=True)
class Labelled:
    """A text with a curator's judgement."""

    name: str
    item: Item
    text: str
    label: Opinion


def read_labelled(entries: Path, labels: Path | None = None) -> Iterator[Labelled]:
    """Read labelled texts.

    Args:
        entries: JSON Lines with ``key``, ``title``, ``text``, ``publisher_host`` and ``published``; also ``decision``
            and ``stars`` where there is no second file.
        labels: TSV with ``decision`` and ``stars``, joined by ``draft`` and ``entry``; ``none`` means none was given.

    Raises:
        BadInput: A file cannot be read or a line lacks a field.
    """
    known = _read_labels(labels) if labels else {}
    if not entries.is_file():
        raise BadInput(f"{entries}: not read", cause="there is no such file", remedy="check the path")
    for number, row in read_lines(entries):
        try:
            label = known.get((str(row.get("draft", "")), str(row.get("entry", "")))) or row
            yield Labelled(str(row["key"]), _item(row), str(row["text"]), _opinion(label))
        except (KeyError, ValueError) as error:
            raise BadInput(
                f"{entries}:{number}: not used",
                cause=f"{error} is missing or wrong",
                remedy="see kb stats --help",
            ) from error


def _read_labels(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    text = decode_text(read_bytes(path, limit=MAX_PAGE_BYTES), path.name)
    rows = csv.DictReader(text.splitlines(), delimiter="\t")
    return {(row.get("draft") or "", row.get("entry") or ""): row for row in rows}


def _opinion(row: Mapping[str, Any]) -> Opinion:
    decision, stars = str(row.get("decision") or ""), str(row.get("stars") or "")
    return Opinion(decision if decision not in {"", "none"} else None, int(stars) if stars else None)


def _item(row: Mapping[str, Any]) -> Item:
    key = str(row["key"])
    work = identify(key)
    host = str(row.get("publisher_host") or "").lower()
    day = row.get("published")
    return Item(
        id=key,
        source="labelled",
        url=work.url if work else (f"https://{host}/" if host else ""),
        title=str(row["title"]),
        announced=DateStamp(at=str(day), field="published") if day else None,
        first_seen=DateStamp(at=MOMENT, field="labelled"),
        summary=str(row["text"])[:500],
        fetched_at=MOMENT,
    )


def judge_labelled(scorer: Scorer, cases: Iterable[Labelled]) -> Iterator[tuple[Labelled, Assessment]]:
    """What the rules say about each labelled text, without neighbours and without a source's own topics."""
    for case in cases:
        yield case, scorer.assess(Reading(case.item, case.text), at=MOMENT)


def report_labelled(judged: Iterable[tuple[Labelled, Assessment]]) -> dict[str, Any]:
    """Agreement with the labels, and every disagreement with the rules that led to it."""
    listed = list(judged)
    found = compare((case.label, Opinion(made.decision, made.stars)) for case, made in listed)
    differ = [
        {
            "entry": case.name,
            "title": case.item.title,
            "curator": {"decision": case.label.decision, "stars": case.label.stars},
            "rules": {"decision": made.decision, "stars": made.stars},
            "reason": made.reason,
            "fired": {
                rule.rule: rule.weight for rule in sorted(made.rules, key=lambda one: -abs(one.weight))
            },
        }
        for case, made in listed
        if _differs(case.label, made)
    ]
    return {**found.to_json(), "disagreements": differ}


def _differs(label: Opinion, made: Assessment) -> bool:
    return bool(
        (label.decision and label.decision != made.decision) or (label.stars and label.stars != made.stars)
    )
