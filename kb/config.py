"""Settings: ``kb.toml`` of the base, then the user's file outside it, then ``KB_*``, then options.

A base says only what may be shared: zone, language, thresholds. Remotes, keys, endpoints, proxies, contacts and the
names of programs come from the user's own file or the environment, so that a pull request cannot redirect the job.
"""

from __future__ import annotations

import os
import tomllib
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator

from kb.errors import BadConfig
from kb.model import Record

R = TypeVar("R", bound=Record)


class TriageSettings(Record):
    """``[triage]`` of ``kb.toml``."""

    keep: float = 4.0
    """Least score that is kept."""
    watch: float = 1.0
    """Least score that is watched."""
    stars: tuple[float, float, float, float] = (0.0, 2.0, 4.0, 6.0)
    """Least scores of 2, 3, 4 and 5 stars."""


class BaseSettings(Record):
    """``kb.toml``: what a base says of itself."""

    zone: str = "UTC"
    """IANA zone: a date means that day here."""
    language: Literal["zh", "en"] = "en"
    """Language of drafts and pages that kb writes."""
    title: str = ""
    """Name shown on pages."""
    curator: str = "kb"
    """Folder under ``inbox/`` for drafts that kb writes."""
    remote: str = ""
    """At most the name of a remote that the clone's own git configuration already has."""
    triage: TriageSettings = TriageSettings()

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, value: str) -> str:
        try:
            zoneinfo.ZoneInfo(value)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"{value!r} is no IANA zone such as Asia/Shanghai") from error
        return value

    @field_validator("remote")
    @classmethod
    def _remote_is_a_name(cls, value: str) -> str:
        if value and not value.replace("-", "").replace("_", "").isalnum():
            raise ValueError("only the name of a remote of this clone, never an address")
        return value


class UserSettings(Record):
    """The user's own file, ``~/.config/kb/config.toml``: everything a base must not decide."""

    contact: str = ""
    """Address put into the User-Agent. ``KB_CONTACT``."""
    proxy: str = ""
    """HTTP proxy. ``KB_PROXY``."""
    allow_private: tuple[str, ...] = ()
    """Private endpoints ``host:port`` that may be reached. ``KB_ALLOW_PRIVATE``, comma-separated."""
    allow: tuple[str, ...] = ()
    """Programs that ``exec`` sources and notifications may run. ``KB_ALLOW``, comma-separated."""
    llm: str = ""
    """OpenAI-compatible endpoint. ``KB_LLM``."""
    webhook: str = ""
    """Where sync reports. ``KB_WEBHOOK``."""
    curator: str = ""
    """Who acts, in drafts and the log. ``KB_CURATOR``."""
    lang: Literal["", "zh", "en"] = ""
    """Language of messages. ``KB_LANG``."""
    replay: str = ""
    """Address of a local replay server that answers for every host, ``http://127.0.0.1:PORT``. ``KB_REPLAY``."""
    offline: bool = False
    """Refuse every request that leaves this machine. ``KB_OFFLINE``."""
    remote: str = ""
    """Where sync pushes: an address, or a remote of the clone. Empty: what the clone follows. ``KB_REMOTE``."""
    branch: str = ""
    """Branch sync pushes to. Empty: the remote's default branch. ``KB_BRANCH``."""
    owned: tuple[str, ...] = ()
    """Clones that belong to the scheduled job, which may bring their files up to date. ``KB_OWNED``, comma-separated."""
    sync_name: str = "kb sync"
    """Name on sync's commits. ``KB_SYNC_NAME``."""
    sync_email: str = "kb-sync@localhost"
    """Address on sync's commits; by it sync knows its own. ``KB_SYNC_EMAIL``."""
    sync_tries: int = Field(default=8, ge=1, le=100)
    """Pushes that may lose a race before sync gives up. ``KB_SYNC_TRIES``."""
    signing_key: str = ""
    """Key to sign sync's commits with; empty: unsigned. ``KB_SIGNING_KEY``."""
    signing_format: Literal["openpgp", "ssh", "x509"] = "openpgp"
    """Kind of ``signing_key``. ``KB_SIGNING_FORMAT``."""
    credential_helper: str = ""
    """git credential helper for the remote. ``KB_CREDENTIAL_HELPER``."""
    ssh_command: str = ""
    """Program for ssh remotes, as git's ``core.sshCommand``. ``KB_SSH_COMMAND``."""
    notify: str = ""
    """Program that is told of new verdicts, held blocks and failed syncs; must be in ``allow``. ``KB_NOTIFY``."""
    not_secret: tuple[str, ...] = ()
    """Digests that sync printed for texts that only look like secrets. ``KB_NOT_SECRET``, comma-separated."""


LISTS = frozenset({"allow_private", "allow", "owned", "not_secret"})


def user_folder() -> Path:
    """Return the folder of the user's own settings; ``KB_CONFIG_DIR`` moves it."""
    if given := os.environ.get("KB_CONFIG_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kb"


def load_base(path: Path) -> BaseSettings:
    """Read ``kb.toml``.

    Raises:
        BadConfig: Not TOML, an unknown key (with the nearest name), or a wrong value.
    """
    return read_record(BaseSettings, path, {})


def load_user(environ: Mapping[str, str] | None = None) -> UserSettings:
    """Read the user's file, then let ``KB_*`` override it.

    Raises:
        BadConfig: As `load_base`.
    """
    environ = os.environ if environ is None else environ
    path = user_folder() / "config.toml"
    values: dict[str, Any] = read_toml(path) if path.is_file() else {}
    for key in ("allow", "owned"):
        listed = user_folder() / key
        if listed.is_file():
            lines = listed.read_text(encoding="utf-8").splitlines()
            values.setdefault(key, [x.strip() for x in lines if x.strip() and not x.startswith("#")])
    for key in UserSettings.model_fields:
        given = environ.get(f"KB_{key.upper()}")
        if given is None or given == "":
            continue
        if key in LISTS:
            values[key] = [part.strip() for part in given.split(",") if part.strip()]
        else:
            values[key] = given
    return build(UserSettings, values, path)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        BadConfig: It is absent, not UTF-8 or not TOML; the message names the line.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise BadConfig(
            f"{path}: not read", cause=str(error), remedy="mend the file; it must be TOML in UTF-8"
        ) from error


def read_record(kind: type[R], path: Path, extra: Mapping[str, Any]) -> R:
    """Read one record from a TOML file; ``extra`` supplies what the file name says.

    Raises:
        BadConfig: As `read_toml`, or the values do not fit the record.
    """
    return build(kind, {**read_toml(path), **extra}, path)


def build(kind: type[R], values: Mapping[str, Any], path: Path) -> R:
    """Validate values, turning pydantic's complaint into one a user can act on.

    Raises:
        BadConfig: With file, key and the nearest known key.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        cause = f"{key}: {first['msg']}" if key else str(first["msg"])
        raise BadConfig(f"{path}: not used", cause=cause, remedy=_hint(kind, first)) from error


def _hint(kind: type[Record], problem: Any) -> str:
    import difflib

    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(problem["loc"][-1]), list(kind.model_fields), n=1)
        known = ", ".join(kind.model_fields)
        return f"did you mean {near[0]}?" if near else f"known keys: {known}"
    return "see docs/records.md for what it may hold"
