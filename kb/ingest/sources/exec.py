"""Whatever a program of the user prints as JSON Feed: the escape hatch for sources no kind can read.

Only a program that the user's own allow-list names (``~/.config/kb/allow`` or ``KB_ALLOW``, outside the base) is run: no
shell, no arguments, an empty folder, little environment, a minute, 15 MiB. The window comes in ``KB_SINCE``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kb.config import load_user
from kb.http import Answer
from kb.ingest.contract import Entry, NoAnswer, Skip, Task, one_line
from kb.ingest.feeds import read_document
from kb.ingest.sources import feed

KIND = "exec"
SECONDS = 60.0
MAX_BYTES = 15 << 20
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


def fetch(task: Task) -> Iterator[feed.Post]:
    """Run the program and yield the posts it prints."""
    program = _allowed(task.config.program)
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment["KB_SINCE"] = task.window.since.isoformat() if task.window.since else ""
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        # files, no pipes: a program it leaves behind would keep a pipe open, and all would wait for it
        try:
            process = subprocess.Popen(
                [program], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment, start_new_session=True
            )  # fmt: skip
        except OSError as error:
            raise NoAnswer("unreachable", program, f"could not be run: {error}") from error
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired as error:
            raise NoAnswer("too-slow", program, f"no end after {SECONDS:.0f} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        size = out.seek(0, os.SEEK_END)
        if size > MAX_BYTES:
            raise NoAnswer("too-large", program, f"it printed {size:,} bytes")
        out.seek(0)
        body = out.read()
        err.seek(max(0, err.seek(0, os.SEEK_END) - 400))
        said = one_line(err.read().decode("utf-8", "replace"), 200)
    if code:
        raise NoAnswer("unreachable", program, f"it ended with {code}: {said}")
    task.report.tally.bytes += len(body)
    place = f"https://localhost/{Path(program).name}"
    yield from feed.posts(read_document(Answer(place, 200, {}, body)), place, task)


def _allowed(name: str) -> str:
    listed = load_user().allow
    if not name or name not in listed:
        raise NoAnswer(
            "refused", name or "exec", "the program is not on your own allow-list",
            remedy=f"if you trust it, add a line {name!r} to ~/.config/kb/allow or to KB_ALLOW",
        )  # fmt: skip
    found = shutil.which(name)
    if found is None:
        raise NoAnswer("unreachable", name, "there is no such program")
    return found


def to_entry(raw: feed.Post, task: Task) -> Entry | Skip:
    """Turn a post into an entry."""
    return feed.to_entry(raw, task)
