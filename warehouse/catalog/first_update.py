"""Predicts the result of the first update of a sampled file: DuckDB computes it from the sample.

Arrival and end are expressions in Spark SQL. Expressions that ``init`` proposes, and others with the same meaning in DuckDB, are
computed. There is no prediction for the rest, since only Spark can compute them.
"""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.duck_sql import quoted
from warehouse.time import DAY, FIRST_INSTANT, HOUR, MINUTE, NEVER, SECOND, at_slot, format_instant, grid_slot, slot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.sniffed_file import SniffedFile

__all__ = ["FirstUpdate", "first_update", "lifetimes"]

_HUNDREDTHS = [number / 100 for number in range(101)]
_ADDED_DURATION = re.compile(r"timestampadd\((\w+), (.+), ts\)")
_END_OF_DAY = re.compile(r"CAST\(date_add\((\w+|`[^`]+`), 1\) AS TIMESTAMP\)")
_NO_END_MICROS = "9223372036854775807"
_UNITS = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": SECOND, "MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY}
_MACROS = "CREATE TEMP MACRO array_min(x) AS list_min(x); CREATE TEMP MACRO array_max(x) AS list_max(x); "
_MACROS += "CREATE TEMP MACRO timestamp_seconds(x) AS to_timestamp(x)"


@dataclass(frozen=True)
class FirstUpdate:
    """An update at ``at`` (microseconds), and its effect on a sample.

    It is at the first grid point by which all rows have arrived or, if no row would be live then, at one with many live rows. It
    is not later than the present, which no update passes, unless rows are live only then.
    ``live``, ``waiting`` and ``dead`` count sampled rows; ``rejected`` counts rows with times that are null or in the wrong
    order. ``key`` has the texts of the key with most live rows, by column; it is empty if no row is live or a part of the key is
    null.
    """

    at: int
    live: int
    waiting: int
    dead: int
    rejected: int
    key: tuple[tuple[str, str], ...] = ()

    def in_words(self) -> str:
        """Return the counts as a sentence without its full stop."""
        counts = [(self.dead, "ended before"), (self.waiting, "arrive later"), (self.rejected, "rejected for their times")]
        other_counts = "".join(f", {count} {description}" for count, description in counts if count)
        return f"A first update of this sample at {format_instant(self.at)} would show {self.live} rows{other_counts}"

    def probe(self, stream: str) -> str | None:
        """Return the command that finds the rows of ``key``."""
        if not self.key:
            return None
        if len(self.key) == 1 and not self.key[0][1].startswith("-"):
            return shlex.join(["stream-wh", "probe", stream, self.key[0][1]])
        arguments = [part for column, value in self.key for part in ("--key", f"{column}={value}")]
        return shlex.join(["stream-wh", "probe", stream, *arguments])


def lifetimes(found: SniffedFile, arrival: str, expires: str) -> tuple[float, ...]:
    """Return the percentiles of the sampled rows' lifetimes in microseconds; an empty tuple if DuckDB cannot compute them."""
    with _with_times(found, arrival, expires) as connection:
        if connection is None:
            return ()
        query = f"SELECT quantile_cont((_exp - _ts)::DOUBLE, {_HUNDREDTHS}) FROM timed WHERE _exp >= _ts"
        row = connection.execute(query).fetchone()
        return tuple(row[0]) if row and row[0] else ()


def first_update(
    found: SniffedFile,
    arrival: str,
    expires: str | None,
    key: Sequence[str],
    *,
    anchor: int,
    interval: int,
    now: int | None = None,
    max_ahead: int | None = None,
    endless: bool = False,
) -> FirstUpdate | None:
    """Return the effect of the first update on a sample; None if DuckDB cannot compute it, or no row arrives.

    Parameters
    ----------
    found
        The sniffed file with the sample.
    arrival, expires
        Spark SQL over the sample's columns; ``expires`` may also name ``ts``. Without ``expires`` rows never expire.
    key
        The columns of the search key.
    anchor, interval
        The grid, in microseconds.
    now
        The present, in microseconds; None if the update may be at any time.
    max_ahead
        How far ahead of the present rows may arrive, in microseconds; others are rejected. None: no matter how far.
    endless
        Whether rows without an end stay forever.
    """
    with _with_times(found, arrival, expires, endless=endless) as connection:
        if connection is None:
            return None
        if now is not None and max_ahead is not None:
            connection.execute("UPDATE timed SET _ts = NULL WHERE _ts > ?", [now + max_ahead])
        query = "SELECT quantile_disc(_ts, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]), max(_ts) FROM timed"
        deciles, last = connection.execute(query).fetchone() or (None, None)
        if last is None:
            return None
        slots = [slot(moment, anchor, interval) for moment in (last, *deciles)]
        latest = slots[0] if now is None else grid_slot(now, anchor, interval)
        at, counts = _best(connection, [at_slot(min(number, latest), anchor, interval) for number in slots])
        if not counts[0] and latest < slots[0]:
            later, counts_then = _best(connection, [at_slot(number, anchor, interval) for number in slots])
            at, counts = (later, counts_then) if counts_then[0] else (at, counts)
        return FirstUpdate(at, *counts, _key(connection, key, at))


