"""Where each setting comes from: for `kb config`, which explains and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.config import UserSettings, load_base, load_user, read_toml, user_folder
from kb.model import Record

SECRET = frozenset({"proxy", "llm", "webhook", "remote", "signing_key", "credential_helper"})
"""Settings of the user whose value may carry a credential; only said to be set."""
OTHER_VARIABLES = {
    "KB_ROOT": "The knowledge base, where -C does not name it.",
    "KB_NOW": "Fixes every clock that reaches a file, for tests: 2026-07-02T03:05:00Z.",
    "KB_CONFIG_DIR": "Folder of the user's own settings.",
    "KB_REQUIRE_BROWSER": "1: tests of the site fail without a browser instead of being skipped.",
    "NO_COLOR": "No colour, whatever the terminal.",
}


@dataclass(frozen=True)
class Setting:
    """One setting as it counts now."""

    name: str
    """``base.triage.keep`` or ``user.contact``."""
    value: str
    origin: str
    """A file, a variable, or ``default``."""
    env: str
    """Variable that overrides it; empty for settings of the base."""


def explain_settings(root: Path | None) -> list[Setting]:
    """Every setting with its origin.

    Args:
        root: The base; None to show only the user's own.

    Raises:
        BadConfig: A file cannot be read.
    """
    found: list[Setting] = []
    if root is not None:
        path = root / "kb.toml"
        given = _flat(read_toml(path))
        for name, value in _flat(load_base(path).to_json()).items():
            found.append(Setting(f"base.{name}", _text(value), str(path) if name in given else "default", ""))
    return [*found, *_user_settings()]


def _user_settings() -> Iterator[Setting]:
    path = user_folder() / "config.toml"
    in_file = read_toml(path) if path.is_file() else {}
    for name, value in load_user().to_json().items():
        env = f"KB_{name.upper()}"
        origin = "default"
        if os.environ.get(env):
            origin = env
        elif name in in_file:
            origin = str(path)
        elif value and (user_folder() / name).is_file():
            origin = str(user_folder() / name)
        shown = f"set (from {origin})" if name in SECRET and value else _text(value)
        yield Setting(f"user.{name}", shown, origin, env)


def variables() -> list[tuple[str, bool, str]]:
    """Every ``KB_*`` variable, whether it is set, and what it means."""
    meanings = {f"KB_{name.upper()}": _meaning(UserSettings, name) for name in UserSettings.model_fields}
    every = {**meanings, **OTHER_VARIABLES}
    return [(name, bool(os.environ.get(name)), meaning) for name, meaning in sorted(every.items())]


def _meaning(record: type[Record], name: str) -> str:
    text = record.model_fields[name].description or ""
    return " ".join(text.split()).replace("``", "").replace(f" KB_{name.upper()}.", "")


def _flat(values: dict[str, Any], before: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            out.update(_flat(value, f"{before}{key}."))
        else:
            out[f"{before}{key}"] = value
    return out


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
