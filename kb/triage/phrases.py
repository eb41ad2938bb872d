"""Finding words of rules and topics in a text: whole words in Latin script, anything inside Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.triage.reading import TOKEN, Reading, lower, plain

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
        self.by_token: dict[str, list[int]] = {}
        """First Latin word a text must hold → places in `phrases`."""
        self.others: list[int] = []
        """Places of phrases that begin with something else."""
        for place, phrase in enumerate(self.phrases):
            if phrase[0] not in _ALNUM:
                self.others.append(place)
                continue
            token = TOKEN.findall(phrase)[0]
            for written in {token, f"{token}s"} if token == phrase else {token}:
                self.by_token.setdefault(written, []).append(place)

    def find(self, reading: Reading, at_most: int = 1 << 30) -> list[str]:
        """Distinct phrases that occur in title or text, as written there, in the order of the list."""
        there = [place for token in self.by_token.keys() & reading.tokens for place in self.by_token[token]]
        found: list[str] = []
        for place in sorted({*there, *self.others}):
            phrase = self.phrases[place]
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
