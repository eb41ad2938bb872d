"""Fields of an entry: ``key：value``, the value going on in the lines below where nothing stands beside the key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kb.curated.shape import Field, Line
from kb.curated.words import FIELD, NAMES


def read_fields(lines: Sequence[Line]) -> Iterator[Field]:
    """Fields in order; a key with nothing beside it takes the next line's text if that is no field."""
    for i, line in enumerate(lines):
        if line.kind in {"code", "row"} or not (found := FIELD.fullmatch(line.text)):
            continue
        value = found.group(2).strip()
        if not value and i + 1 < len(lines) and not FIELD.fullmatch(lines[i + 1].text):
            value = lines[i + 1].text if lines[i + 1].kind != "code" else ""
        yield Field(NAMES[found.group(1).lower()], value, line.number)
