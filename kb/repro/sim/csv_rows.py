"""Rows of measured tables: CSV files from outside, checked cell by cell before anything is computed from them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from kb.errors import BadInput

LONGEST_CELL = 1 << 20


def unreadable(path: Path, cause: str) -> BadInput:
    """The error for a table that cannot be used."""
    return BadInput(
        f"{path.name}: not read",
        cause=cause,
        remedy="give the file as its origin has it",
        next_command="kb data list",
    )


def read_rows(path: Path, columns: Sequence[str], text: Sequence[str] = ()) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file with a header, one at a time.

    Args:
        path: The file.
        columns: Columns that must be there, each a finite number that is not negative.
        text: Further columns that must be there.

    Raises:
        BadInput: It cannot be read, has no rows, or a cell is no such number.
    """
    line = 1
    csv.field_size_limit(LONGEST_CELL)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, row in enumerate(csv.DictReader(file), start=2):
                _check(path, line, row, columns, text)
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unreadable(path, str(error)) from error
    if line == 1:
        raise unreadable(path, "it has no rows")


def _check(path: Path, line: int, row: dict[str, str], columns: Sequence[str], text: Sequence[str]) -> None:
    for column in (*text, *columns):
        if row.get(column) is None:
            raise unreadable(path, f"line {line}: no {column}")
    for column in columns:
        try:
            value = float(row[column])
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise unreadable(path, f"line {line}: {column} is {row[column][:40]!r}")
