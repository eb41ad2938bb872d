"""What git's messages mean: one table from the words of git, its servers and transports to cause, remedy and kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a failed push or fetch asks for."""

    RACE = "race"
    """Somebody pushed first: fetch, rebuild the same plan, push again."""
    PROTECTED = "protected"
    """The branch takes no direct pushes: push a batch branch."""
    REFUSED = "refused"
    """The server's checks refused this content: find the item and set it aside."""
    REMOTE_LOCK = "remote-lock"
    """A ref lock stands on the remote; never removed from here."""
    BROKEN = "broken"
    """An object is missing or damaged here: rebuild the private clone."""
    CANNOT = "cannot"
    """No access, no network, wrong address: a person or time has to help."""


@dataclass(frozen=True)
class Refusal:
    """A git message, understood."""

    kind: Kind
    cause: str
    remedy: str
    next_command: str = "kb doctor"


_TABLE: tuple[tuple[str, Kind, str], ...] = (
    (
        r"\.lock': File exists|Unable to create '.*\.lock'",
        Kind.REMOTE_LOCK,
        "ask whoever runs the remote to see who holds this file; kb never removes a lock on a server",
    ),
    (
        (
            r"is at [0-9a-f]+ but expected|stale info|non-fast-forward|fetch first|incorrect old value"
            r"|failed to update ref|reference already exists|remote ref .* changed|cannot lock ref.*unable to resolve"
        ),
        Kind.RACE,
        "this is expected when somebody pushes at the same moment; it is tried again by itself",
    ),
    (
        r"GH006|GH013|protected branch|not allowed to push|Protected Branch|TF402455|changes must be made through a pull",
        Kind.PROTECTED,
        "merge the batch branch that kb names, or let the job's account push to the branch",
    ),
    (
        r"hook declined|pre-receive|GH001|exceeds .* file size limit|push declined",
        Kind.REFUSED,
        "read the server's words above; kb finds the file and sets it aside",
    ),
    (
        r"dubious ownership|safe\.directory",
        Kind.CANNOT,
        "run kb as the owner of the folder, chown it, or add exactly this folder to safe.directory (never *)",
    ),
    (
        r"'?iat'?|JWT|Issued at|token (has )?expired|expired token|clock",
        Kind.CANNOT,
        "the server refuses the token's time: set this machine's clock (chronyc makestep), then issue a new token",
    ),
    (
        (
            r"Authentication failed|could not read (Username|Password)|Permission denied|access denied|403|401"
            r"|terminal prompts disabled|publickey"
        ),
        Kind.CANNOT,
        (
            "give the job's account a credential with write access: credential_helper or ssh_command in the user's "
            "config.toml"
        ),
    ),
    (
        (
            r"bad object|missing blob|object file .* is empty|loose object .* is corrupt|unable to read tree"
            r"|invalid object|bad tree object|inflate:|packfile .* (corrupt|cannot)|fatal: bad tree"
        ),
        Kind.BROKEN,
        "kb rebuilds its private clone from the remote and keeps the damaged one beside it",
    ),
    (
        (
            r"does not appear to be a git repository|not found|Could not resolve host|unable to access"
            r"|Could not read from remote|Connection (refused|timed out|reset)|early EOF|hung up|does not exist"
        ),
        Kind.CANNOT,
        "check the address (KB_REMOTE, or remote in the user's config.toml) and the network",
    ),
    (r"No space left", Kind.CANNOT, "free some disk space"),
    (r"shallow", Kind.CANNOT, "the history is cut short: git fetch --unshallow"),
)


def explain(message: str) -> Refusal:
    """Find what a message of git means; the first line of the table that matches decides."""
    words = _line_that_says_most(message)
    for pattern, kind, remedy in _TABLE:
        if re.search(pattern, message, re.IGNORECASE if kind is Kind.PROTECTED else 0):
            return Refusal(kind, words, remedy)
    return Refusal(Kind.CANNOT, words, "read git's words above")


def _line_that_says_most(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith("hint:")]
    marked = [line for line in lines if line.startswith(("remote:", "fatal:", "error:", "!", "To "))]
    kept = [
        line for line in marked or lines if not line.startswith(("To ", "error: failed to push some refs"))
    ]
    return " / ".join(dict.fromkeys(kept[:4])) or "git gave no reason"
