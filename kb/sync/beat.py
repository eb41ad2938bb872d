"""The heartbeat: ``refs/kb/heartbeat`` on the remote says when sync last ran, and when the scheduled job did.

Hosts switch schedules off in silence, so other clones look at the age of this record instead of waiting for an error.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from typing import Any

from kb import clock
from kb.config import UserSettings
from kb.files import write_atomic
from kb.sync.commit import commit_tree
from kb.sync.git import Git
from kb.sync.place import Place
from kb.sync.push import Lease, push

REF = "refs/kb/heartbeat"
REST = dt.timedelta(minutes=10)
"""A younger record with the same words is not renewed."""


def fetch_beat(git: Git, place: Place) -> tuple[str, dict[str, Any]]:
    """The remote's heartbeat: its commit, ``""`` for none, and what it says."""
    commit = git.maybe("ls-remote", place.url, REF).split("\t")[0]
    if not commit:
        return "", {}
    if not git.ok("cat-file", "-e", commit) and not git.ok(
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", place.url, f"+{REF}:{REF}"
    ):
        return commit, {}
    try:
        value = json.loads(git.maybe("log", "-1", "--format=%B", commit))
    except ValueError:
        return commit, {}
    return commit, value if isinstance(value, dict) else {}


def write_beat(git: Git, place: Place, user: UserSettings, exit_code: int, tip: str) -> str:
    """Renew the heartbeat; "" or why the remote did not take it. Two jobs at once: one of them wins, which is fine."""
    commit, said = fetch_beat(git, place)
    now = clock.now()
    is_scheduled = place.owned or bool(os.environ.get("KB_SCHEDULED"))
    value = {
        "at": clock.stamp(now),
        "exit": exit_code,
        "tip": tip,
        "scheduled_at": clock.stamp(now) if is_scheduled else str(said.get("scheduled_at", "")),
    }
    if _is_fresh(said, value, now):
        value = said
    else:
        message = json.dumps(value, indent=2) + "\n"
        new = commit_tree(git, git.text("mktree", given=b""), [], message, user)
        refusal = push(git, place, new, Lease(REF, commit))
        if refusal is not None:
            return f"heartbeat not written: {refusal.cause}"
        git.output("update-ref", REF, new)
    data = json.dumps(value, indent=2) + "\n"
    write_atomic(place.folder / "heartbeat.json", data.encode(), scratch=place.folder / "tmp")
    return ""


def _is_fresh(said: dict[str, Any], value: dict[str, Any], now: dt.datetime) -> bool:
    """True if the record says the same and is young."""
    field = "scheduled_at" if value["scheduled_at"] == value["at"] else "at"
    try:
        heard = dt.datetime.fromisoformat(str(said.get(field, "")))
    except ValueError:
        return False
    is_young = heard.tzinfo is not None and dt.timedelta(0) <= now - heard < REST
    return is_young and said.get("exit") == value["exit"] and said.get("tip") == value["tip"]
