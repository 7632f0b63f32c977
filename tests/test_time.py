from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.time import (
    DAY,
    HOUR,
    MINUTE,
    NEVER,
    SECOND,
    at_slot,
    format_duration,
    format_instant,
    grid_slot,
    parse_duration,
    parse_instant,
    slot,
    superseded,
    to_datetime,
    to_micros,
)

INSTANTS = st.integers(-62_135_596_800_000_000, NEVER)
INTERVALS = st.integers(1, 3650 * DAY)
DURATIONS = st.integers(0, 10**18)

# The slots of anchor A and interval D: each ends with its instant, none is lost between two.
#
#      A-D       A        A+D       A+2D
#   ----]--------]---------]---------]---
#   -1      0         1         2


@pytest.mark.parametrize(
    ("instant", "number"),
    [(-HOUR - 1, -1), (-HOUR, -1), (-HOUR + 1, 0), (-1, 0), (0, 0), (1, 1), (HOUR, 1), (HOUR + 1, 2), (2 * HOUR, 2)],
)
def test_slots(instant: int, number: int) -> None:
    """An instant on the grid closes its slot; a microsecond later the next one has begun."""
    assert slot(1000 + instant, 1000, HOUR) == number


@given(INSTANTS, INSTANTS, INTERVALS)
def test_slot_is_the_rounded_up_quotient(instant: int, anchor: int, interval: int) -> None:
    """Slots are exact for any sign and size: ceil((t - A) / D)."""
    assert slot(instant, anchor, interval) == ceil(Fraction(instant - anchor, interval))
    assert grid_slot(instant, anchor, interval) == floor(Fraction(instant - anchor, interval))


@given(INSTANTS, INSTANTS, INTERVALS)
def test_an_instant_lies_in_its_slot(instant: int, anchor: int, interval: int) -> None:
    """Slots are half-open, with their closing instant."""
    number = slot(instant, anchor, interval)
    assert at_slot(number - 1, anchor, interval) < instant <= at_slot(number, anchor, interval)
    assert at_slot(grid_slot(instant, anchor, interval), anchor, interval) <= instant


@given(st.integers(-(10**9), 10**9), INSTANTS, INTERVALS)
def test_grid_points(number: int, anchor: int, interval: int) -> None:
    """At a grid point both ways of counting agree."""
    instant = at_slot(number, anchor, interval)
    assert slot(instant, anchor, interval) == grid_slot(instant, anchor, interval) == number


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0s", 0),
        ("90s", 90 * SECOND),
        ("10m", 10 * MINUTE),
        ("1h", HOUR),
        ("7d", 7 * DAY),
        ("2w", 14 * DAY),
        ("1h30m", 90 * MINUTE),
        ("250ms", 250_000),
        ("5us", 5),
        (" 1h ", HOUR),
        ("PT1H30M", 90 * MINUTE),
        ("P1D", DAY),
        ("P2W", 14 * DAY),
        ("P1DT12H", 36 * HOUR),
        ("PT0.5S", SECOND // 2),
        ("PT1.000001S", SECOND + 1),
    ],
)
def test_durations(text: str, duration: int) -> None:
    """Durations are written short or by ISO 8601."""
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["", "1", "h", "-1h", "1.5h", "1 h", "1H", "1y", "P", "PT", "P1M", "P1Y", "PT1,5S", "h1"]
)
def test_no_durations(text: str) -> None:
    """What is of no fixed length or not whole is refused, with examples."""
    with pytest.raises(ValueError, match="is not a duration such as 90s"):
        parse_duration(text)


@given(DURATIONS)
def test_durations_read_back(duration: int) -> None:
    """The text of any duration means that duration."""
    assert parse_duration(format_duration(duration)) == duration


@given(st.integers(0, 99), st.integers(0, 999), st.integers(0, 99), st.integers(0, 99), st.integers(0, 10**6 - 1))
def test_both_spellings_agree(days: int, hours: int, minutes: int, seconds: int, micros: int) -> None:
    """ISO 8601 and the short form of the same parts are the same."""
    iso = f"P{days}DT{hours}H{minutes}M{seconds}.{micros:06}S"
    assert parse_duration(iso) == parse_duration(f"{days}d{hours}h{minutes}m{seconds}s{micros}us")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01 00:00:00.000001", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", NEVER),
    ],
)
def test_instants(text: str, instant: int) -> None:
    """Instants have any offset; without one they are UTC."""
    assert parse_instant(text) == instant


@pytest.mark.parametrize("text", ["", "now", "2013-13-01", "2013-01-01T25:00:00Z", "1357016400"])
def test_no_instants(text: str) -> None:
    """What is no instant is refused, with an example."""
    with pytest.raises(ValueError, match="is not an instant such as"):
        parse_instant(text)


@given(INSTANTS)
def test_instants_read_back(instant: int) -> None:
    """The text and the datetime of any instant mean that instant, to the microsecond."""
    assert parse_instant(format_instant(instant)) == instant
    assert to_micros(to_datetime(instant)) == instant
    assert to_datetime(instant).tzinfo is UTC


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)), st.integers(-14 * 60, 14 * 60))  # noqa: DTZ001 - an offset is added
def test_offsets(moment: datetime, minutes: int) -> None:
    """An instant is the same with whatever offset it is written; a naive one is UTC."""
    elsewhere = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    assert to_micros(elsewhere) == to_micros(moment)


@given(st.lists(st.integers(0, 100), max_size=12), st.integers(0, 100), st.integers(0, 20))
def test_what_a_clock_that_was_ahead_superseded(instants: list[int], now: int, retain: int) -> None:
    """An instant is over if a later instant, not ahead of the clock, is old enough; so are all earlier instants."""
    expected = 0
    for position in range(len(instants)):
        past = [instant for instant in instants[position:] if instant <= now]
        if not past or past[0] + retain > now:
            break
        expected += 1
    assert superseded(iter(instants), retain, now) == expected
