"""This machine's clock against the remote's: a clock that is off gets tokens refused and dates wrong."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from kb.sync.doctor.contract import Finding, Patient, State

TITLE = "the clock agrees with the remote"
TOLERANCE = dt.timedelta(minutes=2)
"""Tokens of hosts are refused from about this much on."""


def check(patient: Patient) -> Iterator[Finding]:
    """See the module."""
    place = patient.place
    if place is None:
        yield Finding(State.NOTE, "not checked: the remote is not reached")
        return
    now = dt.datetime.now(dt.UTC)  # the real clock is what is checked, not KB_NOW
    if place.url.startswith(("http://", "https://")):
        said = remote_date(patient, place.url)
        if said is not None and abs(now - said) > TOLERANCE:
            yield Finding(
                State.FAIL, f"this clock says {now:%H:%M:%S}, the remote {said:%H:%M:%S} UTC",
                "chronyc makestep, or timedatectl set-ntp true",
            )  # fmt: skip
        elif said is None:
            yield Finding(State.NOTE, "not checked: the remote gave no Date")
    else:
        yield Finding(State.NOTE, "not checked: the remote is not reached over HTTP")


def remote_date(patient: Patient, url: str) -> dt.datetime | None:
    """What an HTTP remote calls the present; None where it does not say."""
    from kb.http import Client, NoAnswer

    try:
        with Client(patient.user) as client:
            answer = client.get(f"{url.rstrip('/')}/info/refs?service=git-upload-pack")
    except NoAnswer:
        return None
    try:
        return parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return None
