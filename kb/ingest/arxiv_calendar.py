"""When arXiv announces: https://info.arxiv.org/help/availability.html.

Submissions close at 14:00 Eastern time, Monday to Friday; announcements are at 20:00 Eastern time, Sunday to Thursday.
There is none on the evenings before the days that arXiv lists as holidays. Moderation can hold a paper for days longer,
so the moment computed here is the earliest possible one, never a date of record.
"""

from __future__ import annotations

import datetime as dt
import zoneinfo

EASTERN = zoneinfo.ZoneInfo("America/New_York")
CLOSES, ANNOUNCES = dt.time(14), dt.time(20)
SATURDAY, SUNDAY = 5, 6
NO_BATCH = frozenset({dt.date(2026, 6, 19), dt.date(2026, 7, 3)})
"""Weekdays on which no new batch is dated, as far as they are known here."""


def earliest_announcement(submitted: dt.datetime) -> dt.datetime:
    """The first moment at which a paper submitted then can have been announced, UTC."""
    local = submitted.astimezone(EASTERN)
    closing = local.date()
    if local.time() >= CLOSES:
        closing += dt.timedelta(days=1)
    while closing.weekday() >= SATURDAY:
        closing += dt.timedelta(days=1)
    # what closes on Friday is announced on Sunday evening, everything else on its own evening
    evening = closing + dt.timedelta(days=2) if closing.weekday() == SATURDAY - 1 else closing
    return dt.datetime.combine(evening, ANNOUNCES, EASTERN).astimezone(dt.UTC)


def why_quiet(now: dt.datetime) -> str:
    """Why there is no new batch at this moment, or nothing."""
    local = now.astimezone(EASTERN)
    day = local.date()
    if day.weekday() == SATURDAY or (day.weekday() == SUNDAY and local.time() < ANNOUNCES):
        return "weekend: arXiv announces nothing between Friday and Sunday evening"
    if day in NO_BATCH:
        return f"{day}: arXiv announces nothing on this holiday"
    return ""


def latest_batch(now: dt.datetime) -> dt.date:
    """Day of the newest batch that must be out by ``now``: batches are dated Monday to Friday, out the evening before."""
    local = now.astimezone(EASTERN) - dt.timedelta(hours=2)  # feeds follow the announcement by an hour or two
    day = local.date() + dt.timedelta(days=1) if local.time() >= ANNOUNCES else local.date()
    while day.weekday() >= SATURDAY or day in NO_BATCH:
        day -= dt.timedelta(days=1)
    return day
