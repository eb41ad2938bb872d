"""Which topics an item belongs to: many to many, by the words of each topic, title first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kb.model import Topic
from kb.triage.phrases import Phrases, places
from kb.triage.reading import Reading

TITLE_WORTH = 2.0
"""A word in the title is worth this many in the text."""
LEAST = 1.5
"""A topic with less than this does not count: one general word of a text may stand there by chance."""
NARROW_BONUS = 1.6
"""A narrower topic wins against its parent, whose words are more general."""
LEAST_SHARE = 0.4
"""Topics with less than this share of the best one are left out."""
LEAST_OF_PARENT = 0.5
"""A narrower topic with this share of its parent's score comes before it, if the title agrees."""
AT_MOST = 4


@dataclass(frozen=True)
class Shelf:
    """A topic and its words, ready for many texts."""

    path: str
    phrases: Phrases

    @property
    def worth(self) -> float:
        """Factor of its words."""
        return NARROW_BONUS if "/" in self.path else 1.0


def make_shelves(topics: Iterable[Topic]) -> list[Shelf]:
    """Prepare the topics of a base."""
    return [Shelf(topic.path, Phrases(topic.tags)) for topic in topics]


def find_shelves(
    reading: Reading, shelves: Iterable[Shelf], forced: Iterable[str] = ()
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Topics of a text, best first, each with the words that drew it there.

    Args:
        reading: The item.
        shelves: All topics.
        forced: Topics its source belongs to whatever the words say; they come last unless words say more.
    """
    rated = []
    kept = set(forced)
    worth: dict[str, tuple[float, float]] = {}
    for shelf in shelves:
        words = shelf.phrases.find(reading)
        whole, in_title = _score(words, reading)
        worth[shelf.path] = (shelf.worth * whole, shelf.worth * in_title)
        if shelf.worth * whole >= LEAST or shelf.path in kept:
            rated.append((shelf.worth * whole, shelf.path, tuple(words)))
    rated.sort(key=lambda one: (-_rank(one[1], worth), one[1]))
    best = max((score for score, _, _ in rated), default=0.0)
    chosen = [one for one in rated if one[1] in kept or one[0] >= LEAST_SHARE * best]
    return tuple((path, words) for _, path, words in chosen[:AT_MOST])


def _rank(path: str, worth: Mapping[str, tuple[float, float]]) -> float:
    """Place of a topic: before its parent where its words say half as much, and at least as much in the title."""
    score, in_title = worth[path]
    above, above_in_title = worth.get(path.rpartition("/")[0], (0.0, 0.0))
    wins = in_title and in_title >= above_in_title and score >= LEAST_OF_PARENT * above
    return max(score, above + score / 1_000) if wins else score


def _score(words: list[str], reading: Reading) -> tuple[float, float]:
    """Worth of the words that were found, and of those in the title alone."""
    title = reading.lower[: len(reading.title)]
    num = sum(next(places(word.lower(), title), None) is not None for word in words)
    return len(words) + (TITLE_WORTH - 1) * num, TITLE_WORTH * num
