"""What a scheduler needs to run the whole chain: units for systemd, a line for cron, a workflow for GitHub.

The chain brings the job's own clone to the branch first, so that nothing is published from stale pages, and syncs last
whatever happened before. Each sync of a scheduled job renews the heartbeat.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from kb.config import UserSettings
from kb.errors import WrongUse
from kb.store import Base
from kb.sync.place import find_clone, shown


@dataclass(frozen=True)
class Job:
    """One scheduled job."""

    clone: str
    """Folder of the clone that belongs to the job."""
    prefix: str
    """Folder of the base in it, ``""`` or ``"folder/"``."""
    address: str
    """Remote, without password."""
    hour: int = 2
    minute: int = 5

    @property
    def base(self) -> str:
        """Folder of the base."""
        return f"{self.clone}/{self.prefix}".rstrip("/")


def parse_time(text: str) -> tuple[int, int]:
    """Read ``02:05``.

    Raises:
        WrongUse: It is no time of day.
    """
    hour, _, minute = text.partition(":")
    if hour.isascii() and hour.isdigit() and minute.isascii() and minute.isdigit():
        found = int(hour), int(minute)
        if found[0] < 24 and found[1] < 60:  # noqa: PLR2004  hours and minutes
            return found
    raise WrongUse(f"--at {text}: no time of day", cause="it must be HH:MM", remedy="for example --at 02:05")


def steps(kb: str, base: str) -> str:
    """The chain as a POSIX shell script; a step that fails never stops the ones behind it."""
    run = f"{shlex.quote(kb)} -C {shlex.quote(base)}"
    return f"""set -u
{run} sync --once || true
since=$(date -u -d '3 days ago' +%F 2>/dev/null || date -u -v-3d +%F)
{run} ingest --since "$since" || true
{run} triage || true
{run} stale --json | sed -n 's/.*"next": *"kb repro \\([a-z0-9-]*\\)".*/\\1/p' | sort -u | while read -r name; do
  {run} repro "$name" </dev/null || true
done
{run} publish || true
{run} sync --once
"""


def recipe(job: Job) -> str:
    """How the job gets a clone of its own, as comments."""
    clone = shlex.quote(job.clone)
    return f"""# The job needs a clone of its own, in which nobody works:
#   git clone {shlex.quote(job.address or "ADDRESS")} {clone}
#   mkdir -p ~/.config/kb && echo {clone} >> ~/.config/kb/owned
# kb doctor, in any clone, alarms when this job has not been heard of for 26 hours.
"""


def program() -> str:
    """Path of kb as it runs now."""
    beside = Path(sys.executable).with_name("kb")
    return str(beside) if beside.exists() else shutil.which("kb") or "kb"


def print_systemd(job: Job, kb: str) -> str:
    """A script, a user service and its timer."""
    return f"""{recipe(job)}# Then save these three files and run: systemctl --user enable --now kb.timer

# {job.clone}.sh
{_script(job, kb)}
# ~/.config/systemd/user/kb.service
[Unit]
Description=kb: ingest, triage, reproduce, publish, sync
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart=/bin/sh "{_unit_path(job.clone)}.sh"
TimeoutStartSec=3h
Nice=10

# ~/.config/systemd/user/kb.timer
[Unit]
Description=kb every day

[Timer]
OnCalendar=*-*-* {job.hour:02}:{job.minute:02}:00
RandomizedDelaySec=10m
Persistent=true

[Install]
WantedBy=timers.target
"""


def _unit_path(path: str) -> str:
    r"""A path inside double quotes in a unit file, where \\, ", % and $ have a meaning."""
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")


def print_cron(job: Job, kb: str) -> str:
    """A script and its line for ``crontab -e``."""
    return f"""#!/bin/sh
{recipe(job)}# Save this as {job.clone}.sh and add this line with crontab -e:
#   {job.minute} {job.hour} * * * /bin/sh {shlex.quote(job.clone + ".sh")} >> {shlex.quote(job.clone + ".log")} 2>&1
{_script(job, kb)}"""


def _script(job: Job, kb: str) -> str:
    return f"KB_SCHEDULED=1\nexport KB_SCHEDULED\n{steps(kb, job.base)}"


def print_github(job: Job) -> str:
    """A workflow; its clone is its own and new each time."""
    base = job.prefix.rstrip("/") or "."
    chain = "".join(f"          {line}\n" for line in steps("kb", base).splitlines())
    return f"""# .github/workflows/kb.yml
# The host stops schedules after 60 quiet days without a word: kb doctor, in any clone, alarms after 26 hours.
name: kb
on:
  schedule:
    - cron: "{job.minute} {job.hour} * * *"
  workflow_dispatch: {{}}
permissions:
  contents: write
concurrency:
  group: kb-sync
  cancel-in-progress: false
jobs:
  kb:
    runs-on: ubuntu-latest
    timeout-minutes: 180
    env:
      KB_SCHEDULED: "1"
      KB_OWNED: ${{{{ github.workspace }}}}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-python@v5
        with:
          python-version: "3.11"
      - run: pip install .  # where the repository holds kb; else the address kb is installed from
      - run: |
{chain}"""


def print_schedule(base: Base, user: UserSettings, kind: str, *, at: str, clone: str | None) -> str:
    """What a scheduler of one kind needs.

    Args:
        base: The base.
        user: The user's settings.
        kind: ``systemd``, ``cron`` or ``github``.
        at: Time of day, HH:MM.
        clone: Clone that belongs to the job; None for this one's path with ``-job`` behind it.

    Raises:
        WrongUse: ``at`` is no time of day.
    """
    hour, minute = parse_time(at)
    found = find_clone(base)
    top, prefix = (str(found[0].directory), found[1]) if found else (str(base.root), "")
    address = shown(user.remote or (found[0].maybe("config", "remote.origin.url") if found else ""))
    job = Job(clone or f"{top}-job", prefix, address, hour, minute)
    if kind == "github":
        return print_github(job)
    return (print_systemd if kind == "systemd" else print_cron)(job, program())
