"""Finding words of rules and topics in a text: whole words in Latin script, anything inside Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.triage.reading import Reading, lower, plain

_ALNUM = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


class Phrases:
    """A list of phrases that is looked for in many texts.

    A phrase that begins or ends in a Latin letter or digit must stand alone there; a plural ``s`` may follow.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self.spelling: dict[str, str] = {}
        """Phrase in lower case → as the list spells it."""
        for phrase in phrases:
            if small := lower(plain(phrase)).strip():
                self.spelling.setdefault(small, phrase.strip())
        self.phrases = tuple(self.spelling)

    def find(self, reading: Reading, at_most: int = 1 << 30) -> list[str]:
        """Distinct phrases that occur in title or text, as written there, in the order of the list."""
        found: list[str] = []
        for phrase in self.phrases:
            if phrase in reading.lower and (where := next(places(phrase, reading.lower), None)) is not None:
                found.append(reading.whole[where : where + len(phrase)])
                if len(found) >= at_most:
                    break
        return found


def places(phrase: str, text: str) -> Iterator[int]:
    """Positions at which a phrase stands as a word of its own; both in lower case."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if _stands_alone(phrase, text, start, end):
            yield start
        start = text.find(phrase, start + 1)


def _stands_alone(phrase: str, text: str, start: int, end: int) -> bool:
    if phrase[0] in _ALNUM and start and text[start - 1] in _ALNUM:
        return False
    if phrase[-1] not in _ALNUM:
        return True
    if text[end : end + 1] == "s":
        end += 1
    return text[end : end + 1] not in _ALNUM
