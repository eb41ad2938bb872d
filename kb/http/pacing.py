"""How often a host is asked, across all processes of a user, and the clocks that waiting uses.

arXiv's terms of use (https://info.arxiv.org/help/api/tou.html) ask for one request every three seconds on a single
connection over API, RSS and OAI together, so its hosts form one group whose lock is held for the whole request.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kb.errors import WrongUse

ARXIV = "arxiv.org"
ARXIV_S = 3.0
"""Seconds between two requests to arXiv; its terms of use."""
DEFAULT_S = 1.0
"""Seconds between two requests to any other public host."""
BLOCK_S = 4 * 3600.0
"""How long arXiv is left alone after it said 403."""
BLOCK_OTHER_S = 15 * 60.0
"""How long any other host is; many say 403 to a single page."""
LOCK_WAIT_S = 180.0


class Time(Protocol):
    """The clocks of waiting; tests pass one that does not wait."""

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def jitter(self) -> float:
        """A number in 0–1 that spreads retries of many clients."""
        ...


class SystemTime:
    """The clocks of this machine; CLOCK_MONOTONIC is the same for all its processes."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def jitter(self) -> float:
        return random.random()  # noqa: S311  spreads load, guards nothing


SYSTEM_TIME = SystemTime()


def group_of(host: str) -> str:
    """The hosts that are paced together: all of arXiv is one."""
    return ARXIV if host == ARXIV or host.endswith(f".{ARXIV}") else host


def pace_override() -> float | None:
    """``KB_PACE``: seconds between two requests to any host, 0 to turn pacing off.

    Raises:
        WrongUse: It is no number.
    """
    return _seconds("KB_PACE", least=0.0)


def request_override() -> float | None:
    """``KB_REQUEST_S``: most seconds that one request may take, all its tries and redirects together.

    Raises:
        WrongUse: It is no number.
    """
    return _seconds("KB_REQUEST_S", least=0.1)


def _seconds(name: str, *, least: float) -> float | None:
    given = os.environ.get(name)
    if not given:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not least <= seconds < float("inf"):
        raise WrongUse(
            f"{name}={given!r} is no number of seconds",
            cause=f"it must be {least:g} or more",
            remedy="unset it",
        )
    return seconds


@dataclass(frozen=True)
class Pacer:
    """Spaces requests per group; state lives outside every base, because a host does not care which base asks."""

    time: Time
    folder: Path

    @staticmethod
    def default_folder() -> Path:
        """Folder shared by all processes of this user."""
        runtime = os.environ.get("XDG_RUNTIME_DIR") or str(Path(tempfile.gettempdir()) / f"kb-{os.getuid()}")
        return Path(runtime) / "kb" / "pace"

    @contextlib.contextmanager
    def turn(self, group: str, seconds: float) -> Iterator[None]:
        """Wait until ``group`` may be asked again; for arXiv, hold its one connection until the block ends."""
        if seconds <= 0:
            yield
            return
        import filelock

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / re.sub(r"[^a-z0-9.-]", "_", group)
        with contextlib.ExitStack() as stack:
            lock = filelock.FileLock(f"{path}.lock", timeout=LOCK_WAIT_S, thread_local=False)
            stack.enter_context(lock.acquire())
            last = self._read(path)
            now = self.time.monotonic()
            # a reading from before the last boot may lie in the future
            if last is not None and last <= now < last + seconds:
                self.time.sleep(last + seconds - now)
            self._write(path)
            if group != ARXIV:
                stack.close()
                yield
                return
            try:
                yield
            finally:
                self._write(path)

    def _read(self, path: Path) -> float | None:
        with contextlib.suppress(OSError, ValueError):
            return float(path.read_text(encoding="ascii"))
        return None

    def _write(self, path: Path) -> None:
        path.write_text(f"{self.time.monotonic()!r}", encoding="ascii")

    def _denied(self, group: str) -> Path:
        return self.folder / (re.sub(r"[^a-z0-9.-]", "_", group) + ".denied")

    def block(self, group: str) -> None:
        """Remember that a group denied us, so that no process asks it for a while."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(self._denied(group))

    def denied_for(self, group: str) -> float:
        """Seconds a group is still left alone after it denied us."""
        last = self._read(self._denied(group))
        now = self.time.monotonic()
        length = BLOCK_S if group == ARXIV else BLOCK_OTHER_S
        return max(0.0, last + length - now) if last is not None and last <= now else 0.0