def _best(connection: DuckDBPyConnection, instants: Sequence[int]) -> tuple[int, tuple[int, int, int, int]]:
    """Return the first instant if a row is live then, else the one with most live rows, and its counts."""
    counted = [_counts(connection, instant) for instant in instants]
    counts = counted[0] if counted[0][0] else max(counted, key=lambda there: there[0])
    return instants[counted.index(counts)], counts


def _counts(connection: DuckDBPyConnection, instant: int) -> tuple[int, int, int, int]:
    """Return the numbers of live, waiting, dead and rejected rows."""
    is_valid = "_ts IS NOT NULL AND _exp IS NOT NULL AND _exp >= _ts"
    fates = ("_ts <= $at AND _exp > $at", "_ts > $at AND _exp > _ts", "_exp <= $at OR _exp = _ts")
    counts = ", ".join(f"count(*) FILTER ({is_valid} AND ({fate}))" for fate in fates)
    live, waiting, dead, rows = (
        connection.execute(f"SELECT {counts}, count(*) FROM timed", {"at": instant}).fetchone() or (0,) * 4
    )
    return live, waiting, min(dead, rows - live - waiting), max(0, rows - live - waiting - dead)


def _key(connection: DuckDBPyConnection, columns: Sequence[str], instant: int) -> tuple[tuple[str, str], ...]:
    texts = ", ".join(_text(connection, column) for column in columns)
    has_key = " AND ".join(f"{quoted(column)} IS NOT NULL" for column in columns)
    condition = f"WHERE _ts <= $at AND _exp > $at AND {has_key}"
    order = ", ".join(["count(*) DESC", *(str(number) for number, _ in enumerate(columns, start=1))])
    query = f"SELECT {texts} FROM timed {condition} GROUP BY ALL ORDER BY {order} LIMIT 1"
    row = connection.execute(query, {"at": instant}).fetchone()
    return tuple(zip(columns, row, strict=True)) if row else ()


def _text(connection: DuckDBPyConnection, column: str) -> str:
    kind = next(iter(connection.execute(f"SELECT typeof({quoted(column)}) FROM timed LIMIT 1").fetchone() or ("",)))
    if kind.startswith("TIMESTAMP"):
        return f"strftime({quoted(column)}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%fZ')"
    return f"CAST({quoted(column)} AS VARCHAR)"


@contextmanager
def _with_times(
    sniffed: SniffedFile, arrival: str, expires: str | None, *, endless: bool = False
) -> Iterator[DuckDBPyConnection | None]:
    """Yield a connection with the table ``timed``: the sample with ``_ts`` and ``_exp`` in microseconds.

    A time that no row can have is null. The connection is None if DuckDB cannot compute the times.
    """
    import duckdb  # noqa: PLC0415 - only this command looks at a file

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(_MACROS)
        connection.register("sample", sniffed.sample)
        for column in sniffed.combined:
            arrival = arrival.replace(column.expression or "", f"`{column.name}`")
            expires = expires and expires.replace(column.expression or "", f"`{column.name}`")
        end = _NO_END_MICROS if expires is None else f"epoch_us(CAST({_in_duckdb(expires)} AS TIMESTAMPTZ))"
        ends = f"coalesce({end}, {_NO_END_MICROS})" if endless else end
        ends = ends if expires is None else f"CASE WHEN {end} <= {NEVER} OR {end} IS NULL THEN {ends} END"
        columns = "* EXCLUDE (ts)" if any(column.name.lower() == "ts" and column.type for column in sniffed.columns) else "*"
        ts = f"CAST({_in_duckdb(arrival)} AS TIMESTAMPTZ) AS ts"
        micros = f"CASE WHEN epoch_us(ts) BETWEEN {FIRST_INSTANT} AND {NEVER} THEN epoch_us(ts) END"
        try:
            connection.execute(f"CREATE TEMP TABLE arrived AS SELECT {columns}, {ts} FROM sample")
            connection.execute(f"CREATE TEMP TABLE timed AS SELECT *, {micros} AS _ts, {ends} AS _exp FROM arrived")
        except duckdb.Error:
            yield None
            return
        yield connection


def _in_duckdb(expression: str) -> str:
    """Translate a Spark SQL expression that ``init`` proposes into DuckDB's SQL; return others unchanged.

    >>> _in_duckdb("timestampadd(SECOND, `max-age`, ts)")
    'ts + to_microseconds(CAST(round(("max-age") * 1000000) AS BIGINT))'
    >>> _in_duckdb("at")
    '"at"'
    """
    if re.fullmatch(r"[A-Za-z_]\w*", expression):  # which may be a word of its SQL
        return quoted(expression)
    if added := _ADDED_DURATION.fullmatch(expression):
        unit, amount = added.groups()
        if unit in _UNITS:
            return f"ts + to_microseconds(CAST(round(({_in_duckdb(amount)}) * {_UNITS[unit]}) AS BIGINT))"
    if day := _END_OF_DAY.fullmatch(expression):
        return f"({_in_duckdb(day[1])} + INTERVAL 1 DAY)"
    return re.sub("`((?:[^`]|``)*)`", lambda name: quoted(name[1].replace("``", "`")), expression)
