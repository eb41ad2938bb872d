"""What must not leave this machine: secrets, private paths, conflict markers. Works on bytes alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from kb.files import sha256

_SECRETS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("a private key", re.compile(rb"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY(?: BLOCK)?-----")),
    ("an AWS access key", re.compile(rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a GitHub token", re.compile(rb"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})\b")),
    ("a GitLab token", re.compile(rb"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("a Hugging Face token", re.compile(rb"\bhf_[A-Za-z0-9]{30,}\b")),
    ("an API key", re.compile(rb"\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{32,}")),
    ("a Slack token", re.compile(rb"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("a Google key", re.compile(rb"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("a JSON web token", re.compile(rb"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    (
        "a password in an address",
        re.compile(rb"\b[a-z][a-z0-9+.-]*://[^\s/:@<>\"']+:[^\s/@<>\"']{3,}@[^\s/]"),
    ),
    (
        "a bearer token",
        re.compile(rb"(?i)\bauthorization:\s*(?:bearer|token|basic)\s+[A-Za-z0-9._~+/=-]{16,}"),
    ),
)
_SECRET_NAMES = re.compile(r"(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)$")
_MIN_SECRET = 12
"""Shorter values of environment variables would match ordinary words."""
_CONFLICT = re.compile(rb"^<{7} .*?^={7}\r?$.*?^>{7} ", re.MULTILINE | re.DOTALL)
_SHOWN = 16
"""Characters of a digest that a message shows and ``not_secret`` needs."""


def private_texts(root: Path, extra: Iterable[str] = ()) -> list[tuple[str, bytes]]:
    """Texts of this machine that must not leave it: its paths and the values of its secret variables.

    Args:
        root: Folder of the base.
        extra: Further secrets, such as the webhook's address.
    """
    found = [("the path of this base", os.fsencode(root))] if len(root.parts) > 2 else []  # noqa: PLR2004  not "/x"
    home = os.environ.get("HOME", "")
    if len(Path(home).parts) > 2:  # noqa: PLR2004  "/root" is no secret
        found.append(("the path of your home folder", os.fsencode(home)))
    for name, value in os.environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= _MIN_SECRET:
            found.append((f"the value of {name}", os.fsencode(value)))
    found.extend(("a private setting", text.encode()) for text in extra if len(text) >= _MIN_SECRET)
    return found


def find_secret(
    data: bytes, private: Iterable[tuple[str, bytes]], fine: frozenset[str], known: bytes = b""
) -> str:
    """Say what in ``data`` must not leave, with its line and the digest that declares it harmless; ``""`` for nothing.

    Args:
        data: A planned blob.
        private: From `private_texts`.
        fine: Digests, or their first 16 characters, that the user declared to be no secrets.
        known: What the branch holds already; a text in it left long ago.
    """
    hits = [
        (what, found.start(), found.group()) for what, pattern in _SECRETS for found in pattern.finditer(data)
    ]
    for what, text in private:
        if (at := data.find(text)) >= 0:
            hits.append((what, at, text))
    for what, at, text in hits:
        digest = sha256(text)
        if digest in fine or digest[:_SHOWN] in fine or text in known:
            continue
        line = data.count(b"\n", 0, at) + 1
        return f"line {line} holds {what} (digest {digest[:_SHOWN]})"
    return ""


def has_conflict_markers(data: bytes) -> bool:
    """True if a merge was left half done in this text."""
    return b"<<<<<<< " in data and _CONFLICT.search(data) is not None
