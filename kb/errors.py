"""The whole error tree: what happened, why, what to do now, and the exit code.

    KbError
    ├── Findings           1   a check ran and found something
    ├── WrongUse           2   an option, a name or a setting is wrong
    │   ├── NothingMatches 2   a NAME or ID matches nothing
    │   ├── BadConfig      2   kb.toml, a source, a rule or a topic cannot be read
    │   └── BadInput       2   a file or text from outside cannot be used
    ├── NeedsPerson        3   a held block, a conflict, a missing review
    ├── PartlyDone         4   some of it failed, the rest is kept
    ├── CannotRun          5   no device, no weights, offline, package missing
    │   ├── NeedsGpu       5
    │   └── WrongResult    5   the fast path disagrees with the reference; nothing stored
    ├── Busy               6   another writer holds the lock
    └── RemoteRefused      7   the remote refused, tries used up, nothing lost

Every layer raises these; only `kb.cli` prints them. The numbers are the contract of the command line.
"""

from __future__ import annotations

from typing import ClassVar


class KbError(Exception):
    """Base of every error a user can meet.

    Args:
        what: What did not happen, in one sentence with the name of the thing.
        cause: Why, as observed here.
        remedy: What the user can do about it.
        next_command: A command that helps, printed after ``try:``.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, cause: str, remedy: str, next_command: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.remedy = remedy
        self.next_command = next_command or f"kb explain {self.exit_code}"


class Findings(KbError):
    """A check ran to its end and found something."""

    exit_code = 1


class WrongUse(KbError):
    """An option, an argument or a setting is wrong."""

    exit_code = 2


class NothingMatches(WrongUse):
    """A NAME or ID given by the user matches nothing."""


class BadConfig(WrongUse):
    """A settings file of the base or of the user cannot be used."""


class BadInput(WrongUse):
    """A file or text from outside cannot be used; nothing was changed."""


class NeedsPerson(KbError):
    """A person has to decide before this can go on."""

    exit_code = 3


class PartlyDone(KbError):
    """Some parts failed; what succeeded is kept."""

    exit_code = 4


class CannotRun(KbError):
    """This machine lacks something the run needs."""

    exit_code = 5


class NeedsGpu(CannotRun):
    """A GPU was asked for and none is usable."""


class WrongResult(CannotRun):
    """The fast path disagrees with its reference, so nothing was measured or stored."""


class Busy(KbError):
    """Another writer holds the lock."""

    exit_code = 6


class RemoteRefused(KbError):
    """The remote refused and the tries are used up; nothing was lost."""

    exit_code = 7


PRECEDENCE = (70, 130, 6, 2, 7, 5, 3, 4, 1, 0)
"""When several exit codes apply, the first of these wins."""


def worst(codes: list[int]) -> int:
    """Return the exit code that wins when several apply; 0 for none."""
    return min(codes, key=PRECEDENCE.index, default=0)
