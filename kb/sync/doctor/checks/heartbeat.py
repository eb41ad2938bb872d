"""The scheduled job was heard of lately. Schedules die in silence, so absence is the alarm."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from kb import clock
from kb.heartbeat import alarm, read_sync_state
from kb.sync.beat import fetch_beat
from kb.sync.doctor.contract import Finding, Patient, State
from kb.sync.git import Git

TITLE = "the scheduled job reports"


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    place = patient.place
    said: dict[str, object] = {}
    if place is not None and place.private.is_dir():
        said = fetch_beat(Git(place.private, config=place.config), place)[1]
    elif place is not None:
        with tempfile.TemporaryDirectory() as folder:
            git = Git(Path(folder), config=place.config)
            git.output("init", "--quiet", "--bare", "--template=", folder)
            said = fetch_beat(git, place)[1]
    heard = str(said.get("scheduled_at", "")) or read_sync_state(patient.base).scheduled_at
    if not heard:
        yield Finding(
            State.WARN,
            "no scheduled job was ever heard of",
            "kb schedule print --systemd (or --cron, --github)",
        )
    elif why := alarm(heard, clock.now()):
        yield Finding(
            State.FAIL,
            f"{why} ({heard})",
            "look at the schedule: systemctl list-timers, crontab -l, or the host's page",
        )
    else:
        yield Finding(State.OK, f"the scheduled job was heard of at {heard}")
