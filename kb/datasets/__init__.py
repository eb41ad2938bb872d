"""Public data sets that reproductions read and that are not ours to ship: one TOML file each, with origin and digest.

``KB_DATA_DIR`` names a folder that has them; else they are kept in the user's cache. A file counts only if its bytes have
the digest on record.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from kb.config import load_user, read_record
from kb.errors import CannotRun, NothingMatches, WrongResult
from kb.files import sha256, write_atomic
from kb.model import Record

if TYPE_CHECKING:
    from kb.http import Client

FOLDER = Path(__file__).parent


class DataFile(Record):
    """One file of a data set."""

    path: str = Field(pattern=r"^[\w./-]+$")
    """Below the data folder."""
    url: str
    """Where it is fetched, at a fixed commit."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of its bytes."""
    bytes: int = Field(gt=0)
    """Size."""


class DataSet(Record):
    """One data set, ``kb/datasets/<name>.toml``."""

    name: str
    """From the file name."""
    title: str
    """What it holds."""
    origin: str
    """Where it comes from."""
    licence: str
    """As its origin states it."""
    cite: str
    """Whom to cite."""
    file: tuple[DataFile, ...]
    """Its files."""

    @property
    def num_bytes(self) -> int:
        """Size of all files."""
        return sum(one.bytes for one in self.file)


@dataclass(frozen=True)
class Fetched:
    """What fetching a data set did."""

    name: str
    folder: Path
    fetched: tuple[str, ...]
    """Paths that were fetched now."""
    present: tuple[str, ...]
    """Paths that were there already, with the right bytes."""


def data_folder() -> Path:
    """Folder of the data sets: ``KB_DATA_DIR``, else below the user's cache."""
    if given := os.environ.get("KB_DATA_DIR"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kb/data"


@cache
def datasets() -> dict[str, DataSet]:
    """Data sets by name."""
    return {
        path.stem: read_record(DataSet, path, {"name": path.stem}) for path in sorted(FOLDER.glob("*.toml"))
    }


def missing(dataset: DataSet) -> list[DataFile]:
    """Files that are absent or do not have the bytes on record."""
    return [one for one in dataset.file if not _is_right(data_folder() / one.path, one)]


def _is_right(path: Path, expected: DataFile) -> bool:
    try:
        return path.stat().st_size == expected.bytes and sha256(path.read_bytes()) == expected.sha256
    except OSError:
        return False


def plan(name: str) -> Fetched:
    """Say what `fetch` would do.

    Raises:
        NothingMatches: There is no such data set.
    """
    known = datasets()
    if name not in known:
        raise NothingMatches(
            f"{name}: no such data set",
            cause=f"there are {', '.join(known)}",
            remedy="give one of them",
            next_command="kb data list",
        )
    wanted = {one.path for one in missing(known[name])}
    paths = [one.path for one in known[name].file]
    present = tuple(path for path in paths if path not in wanted)
    return Fetched(name, data_folder(), tuple(path for path in paths if path in wanted), present)


def fetch(name: str) -> Fetched:
    """Fetch what is missing of a data set; each file is checked before it is kept.

    Raises:
        NothingMatches: There is no such data set.
        CannotRun: A file cannot be had from here, or the folder cannot be written.
        WrongResult: Its bytes are not those on record.
    """
    from kb.http import Client, Limits

    planned = plan(name)
    wanted = [one for one in datasets()[name].file if one.path in planned.fetched]
    if wanted:
        limits = Limits(body_bytes=max(one.bytes for one in wanted) + 1, total_s=600.0)
        with Client(load_user(), limits=limits) as client:
            for one in wanted:
                _fetch_file(client, one)
    return planned


def _fetch_file(client: Client, one: DataFile) -> None:
    from kb.http import NoAnswer

    try:
        body = client.get(one.url).body
    except NoAnswer as error:
        raise CannotRun(
            f"{one.path}: not fetched",
            cause=f"{one.url}: {error.cause}",
            remedy="fetch it where the network allows, and point KB_DATA_DIR at the folder that has it",
            next_command="kb data list",
        ) from error
    if sha256(body) != one.sha256:
        raise WrongResult(
            f"{one.path}: not kept",
            cause=f"its digest is {sha256(body)[:12]}…, on record is {one.sha256[:12]}…",
            remedy="the origin changed it; compare the two before anything rests on it",
            next_command="kb data list",
        )
    try:
        write_atomic(data_folder() / one.path, body, scratch=data_folder() / ".tmp")
    except OSError as error:
        raise CannotRun(
            f"{one.path}: not written",
            cause=str(error),
            remedy="make the data folder writable, or set KB_DATA_DIR",
        ) from error
