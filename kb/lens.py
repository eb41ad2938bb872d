"""SQL over a knowledge base: its tables loaded into DuckDB in memory, read and thrown away.

The files are the truth; nothing here is kept on disk, so there is no lens to go stale. A statement of a user runs in a
locked-down engine: no files, no network, no extensions, no settings, bounded memory and time.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from kb.errors import CannotRun, WrongUse
from kb.model import Record
from kb.store import Base
from kb.tables import TABLES, read_table

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "1GB"
"""What a statement may hold; the engine may not spill to disk."""
TIME_LIMIT_S = 30.0
"""How long a statement may run."""
MAX_ROWS = 1_000_000
"""Longest answer."""
SCALARS = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


@dataclass(frozen=True)
class Answer:
    """What a statement gave: columns, and rows of JSON values."""

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]


def column_type(annotation: Any) -> Any:
    """DuckDB type of a field, as ``from_json`` spells it: ``"VARCHAR"``, ``["DOUBLE"]``, ``{"low": "DOUBLE"}``."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        return column_type(next(part for part in arguments if part is not types.NoneType))
    if origin is tuple:
        return [column_type(arguments[0])]
    if origin is typing.Literal:
        return "VARCHAR"
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return columns_of(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "VARCHAR"
    return SCALARS.get(annotation, "JSON")


def columns_of(record: type[Record]) -> dict[str, Any]:
    """Columns of a record with their DuckDB types, in field order."""
    return {field.alias or name: column_type(field.annotation) for name, field in record.model_fields.items()}


@contextlib.contextmanager
def connect(base: Base, names: Sequence[str] = tuple(TABLES)) -> Iterator[duckdb.DuckDBPyConnection]:
    """Load tables of a base into memory and lock the engine down.

    Args:
        base: The knowledge base.
        names: Tables to load.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name in names:
            structure = json.dumps([columns_of(TABLES[name].row)])
            rows = json.dumps(read_table(base, name), ensure_ascii=False)
            connection.execute(
                f"CREATE TABLE {name} AS SELECT r.* FROM (SELECT unnest(from_json(?::JSON, ?)) AS r)",  # noqa: S608  a name of TABLES
                [rows, structure],
            )
        for setting in (
            "temp_directory = ''",
            "enable_external_access = false",
            "python_enable_replacements = false",  # else a statement could read this program's variables
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            f"memory_limit = '{MEMORY_LIMIT}'",
            "threads = 2",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        yield connection


def query(base: Base, statement: str, *, time_limit_s: float = TIME_LIMIT_S) -> Answer:
    """Run one SELECT over all tables.

    Args:
        base: The knowledge base.
        statement: SQL, one statement that reads.
        time_limit_s: Seconds it may take.

    Raises:
        WrongUse: It is no SQL, more than one statement, writes, or asks for what is not there or not allowed.
        CannotRun: It needs more memory, time or rows than a query may.
    """
    with connect(base) as connection, _explained(statement):
        _only_reads(connection, statement)
        with _limited(connection, time_limit_s):
            done = connection.execute(statement)
            return _answer(done.description, done.fetchmany(MAX_ROWS + 1))


def filter_rows(
    base: Base, name: str, where: str, *, time_limit_s: float = TIME_LIMIT_S
) -> list[dict[str, Any]]:
    """Rows of a table for which a boolean SQL expression over its columns is true.

    Raises:
        WrongUse: ``where`` is no such expression.
        CannotRun: It needs more than a query may.
    """
    with connect(base, [name]) as connection, _explained(where), _limited(connection, time_limit_s):
        # as a filter of a relation: there only an expression parses, nothing that ends it and goes on
        matching = connection.table(name).filter(where).limit(MAX_ROWS + 1)
        return _answer(matching.description, matching.fetchall()).rows


def _only_reads(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    import duckdb

    kinds = [found.type for found in connection.extract_statements(statement)]
    if len(kinds) != 1 or kinds[0] not in {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}:
        got = ", ".join(kind.name for kind in kinds) or "nothing"
        raise WrongUse(
            "the statement was not run",
            cause=f"one SELECT is allowed; this is {got}",
            remedy="kb query only reads; the files of the base are changed by the other verbs",
            next_command='kb query "show tables"',
        )


@contextlib.contextmanager
def _limited(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _explained(statement: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, duckdb.OutOfMemoryException) as error:
        what = "time" if isinstance(error, duckdb.InterruptException) else "memory"
        raise CannotRun(
            f"{_shown(statement)}: no answer",
            cause=f"it needs more {what} than a query may have ({TIME_LIMIT_S:.0f} s, {MEMORY_LIMIT})",
            remedy="ask for less: a WHERE, a LIMIT, fewer joins",
        ) from error
    except duckdb.Error as error:
        raise WrongUse(
            f"{_shown(statement)}: no answer",
            cause=str(error).split("\n\n")[0],
            remedy="mend it; the tables and their columns are in the lens itself",
            next_command='kb query "select table_name, column_name, data_type from duckdb_columns()"',
        ) from error


def _shown(statement: str) -> str:
    line = " ".join(statement.split())
    return line if len(line) <= 60 else line[:59] + "…"  # noqa: PLR2004  fits a terminal's line


def _answer(description: Any, rows: list[Any]) -> Answer:
    described = description or []
    names = _distinct([str(column[0]) for column in described])
    is_json = [str(column[1]) == "JSON" for column in described]
    if len(rows) > MAX_ROWS:
        raise CannotRun(
            "no answer",
            cause=f"it has more than {MAX_ROWS:,} rows",
            remedy="ask for less: a WHERE or a LIMIT",
        )
    return Answer(
        tuple(names),
        [{n: _plain(v, parse=p) for n, v, p in zip(names, row, is_json, strict=True)} for row in rows],
    )


def _distinct(names: list[str]) -> list[str]:
    """Name columns apart, so that ``select a.id, b.id`` loses neither."""
    out: list[str] = []
    for name in names:
        free, count = name, 1
        while free in out:
            count += 1
            free = f"{name}_{count}"
        out.append(free)
    return out


def _plain(value: Any, *, parse: bool = False) -> Any:
    """Turn what DuckDB gives into a JSON value."""
    if parse and isinstance(value, str):
        return json.loads(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no NaN
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return str(value)
