"""The times that ``init --from`` proposes: arrival and end of a row, by names and values of a sample."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.durations import DURATION
from warehouse.catalog.expression import expression_faults
from warehouse.catalog.init_options import NEVER, Wishes, expression_of
from warehouse.catalog.proposed_key import words_of
from warehouse.catalog.sniffed_file import Found, SniffedColumn
from warehouse.catalog.time_names import ARRIVAL_NAME, EXPIRY_NAME, LIFETIME_NAME
from warehouse.errors import UsageError
from warehouse.time import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ProposedTimes", "column_sql", "proposed_times"]

_UNITS = (
    (re.compile(r"_(ms|msec|millis\w*)$"), "MILLISECOND", 1000),
    (re.compile(r"_(us|usec|micros\w*)$"), "MICROSECOND", 1),
    (re.compile(r"_(min|mins|minutes?|minuten)$"), "MINUTE", MINUTE),
    (re.compile(r"_(h|hrs?|hours?|stunden)$"), "HOUR", HOUR),
    (re.compile(r"_(d|days?|tage)$"), "DAY", DAY),
)
_STEPS: dict[str, tuple[str, float]] = {
    "s": ("SECOND", SECOND),
    "ms": ("MILLISECOND", 1000),
    "us": ("MICROSECOND", 1),
    "ns": ("NANOSECOND", 0.001),
}
_NEVER = -1
"""The value for "no duration" of Redis and others."""
_INTEGERS = frozenset({"int", "bigint"})
_WORDS_OF_SQL = frozenset({"date", "end", "from", "interval", "null", "start", "timestamp", "to"})


@dataclass(frozen=True)
class ProposedTimes:
    """Guessed expressions; ``first`` and ``last`` are arrivals, ``lives`` are percentiles of lives, all in microseconds.

    ``unset`` is the share of rows without an end; with ``endless`` these rows stay forever. ``unsure`` says why the sample does
    not decide the arrival.
    """

    arrival: str
    columns: tuple[str, ...]
    first: int | None
    expires: str | None = None
    lives: tuple[float, ...] = ()
    others: tuple[str, ...] = ()
    last: int | None = None
    unset: float = 0.0
    unsure: str | None = None
    endless: bool = False

    @property
    def mean(self) -> float:
        """The mean life."""
        return sum(self.lives) / max(1, len(self.lives))

    @property
    def lifetime(self) -> int | None:
        """The life that all but a hundredth of the rows stay below."""
        return int(self.lives[-2]) if self.lives else None

    def seen(self, interval: int) -> float:
        """Return the share of rows with a life that are live at one update at least."""
        lives = [life for life in self.lives if life > 0]
        return sum(min(1.0, life / interval) for life in lives) / max(1, len(lives))


def proposed_times(found: Found, usable: Sequence[SniffedColumn], wishes: Wishes) -> ProposedTimes | None:
    """Return the times as they are wished, or guessed where nothing is."""
    arrival = None if wishes.arrival is None else expression_of(wishes.arrival, usable, "--arrival", ts=False)
    if isinstance(arrival, SniffedColumn) and arrival.type not in ("timestamp", "date"):
        said = f'--arrival: the column "{arrival.name}" is {arrival.type}, no time'
        raise UsageError(f"{said}; name another, or give an expression")
    if isinstance(arrival, str):
        stamp = next((column for column in usable if column.type in ("timestamp", "date")), None)
        times: ProposedTimes | None = ProposedTimes(arrival, (), stamp.low if stamp else None, last=stamp.high if stamp else None)
    else:
        times = _times(found, usable, arrival)
    if times is None or wishes.expires is None:
        return times
    bare = replace(times, expires=None, lives=(), unset=0.0, columns=times.columns[:1])
    expires = None if wishes.expires == NEVER else expression_of(wishes.expires, usable, "--expires", ts=True)
    if expires is None:
        return bare
    if isinstance(expires, str):
        return replace(bare, expires=expires)
    if expires.type in ("timestamp", "date"):
        lives = found.gaps.get((times.columns[0], expires.name), ()) if times.columns else ()
        return replace(_ending(bare, expires), lives=lives, columns=(*bare.columns, expires.name))
    lasting = _of_duration(bare, expires)
    if lasting is None:
        said = f'--expires: the column "{expires.name}" is no time, and no amount of time from 0 on'
        raise UsageError(f"{said}; name another, or give an expression")
    return lasting


def _times(found: Found, usable: Sequence[SniffedColumn], wished: SniffedColumn | None = None) -> ProposedTimes | None:
    parts = {part for column in found.made for part in column.parts}
    stamps = [column for column in usable if column.type == "timestamp" and column.name not in parts]
    dates = [column for column in usable if column.type == "date" and column.name not in parts]
    arrival = wished or _arrival(found, stamps) or _arrival(found, dates)
    if arrival is None:
        return None
    alike = stamps if arrival.type == "timestamp" else dates
    others = tuple(column.name for column in alike if column != arrival and not column.made)
    later = [column for column in (*alike, *(each for each in dates if EXPIRY_NAME.search(_words(each))))
             if (arrival.name, column.name) in found.gaps]  # fmt: skip
    named = [column for column in later if EXPIRY_NAME.search(_words(column))]
    bare = ProposedTimes(_instant(arrival), (arrival.name,), arrival.low, others=others, last=arrival.high)
    if later and (named or arrival.type == "timestamp"):
        expiry = (named or later)[0]
        unused = tuple(name for name in others if name != expiry.name)
        lives = found.gaps[arrival.name, expiry.name]
        return replace(_ending(bare, expiry), columns=(arrival.name, expiry.name), lives=lives, others=unused)
    if not wished and EXPIRY_NAME.search(_words(arrival)) and not ARRIVAL_NAME.search(_words(arrival)):
        bare = replace(bare, unsure=f"{arrival.name} is called like an end, and no other column is a time before it")
    return _with_duration(bare, usable)


def _instant(column: SniffedColumn) -> str:
    """Return a time as Spark SQL, of a date its first moment."""
    if column.made:
        return column.made
    return f"CAST({column_sql(column.name)} AS TIMESTAMP)" if column.type == "date" else column_sql(column.name)


def _ending(times: ProposedTimes, expiry: SniffedColumn) -> ProposedTimes:
    """Return the times of rows that end at a column; where it is empty they have not ended."""
    return replace(times, expires=_end(expiry), unset=expiry.unset, endless=expiry.unset > 0)


def _end(column: SniffedColumn) -> str:
    """Return an end as Spark SQL; a date lasts until its day ends."""
    if column.made:
        return column.made
    if column.never:
        return f"nullif({column_sql(column.name)}, {column.never})"
    return f"CAST(date_add({column_sql(column.name)}, 1) AS TIMESTAMP)" if column.type == "date" else column_sql(column.name)


def _arrival(found: Found, stamps: Sequence[SniffedColumn]) -> SniffedColumn | None:
    """Return the time column that other times follow, else one with the name of an arrival, else the first one."""
    own = next((column for column in stamps if column.name == "ts"), None)
    if own or not stamps:
        return own
    names = {column.name for column in stamps}

    def rank(column: SniffedColumn) -> tuple[int, bool, bool]:
        words = _words(column)
        followers = sum(first == column.name and second in names for first, second in found.gaps)
        return followers, bool(ARRIVAL_NAME.search(words)), not EXPIRY_NAME.search(words)

    return max(stamps, key=rank)


def _with_duration(times: ProposedTimes, usable: Sequence[SniffedColumn]) -> ProposedTimes:
    for column in usable:
        words = _words(column)
        if column.name not in times.columns and LIFETIME_NAME.search(words) and (lasting := _of_duration(times, column)):
            return lasting
    return times


def _of_duration(times: ProposedTimes, column: SniffedColumn) -> ProposedTimes | None:
    """Return the times of rows whose lifetime is in a column, in the unit of its name; None if the column has no lifetimes."""
    lives = [life for life in column.lives if life != _NEVER]
    endless = len(lives) < len(column.lives)
    if not lives or lives[0] < 0 or lives[-1] <= 0:
        return None
    units = ((unit, size) for ending, unit, size in _UNITS if ending.search(_words(column)))
    size: float
    unit, size = next(units, ("SECOND", SECOND))
    if column.unit == DURATION:
        unit, size = "SECOND", SECOND
    if column.step is not None:
        unit, size = _STEPS[column.step]
    unset = 1 - len(lives) / len(column.lives) if endless else column.unset
    sql = _added(column, unit, size, endless=endless)
    lengths = tuple(lives[round(part * (len(lives) - 1) / 100)] * size for part in range(101))
    return replace(times, columns=(*times.columns, column.name), expires=sql, lives=lengths, unset=unset, endless=endless)


def _words(column: SniffedColumn) -> str:
    return words_of(column.source or column.name).strip("_")


def _added(column: SniffedColumn, unit: str, size: float, *, endless: bool) -> str:
    """Return the end of a row whose life is a column: to the microsecond unless it is whole; of arrays the least."""
    kind = column.type or ""
    amount = f"array_min({column_sql(column.name)})" if kind.startswith("array<") else column_sql(column.name)
    amount = f"nullif({amount}, {_NEVER})" if endless else amount
    if kind.removeprefix("array<").removesuffix(">") in _INTEGERS and size >= 1:
        return f"timestampadd({unit}, {amount}, ts)"
    return f"timestampadd(MICROSECOND, CAST(round({amount} * {size}) AS bigint), ts)"


def column_sql(name: str) -> str:
    """Return a column as an SQL identifier, in backticks if it is no plain word or also a word of SQL."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _WORDS_OF_SQL
    parses = plain and not list(expression_faults(name, {name: None}, ts=False))
    return name if parses else f"`{name}`"
