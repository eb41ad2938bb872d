"""What verbs share: finding the base, the common options, printing answers.

A verb is one file under ``kb/cli/verbs`` that defines ``command``. It returns its exit code (None is 0) or raises a
`kb.errors.KbError`.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kb.errors import WrongUse

if TYPE_CHECKING:
    from rich.console import Console

    from kb.store import Base

F = TypeVar("F", bound=Callable[..., Any])


def open_base(ctx: click.Context) -> Base:
    """Find and open the knowledge base; see `kb.store.find_root`.

    Raises:
        WrongUse: There is none.
    """
    from kb.store import Base, find_root

    return Base(find_root(Path.cwd(), ctx.find_root().obj))


def acting_person(base: Base) -> str:
    """Name for the log: ``KB_CURATOR``, the user's settings, git's ``user.name``, or ``unknown``."""
    import subprocess

    from kb.config import load_user

    if name := load_user().curator:
        return name
    try:
        asked = ["git", "-C", str(base.root), "config", "user.name"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return found.stdout.strip() or "unknown"


def json_option(function: F) -> F:
    """Add ``--json`` (argument ``as_json``)."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, nothing more.")(
        function
    )


def fields_option(function: F) -> F:
    """Add ``--fields a,b`` (argument ``fields``)."""
    return click.option("--fields", metavar="A,B", default="", help="Only these columns.")(function)


def dry_run_option(function: F) -> F:
    """Add ``--dry-run`` (argument ``dry_run``)."""
    return click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")(function)


def emit_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def emit_rows(
    rows: Sequence[Mapping[str, Any]], *, as_json: bool, fields: str, columns: Sequence[str]
) -> None:
    """Print records as JSON or as an aligned table.

    Args:
        rows: The records.
        as_json: All of ``fields`` as one JSON list.
        fields: What ``--fields`` gave; empty for all (JSON) or ``columns`` (table).
        columns: What a table shows by default.

    Raises:
        WrongUse: ``fields`` names a column that no record has.
    """
    chosen = [part.strip() for part in fields.split(",") if part.strip()]
    known = dict.fromkeys(key for row in rows for key in row)
    if rows and (unknown := [name for name in chosen if name not in known]):
        raise WrongUse(
            f"--fields {unknown[0]}: no such column",
            cause=f"columns are {', '.join(known)}",
            remedy="use one of them",
        )
    if as_json:
        emit_json([{key: row[key] for key in chosen} if chosen else dict(row) for row in rows])
        return
    emit_table([[text_of(row.get(name)) for name in chosen or columns] for row in rows], chosen or columns)


def text_of(value: Any) -> str:
    """A cell of a table: lists joined, six digits of a number, absent empty, one line, no control characters."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"  # noqa: PLR2004  exact integers
    if isinstance(value, (list, tuple)):
        return ", ".join(text_of(part) for part in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else " " for c in str(value))


def width_of(text: str) -> int:
    """Columns a text takes on a terminal: Chinese characters take two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def clip(text: str, columns: int) -> str:
    """Cut a text to ``columns`` terminal columns, ending in … where something was cut."""
    if width_of(text) <= columns:
        return text
    kept, used = [], 0
    for char in text:
        used += width_of(char)
        if used > columns - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def emit_table(rows: Iterable[Sequence[str]], columns: Sequence[str]) -> None:
    """Print an aligned table on stdout; on a terminal the widest column gives way, in a pipe nothing is cut."""
    body = [list(row) for row in rows]
    widths = [max([width_of(name), *(width_of(row[i]) for row in body)]) for i, name in enumerate(columns)]
    if sys.stdout.isatty():
        import shutil

        room = shutil.get_terminal_size((100, 24)).columns - 2 * (len(columns) - 1)
        while sum(widths) > room and max(widths) > 12:  # noqa: PLR2004  narrower is unreadable
            widths[widths.index(max(widths))] -= 1
    for row in [list(columns), *body]:
        cells = [clip(cell, width) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(
            cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=True)
        )
        click.echo(line.rstrip())


def emit_lines(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print one JSON object per line on stdout."""
    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False))


def emit_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print RFC 4180 CSV with a header on stdout; lists and records stand in a cell as JSON."""
    import csv

    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        writer.writerow(
            [json.dumps(c, ensure_ascii=False) if isinstance(c, (list, dict)) else c for c in cells]
        )


def console() -> Console:
    """A rich console on stderr; honours ``NO_COLOR`` and never colours a pipe."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, no_color=bool(os.environ.get("NO_COLOR")) or None)


def printable(text: str) -> str:
    """Text from outside cannot move the cursor or recolour the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def say(text: object = "", *, nl: bool = True) -> None:
    """Print on stdout for a person; what a program reads goes through `emit_json` and its kin."""
    click.echo(printable(str(text)), nl=nl)


def note(text: str) -> None:
    """Print a line on stderr."""
    click.echo(printable(text), err=True)
