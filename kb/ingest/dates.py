"""Dates as sources write them, read strictly: a text that is not wholly understood is no date.

Nothing is guessed: no fuzzy parsing, no "today" for what is missing, no month or day that the text lacks. A zone that
the text does not carry comes from the source's settings and is marked as assumed. ``CST`` is US Central or China
Standard Time and is read in the source's zone. Formats: RFC 3339 and ISO 8601, RFC 822/2822 and its misspellings, asctime,
Y/M/D, 2026年6月10日, Unix seconds and milliseconds, and written-out English dates.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
import zoneinfo
from dataclasses import dataclass

from kb.model import DateStamp

MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"), 1)
    for name in names.split()
}  # fmt: skip
ZONES = {"z": 0, "ut": 0, "utc": 0, "gmt": 0, "est": -300, "edt": -240, "mst": -420, "mdt": -360, "pst": -480,
         "pdt": -420, "cet": 60, "cest": 120, "bst": 60, "jst": 540, "hkt": 480, "sgt": 480, "msk": 180}  # fmt: skip
"""Minutes east of UTC; only names with one meaning in practice. RFC 822 gives the American ones."""
AMBIGUOUS = frozenset({"cst", "cdt", "ist"})
"""Zone names that mean different things in different places; the source's zone decides."""
FIRST_YEAR, LAST_YEAR = 1900, 2199
EPOCH_S = re.compile(r"(\d{9,10})(?:\.\d+)?")
EPOCH_MS = re.compile(r"\d{12,13}")
MAX_CHARS = 80

_TIME = r"(?P<h>\d{1,2})(?:[:：时点]|\s*[时点]\s*)(?P<mi>\d{1,2})(?:[:：分]\s*(?P<s>\d{1,2})(?:[.,]\d{1,9})?秒?)?分?"
_ZONE = r"(?P<zone>[zZ]|[A-Za-z]{2,5}|(?:(?:UTC|GMT|utc|gmt)\s*)?[+-]\d{1,2}:?(?:\d{2})?|[A-Z][a-z]+/[A-Z][A-Za-z_/]+)"
_NOON = r"(?P<half>上午|下午|[aApP]\.?[mM]\.?)"
_DATE_YMD = r"(?P<y>\d{4})\s*(?P<sep>[-/.年])\s*(?P<m>\d{1,2})\s*(?P<sep2>[-/.月])\s*(?P<d>\d{1,2})\s*[日号]?"
_WEEKDAY = r"(?:\(?[(（]?\s*(?:星期|周|礼拜)[一二三四五六日天]\s*[)）]?\)?)?"
_YMD = re.compile(
    rf"{_DATE_YMD}\s*{_WEEKDAY}(?:(?:[tT\s,，]\s*|(?<=[日号]))(?:{_NOON}\s*)?{_TIME}\s*\(?{_ZONE}?\)?)?"
)
_DAY_FIRST = re.compile(
    rf"(?:[A-Za-z]{{3,9}}\.?,?\s+)?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[\s-]+(?P<mon>[A-Za-z]{{3,9}})\.?,?[\s-]+(?P<y>\d{{4}}|\d{{2}})"
    rf"(?:,?\s+(?:at\s+)?{_TIME}\s*(?:{_NOON})?\s*\(?{_ZONE}?\)?(?:\s*\([A-Za-z ]+\))?)?"
)
_MONTH_FIRST = re.compile(
    rf"(?:[A-Za-z]{{3,9}}\.?,?\s+)?(?P<mon>[A-Za-z]{{3,9}})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})"
    rf"(?:,?\s+(?:at\s+)?{_TIME}\s*(?:{_NOON})?\s*{_ZONE}?)?"
)
_ASCTIME = re.compile(
    rf"[A-Za-z]{{3}}\s+(?P<mon>[A-Za-z]{{3}})\s+(?P<d>\d{{1,2}})\s+{_TIME}\s+(?:{_ZONE}\s+)?(?P<y>\d{{4}})"
)
_COMPACT = re.compile(
    r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?:[tT](?P<h>\d{2})(?P<mi>\d{2})(?P<s>\d{2})?(?P<zone>[zZ]|[+-]\d{2}:?\d{2})?)?"
)
_PATTERNS = (_YMD, _DAY_FIRST, _MONTH_FIRST, _ASCTIME, _COMPACT)


@dataclass(frozen=True)
class ReadDate:
    """A date that a text states."""

    day: dt.date
    moment: dt.datetime | None
    """Aware, with the offset of the text or of the assumed zone; None where the text gives only a day."""
    zone: str
    """Zone that was assumed; empty where the text carried its own or gives only a day."""

    def stamp(self, field: str) -> DateStamp:
        """The date as a record: as precise as the text was."""
        at = self.moment.isoformat() if self.moment else self.day.isoformat()
        return DateStamp(at=at, field=field, zone=self.zone, assumed=bool(self.zone))


