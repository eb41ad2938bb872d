"""Validators of conditional requests, kept under ``.kb/`` and only after everything they stand for is committed.

They are used again only if the next run asks for no more than the last one did and everything the last answer gave is
still known: a 304 then means that nothing is missing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Iterable
from pathlib import Path

from kb.http import Validators
from kb.ingest.contract import Window
from kb.ingest.known import Known
from kb.store import Base

MAX_AGE = dt.timedelta(days=30)
"""Older ones are dropped: some servers answer 304 for ever."""


def _path(base: Base, source: str) -> Path:
    return base.cache / "validators" / f"{source}.json"


def load(base: Base, source: str, window: Window, known: Known) -> dict[str, Validators]:
    """Validators of a source that may be used for this window."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(_path(base, source).read_bytes())
        age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(kept["stored"])
        covers = kept["since"] <= (window.since.isoformat() if window.since else "") and (
            not kept["until"] or (window.until is not None and window.until.isoformat() <= kept["until"])
        )
        if covers and age < MAX_AGE and known.has_all(kept["ids"]):
            return {url: Validators(*pair) for url, pair in kept["urls"].items()}
    return {}


def store(
    base: Base, source: str, window: Window, received: dict[str, Validators], ids: Iterable[str]
) -> None:
    """Keep validators after the commit; a source that sent none loses those it had."""
    path = _path(base, source)
    if not received:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {
        "stored": dt.datetime.now(dt.UTC).isoformat(),
        "since": window.since.isoformat() if window.since else "",
        "until": window.until.isoformat() if window.until else "",
        "urls": {url: [v.etag, v.last_modified] for url, v in sorted(received.items())},
        "ids": sorted(set(ids)),
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)
