"""Reads lines of syslog: of RFC 5424, of RFC 3164 (``Nov 25 14:38:17 host program[7]: ...``), and of files with full times.

A line of RFC 3164 has no year. It gets the year of the file's last change, or the year before if the time would be more than a
day after this change: the latest year in which no line is in the future. The day allows for zones and for clocks that are ahead.
The 29th of February gets the latest year with such a day.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from warehouse.catalog.line_patterns import line_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

__all__ = [
    "FIELDS",
    "MONTHS",
    "NOTHING",
    "PATTERNS",
    "TEXTS",
    "YEARLESS",
    "declared_year",
    "is_syslog",
    "syslog_fields",
    "with_year",
]

FIELDS = ("priority", "moment", "host", "program", "pid", "message_id", "data", "message")
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
TEXTS = tuple(name for name in FIELDS if name not in ("priority", "moment"))
"""Fields that are text whatever the sample has: some programs write a pid that is no number."""
NOTHING = "-"
"""The text of a missing field in RFC 5424."""
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_VERSION_1 = (
    r"<(?P<priority>\d{1,3})>1 (?P<moment>\d\S*|-) (?P<host>\S+) (?P<program>\S+) (?P<pid>\S+) (?P<message_id>\S+) "
    r'(?P<data>-|(?:\[(?:[^\]"]|"(?:[^"\\]|\\.)*+")*+\])++)(?: ' + "\ufeff?" + r"(?P<message>.*))?"
)
_OTHER_FORMS = (
    r"(?:<(?P<priority>\d{1,3})>)?"
    rf"(?P<moment>{_MONTH} [ \d]?\d (?:\d{{4}} )?\d\d:\d\d:\d\d(?:\.\d{{1,9}})?"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\S*[^\s:])?)"
    r"(?:: (?=%)| (?P<host>\S+) (?:: (?=%))?)"
    r"(?:(?P<program>[^\s:\[]+)(?:\[(?P<pid>[^\]]*)\])?(?: [(<][^)>]*[)>])?:(?: |(?!.)))?(?P<message>.*)"
)
"""Lines such as "last message repeated 3 times" name no program. Devices of Cisco may name no host, and write a colon before
their program, ``: %ASA-6-302013: ...``."""
PATTERNS = (_VERSION_1, _OTHER_FORMS)
"""The forms of a line: the first one that it matches counts. In a line of the first form :data:`NOTHING` means no value."""
YEARLESS = r"([A-Z][a-z]{2}) ([ \d]?\d) (?:(\d{4}) )?([\d:.]+)"
"""The parts of a time as of RFC 3164: month, day, the year that some devices write, clock."""
_YEARLESS = re.compile(YEARLESS, re.ASCII)
_CERTAIN = (
    re.compile(rf"(?:<\d{{1,3}}>)?{_MONTH} [ \d]?\d (?:\d{{4}} )?\d\d:\d\d:\d\d\S* \S+ \S", re.ASCII),
    re.compile(r"<\d{1,3}>1 (?:\d{4}-\d\d-\d\dT\S+|-) \S+ \S+ \S+ \S+ (?:-|\[)", re.ASCII),
    re.compile(r"(?:<\d{1,3}>)?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S* \S+ [^\s:\[]+(?:\[[^\]]*\])?:(?: |$)", re.ASCII),
    re.compile(r"(?:<\d{1,3}>)?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*(?: \S+ )?: %", re.ASCII),
)
_LEAP_DAY = "02-29"
_ALLOWED_AHEAD = timedelta(days=1)


def is_syslog(line: str) -> bool:
    """Whether a line is certainly a line of syslog."""
    return any(pattern.match(line) for pattern in _CERTAIN)


def syslog_fields(line: str, changed: datetime | None = None, year: str | None = None) -> dict[str, str | None] | None:
    """Return the fields of a line; None if it is no line of syslog.

    Parameters
    ----------
    line
        The line.
    changed
        When the line's file was last changed, in the zone of its times. Without it and ``year``, a time stays as it is written.
    year
        The declared year of lines without a year.

    Examples
    --------
    >>> fields = syslog_fields("<13>Nov 25 14:38:17 web1 sshd[7]: Accepted key", year="2024")
    >>> fields["moment"], fields["host"], fields["program"], fields["pid"], fields["message"]
    ('2024-11-25 14:38:17', 'web1', 'sshd', '7', 'Accepted key')

    """
    for number, text in enumerate(PATTERNS):
        fields = line_pattern(text).fields(line)
        if fields is None:
            continue
        if number == 0:
            fields = {name: None if value == NOTHING and name != "message" else value for name, value in fields.items()}
        add_year = partial(with_year, changed=changed, year=year)
        return {name: add_year(value) if name == "moment" and value else value for name, value in fields.items()}
    return None


def with_year(moment: str, changed: datetime | None = None, year: str | None = None) -> str:
    """Return a time without a year with the year added, ``2024-11-25 14:38:17``, if it is known; other times unchanged.

    >>> from datetime import datetime
    >>> changed = datetime(2026, 1, 2, 12)
    >>> [with_year(time, changed) for time in ("Dec 31 23:00:00", "Jan  1 00:00:00", "Jan  3 11:00:00", "Feb 29 08:00:00")]
    ['2025-12-31 23:00:00', '2026-01-01 00:00:00', '2026-01-03 11:00:00', '2024-02-29 08:00:00']
    """
    parts = _YEARLESS.fullmatch(moment)
    if parts is None:
        return moment
    month, day, written_year, clock = parts.groups()
    month_day_clock = f"{MONTHS.index(month) // 3 + 1:02}-{int(day):02} {clock}"
    known_year = written_year or year
    if known_year is None and changed is not None:
        limit = changed + _ALLOWED_AHEAD
        latest = limit.year - (month_day_clock[:14] > f"{limit:%m-%d %H:%M:%S}")
        known_year = str(latest - latest % 4 if month_day_clock.startswith(_LEAP_DAY) else latest)
    return moment if known_year is None else f"{known_year}-{month_day_clock}"


def declared_year(options: Iterable[tuple[str, str]]) -> str | None:
    """Return the year that the options of a stream declare for lines without a year; None if they declare none."""
    return next((value for key, value in options if key.lower() == "year"), None)