def read_date(text: str | float | None, zone: str) -> ReadDate | None:
    """Read a date, or return None where the text is not wholly one.

    Args:
        text: As the source gave it; Unix seconds or milliseconds too.
        zone: IANA zone of dates that carry none, from the source's settings.
    """
    if text is None or isinstance(text, bool):
        return None
    plain = " ".join(unicodedata.normalize("NFKC", str(text)).split())
    if not plain or len(plain) > MAX_CHARS:
        return None
    if epoch := _epoch(plain):
        return epoch
    for pattern in _PATTERNS:
        if found := pattern.fullmatch(plain):
            try:
                return _build(found.groupdict(), zone)
            except ValueError:  # day 31 of June, hour 25, unknown zone or month
                continue
    return None


def _epoch(text: str) -> ReadDate | None:
    if found := EPOCH_S.fullmatch(text):
        seconds = int(found.group(1))
    elif EPOCH_MS.fullmatch(text):
        seconds = int(text) // 1000
    else:
        return None
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return ReadDate(moment.date(), moment, "") if FIRST_YEAR <= moment.year <= LAST_YEAR else None


def _build(parts: dict[str, str | None], zone: str) -> ReadDate:
    day = dt.date(_year(parts), _month(parts), int(parts["d"] or 0))
    if not parts.get("h"):
        return ReadDate(day, None, "")
    hour, minute, second = (int(parts.get(key) or 0) for key in ("h", "mi", "s"))
    hour = _hour(hour, parts.get("half") or "")
    extra = dt.timedelta()
    if second == 60:  # noqa: PLR2004  a leap second
        second, extra = 59, dt.timedelta(seconds=1)
    if (hour, minute, second) == (24, 0, 0):
        hour, extra = 0, dt.timedelta(days=1)
    naive = dt.datetime.combine(day, dt.time(hour, minute, second)) + extra
    offset = _offset(parts.get("zone") or "")
    moment = naive.replace(tzinfo=zoneinfo.ZoneInfo(zone) if offset is None else offset)
    assumed = zone if offset is None else ""
    # a fixed offset in the record, so that it reads the same after zone rules change
    fixed = moment.astimezone(dt.timezone(moment.utcoffset() or dt.timedelta()))
    return ReadDate(fixed.date(), fixed, assumed)


def _year(parts: dict[str, str | None]) -> int:
    text = parts["y"] or ""
    year = int(text)
    if len(text) == 2:  # noqa: PLR2004  RFC 2822 §4.3: 00–49 are 2000–2049
        year += 2000 if year < 50 else 1900  # noqa: PLR2004
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise ValueError(f"year {year}")
    return year


def _month(parts: dict[str, str | None]) -> int:
    if number := parts.get("m"):
        return int(number)
    name = (parts.get("mon") or "").lower()
    if name not in MONTHS:
        raise ValueError(f"month {name!r}")
    return MONTHS[name]


def _hour(hour: int, half: str) -> int:
    mark = half.lower().replace(".", "")
    if not mark:
        return hour
    if not 1 <= hour <= 12 and mark in {"am", "pm"}:  # noqa: PLR2004
        raise ValueError(f"{hour} {half}")
    if mark in {"pm", "下午"}:
        return hour if hour >= 12 else hour + 12  # noqa: PLR2004
    return 0 if hour == 12 else hour  # noqa: PLR2004


def _offset(text: str) -> dt.tzinfo | None:
    """The zone a text names, or None where it names none that is unambiguous."""
    if not text or text.lower() in AMBIGUOUS:
        return None
    if "/" in text:
        try:
            return zoneinfo.ZoneInfo(text)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"zone {text!r}") from error
    if text.lower() in ZONES:
        return dt.timezone(dt.timedelta(minutes=ZONES[text.lower()]))
    found = re.fullmatch(r"(?:utc|gmt)?\s*([+-])(\d{1,2}):?(\d{2})?", text, re.IGNORECASE)
    if not found:
        raise ValueError(f"zone {text!r}")
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    if minutes >= 24 * 60:
        raise ValueError(f"offset {text!r}")
    return dt.timezone(dt.timedelta(minutes=-minutes if found[1] == "-" else minutes))


def moment_of(stamp: DateStamp, zone: dt.tzinfo) -> dt.datetime:
    """The moment a record's date means; a bare day is its first moment in ``zone``."""
    moment = dt.datetime.fromisoformat(stamp.at)
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def day_in(stamp: DateStamp, zone: dt.tzinfo) -> dt.date:
    """The day of a record's date in ``zone``; a bare day stays that day."""
    moment = dt.datetime.fromisoformat(stamp.at)
    return moment.astimezone(zone).date() if moment.tzinfo else moment.date()


_URL_DAY = re.compile(r"/(20\d{2})[/-](\d{1,2})[/-](\d{1,2})(?=[/-]|$)|/(20\d{2})(\d{2})(\d{2})(?=/)")


def date_in_path(path: str) -> ReadDate | None:
    """The day that the path of an address states, ``/2026/06/24/``; a month alone is none."""
    if found := _URL_DAY.search(path):
        year, month, day = (int(part) for part in found.groups() if part)
        try:
            return ReadDate(dt.date(year, month, day), None, "")
        except ValueError:
            return None
    return None
