"""The times that ``init --from`` proposes: arrival and end of a row, by names and values of a sample."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.durations import DURATION
from warehouse.catalog.expression import expression_faults
from warehouse.catalog.init_options import NEVER, InitOptions, column_or_expression
from warehouse.catalog.proposed_key import snake_case
from warehouse.catalog.sniffed_file import SniffedColumn, SniffedFile
from warehouse.catalog.time_names import ARRIVAL_NAME, EXPIRY_NAME, LIFETIME_NAME
from warehouse.errors import UsageError
from warehouse.time import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ProposedTimes", "column_sql", "proposed_times"]

_UNIT_SUFFIXES = (
    (re.compile(r"_(ms|msec|millis\w*)$"), "MILLISECOND", 1000),
    (re.compile(r"_(us|usec|micros\w*)$"), "MICROSECOND", 1),
    (re.compile(r"_(min|mins|minutes?|minuten)$"), "MINUTE", MINUTE),
    (re.compile(r"_(h|hrs?|hours?|stunden)$"), "HOUR", HOUR),
    (re.compile(r"_(d|days?|tage)$"), "DAY", DAY),
)
_DURATION_UNITS: dict[str, tuple[str, float]] = {
    "s": ("SECOND", SECOND),
    "ms": ("MILLISECOND", 1000),
    "us": ("MICROSECOND", 1),
    "ns": ("NANOSECOND", 0.001),
}
_NEVER = -1
"""Redis and others write this value for "no duration"."""
_INTEGERS = frozenset({"int", "bigint"})
_SQL_WORDS = frozenset({"date", "end", "from", "interval", "null", "start", "timestamp", "to"})


@dataclass(frozen=True)
class ProposedTimes:
    """Guessed expressions; ``first`` and ``last`` are arrivals, ``lifetimes`` are percentiles of lifetimes, all in microseconds.

    ``unset`` is the share of rows without an end; with ``endless`` these rows stay forever. ``unsure`` says why the sample does
    not decide the arrival.
    """

    arrival: str
    columns: tuple[str, ...]
    first: int | None
    expires: str | None = None
    lifetimes: tuple[float, ...] = ()
    others: tuple[str, ...] = ()
    last: int | None = None
    unset: float = 0.0
    unsure: str | None = None
    endless: bool = False

    @property
    def mean(self) -> float:
        """The mean lifetime."""
        return sum(self.lifetimes) / max(1, len(self.lifetimes))

    @property
    def lifetime(self) -> int | None:
        """The 99th percentile of the lifetimes."""
        return int(self.lifetimes[-2]) if self.lifetimes else None

    def visible_share(self, interval: int) -> float:
        """Return the share of rows with a lifetime above 0 that are live at one update or more."""
        lives = [life for life in self.lifetimes if life > 0]
        return sum(min(1.0, life / interval) for life in lives) / max(1, len(lives))


def proposed_times(found: SniffedFile, usable: Sequence[SniffedColumn], choices: InitOptions) -> ProposedTimes | None:
    """Return the times that the options name, and guesses for the other times; None if no column can be an arrival time."""
    arrival = None if choices.arrival is None else column_or_expression(choices.arrival, usable, "--arrival", allows_ts=False)
    if isinstance(arrival, SniffedColumn) and arrival.type not in ("timestamp", "date"):
        message = f'--arrival: the column "{arrival.name}" is {arrival.type}, no time'
        raise UsageError(f"{message}; name another, or give an expression")
    if isinstance(arrival, str):
        timestamp = next((column for column in usable if column.type in ("timestamp", "date")), None)
        first, last = (timestamp.low, timestamp.high) if timestamp else (None, None)
        times: ProposedTimes | None = ProposedTimes(arrival, (), first, last=last)
    else:
        times = _guessed_times(found, usable, arrival)
    if times is None or choices.expires is None:
        return times
    without_end = replace(times, expires=None, lifetimes=(), unset=0.0, columns=times.columns[:1])
    expires = None if choices.expires == NEVER else column_or_expression(choices.expires, usable, "--expires", allows_ts=True)
    if expires is None:
        return without_end
    if isinstance(expires, str):
        return replace(without_end, expires=expires)
    if expires.type in ("timestamp", "date"):
        lives = found.gaps.get((times.columns[0], expires.name), ()) if times.columns else ()
        return replace(_with_end(without_end, expires), lifetimes=lives, columns=(*without_end.columns, expires.name))
    timed = _with_lifetimes(without_end, expires)
    if timed is None:
        message = f'--expires: the column "{expires.name}" is no time, and no amount of time from 0 on'
        raise UsageError(f"{message}; name another, or give an expression")
    return timed


def _guessed_times(
    sniffed: SniffedFile, usable: Sequence[SniffedColumn], chosen: SniffedColumn | None = None
) -> ProposedTimes | None:
    parts = {part for column in sniffed.combined for part in column.parts}
    timestamps = [column for column in usable if column.type == "timestamp" and column.name not in parts]
    dates = [column for column in usable if column.type == "date" and column.name not in parts]
    arrival = chosen or _arrival(sniffed, timestamps) or _arrival(sniffed, dates)
    if arrival is None:
        return None
    same_type = timestamps if arrival.type == "timestamp" else dates
    other_times = tuple(column.name for column in same_type if column != arrival and not column.expression)
    later = [column for column in (*same_type, *(date for date in dates if EXPIRY_NAME.search(_name_in_words(date))))
             if (arrival.name, column.name) in sniffed.gaps]  # fmt: skip
    named_as_end = [column for column in later if EXPIRY_NAME.search(_name_in_words(column))]
    without_end = ProposedTimes(_instant(arrival), (arrival.name,), arrival.low, others=other_times, last=arrival.high)
    if later and (named_as_end or arrival.type == "timestamp"):
        expiry = (named_as_end or later)[0]
        unused = tuple(name for name in other_times if name != expiry.name)
        lives = sniffed.gaps[arrival.name, expiry.name]
        return replace(_with_end(without_end, expiry), columns=(arrival.name, expiry.name), lifetimes=lives, others=unused)
    if not chosen and EXPIRY_NAME.search(_name_in_words(arrival)) and not ARRIVAL_NAME.search(_name_in_words(arrival)):
        reason = f"{arrival.name} is called like an end, and no other column is a time before it"
        without_end = replace(without_end, unsure=reason)
    return _with_duration(without_end, usable)


def _instant(column: SniffedColumn) -> str:
    """Return the Spark SQL of a time column; a date means its first moment."""
    if column.expression:
        return column.expression
    return f"CAST({column_sql(column.name)} AS TIMESTAMP)" if column.type == "date" else column_sql(column.name)


def _with_end(times: ProposedTimes, expiry: SniffedColumn) -> ProposedTimes:
    """Return the times of rows that end at a column; if the column is null, the row has no end."""
    return replace(times, expires=_end(expiry), unset=expiry.unset, endless=expiry.unset > 0)


def _end(column: SniffedColumn) -> str:
    """Return the Spark SQL of a column of ends; a date means the end of its day."""
    if column.expression:
        return column.expression
    end = f"nullif({column_sql(column.name)}, {column.no_end})" if column.no_end else column_sql(column.name)
    return f"CAST(date_add({end}, 1) AS TIMESTAMP)" if column.type == "date" else end


def _arrival(sniffed: SniffedFile, timestamps: Sequence[SniffedColumn]) -> SniffedColumn | None:
    """Return the time column that is earlier than most others, else a column that is named as an arrival, else the first."""
    ts_column = next((column for column in timestamps if column.name == "ts"), None)
    if ts_column or not timestamps:
        return ts_column
    names = {column.name for column in timestamps}

    def rank(column: SniffedColumn) -> tuple[int, bool, bool]:
        words = _name_in_words(column)
        followers = sum(first == column.name and second in names for first, second in sniffed.gaps)
        return followers, bool(ARRIVAL_NAME.search(words)), not EXPIRY_NAME.search(words)

    return max(timestamps, key=rank)


def _with_duration(times: ProposedTimes, usable: Sequence[SniffedColumn]) -> ProposedTimes:
    for column in usable:
        words = _name_in_words(column)
        if column.name not in times.columns and LIFETIME_NAME.search(words) and (timed := _with_lifetimes(times, column)):
            return timed
    return times


def _with_lifetimes(times: ProposedTimes, column: SniffedColumn) -> ProposedTimes | None:
    """Return the times of rows whose lifetimes are in a column, in the unit of its name; None if it has no lifetimes."""
    lives = [life for life in column.percentiles if life != _NEVER]
    endless = len(lives) < len(column.percentiles)
    if not lives or lives[0] < 0 or lives[-1] <= 0:
        return None
    units = ((unit, size) for ending, unit, size in _UNIT_SUFFIXES if ending.search(_name_in_words(column)))
    size: float
    unit, size = next(units, ("SECOND", SECOND))
    if column.format == DURATION:
        unit, size = "SECOND", SECOND
    if column.duration_unit is not None:
        unit, size = _DURATION_UNITS[column.duration_unit]
    unset = 1 - len(lives) / len(column.percentiles) if endless else column.unset
    sql = _end_after_lifetime(column, unit, size, endless=endless)
    lengths = tuple(lives[round(part * (len(lives) - 1) / 100)] * size for part in range(101))
    return replace(times, columns=(*times.columns, column.name), expires=sql, lifetimes=lengths, unset=unset, endless=endless)


def _name_in_words(column: SniffedColumn) -> str:
    return snake_case(column.source or column.name).strip("_")


def _end_after_lifetime(column: SniffedColumn, unit: str, size: float, *, endless: bool) -> str:
    """Return the Spark SQL of the end of a row whose lifetime is a column; an array means its least element."""
    kind = column.type or ""
    amount = f"array_min({column_sql(column.name)})" if kind.startswith("array<") else column_sql(column.name)
    amount = f"nullif({amount}, {_NEVER})" if endless else amount
    if kind.removeprefix("array<").removesuffix(">") in _INTEGERS and size >= 1:
        return f"timestampadd({unit}, {amount}, ts)"
    return f"timestampadd(MICROSECOND, CAST(round({amount} * {size}) AS bigint), ts)"


def column_sql(name: str) -> str:
    """Return a column as an SQL identifier, in backticks unless it is a plain word that is no word of SQL."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _SQL_WORDS
    parses = plain and not list(expression_faults(name, {name: None}, allows_ts=False))
    return name if parses else f"`{name}`"
