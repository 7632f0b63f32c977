"""A ``warehouse.toml`` proposed for a file: what could be the arrival time, the expiration time and the search key.

Names and values of a sample give candidates; the proposal says in comments what was guessed and what else there is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.load import FILE_NAME
from warehouse.catalog.proposed_layout import layout_lines
from warehouse.catalog.sniff import Found, SniffedColumn, sniff
from warehouse.catalog.types import is_key_type, parse_type
from warehouse.catalog.values import name_fault
from warehouse.errors import UsageError
from warehouse.time import DAY, HOUR, MINUTE, SECOND, format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["propose"]

_ARRIVAL_NAME = re.compile(
    r"(^|_)(ts|time|timestamp|at|arriv\w*|start\w*|begin\w*|creat\w*|seen|event|from|depart\w*)(_|$)"
)
_EXPIRY_NAME = re.compile(
    r"(^|_)(exp\w*|end\w*|until|valid|to|stop\w*|finish\w*|due|deadline|leav\w*|land\w*|close\w*)(_|$)"
)
_LIFETIME_NAME = re.compile(r"(^|_)(ttl|lifetime|duration|timeout|max_age|validity|lease|hold)(_|$)")
_KEY_NAME = re.compile(r"(^|_)(id|key|name|user\w*|code|number|host|device|account|customer|session)(_|$)")
_UNITS = (
    (re.compile(r"_(ms|millis\w*)$"), "MILLISECOND", 1000),
    (re.compile(r"_(min|mins|minutes?)$"), "MINUTE", MINUTE),
    (re.compile(r"_(h|hours?)$"), "HOUR", HOUR),
    (re.compile(r"_(d|days?)$"), "DAY", DAY),
)
_INTEGERS = frozenset({"int", "bigint"})
# Counts since 1970 that lie between 2001 and 2100, by unit.
_EPOCHS = (
    ("timestamp_seconds", SECOND, 1_000_000_000, 4_102_444_800),
    ("timestamp_millis", 1000, 1_000_000_000_000, 4_102_444_800_000),
    ("timestamp_micros", 1, 1_000_000_000_000_000, 4_102_444_800_000_000),
)
_STEPS = tuple(
    count * unit
    for unit, counts in (
        (SECOND, (1, 5, 10, 30)),
        (MINUTE, (1, 5, 10, 15, 30)),
        (HOUR, (1, 2, 3, 6, 12)),
        (DAY, (1, 2, 7, 14, 30, 90, 365, 3650)),
    )
    for count in counts
)
_PERIODS = 24
_WORDS_OF_SQL = frozenset({"date", "end", "from", "interval", "start", "timestamp", "to"})
_COMMENT_COLUMN = 36


@dataclass(frozen=True)
class _Times:
    """Guessed expressions; ``first`` and ``last`` are arrivals, ``lifetime`` and ``mean`` lives, in microseconds."""

    arrival: str
    columns: tuple[str, ...]
    first: int | None
    expires: str | None = None
    lifetime: int | None = None
    others: tuple[str, ...] = ()
    mean: float | None = None
    last: int | None = None


def propose(source: Path) -> dict[str, bytes | Path]:
    """Return the files of a project for ``source`` by path: ``warehouse.toml``, and the file itself to be copied.

    Raises
    ------
    UsageError
        When the file is not usable, or no column can be an arrival time.

    """
    found = sniff(source)
    name = _stream_name(source)
    usable = [column for column in found.columns if column.type]
    times = _times(found, usable)
    if times is None:
        raise UsageError(
            f"no column of {source} ({_list(column.name for column in found.columns)}) can be an arrival time; "
            f"add a timestamp column, or declare the stream by hand after a plain `stream-wh init`"
        )
    text = _document(name, source, found, times, _key(usable, times))
    # Landing files whose names begin with these are left alone.
    return {FILE_NAME: text.encode(), f"landing/{name}/{source.name.lstrip('._')}": source}


def _stream_name(source: Path) -> str:
    for word in (source.name.split(".", maxsplit=1)[0], source.absolute().parent.name):
        name = re.sub(r"[^a-z0-9_]+", "_", word.lower())[:63]
        if name_fault(name) is None:
            return name
    return "stream"


def _times(found: Found, usable: Sequence[SniffedColumn]) -> _Times | None:
    stamps = [column for column in usable if column.type == "timestamp"]
    arrival = _arrival(found, stamps)
    if arrival is None:
        return _from_numbers(usable)
    others = tuple(column.name for column in stamps if column != arrival)
    later = [column for column in stamps if (arrival.name, column.name) in found.gaps]
    named = [column for column in later if _EXPIRY_NAME.search(column.name.lower())]
    if later:
        expiry = (named or later)[0]
        lifetime = found.gaps[arrival.name, expiry.name]
        used = (arrival.name, expiry.name)
        unused = tuple(name for name in others if name != expiry.name)
        mean = found.mean_gaps[arrival.name, expiry.name]
        return _Times(_sql(arrival.name), used, arrival.low, _sql(expiry.name), lifetime, unused, mean, arrival.high)
    return _with_duration(
        _Times(_sql(arrival.name), (arrival.name,), arrival.low, others=others, last=arrival.high), usable
    )


def _arrival(found: Found, stamps: Sequence[SniffedColumn]) -> SniffedColumn | None:
    """Return the time that others follow, that is named like an arrival, that stands first, in this order."""
    own = next((column for column in stamps if column.name == "ts"), None)
    if own or not stamps:
        return own

    def rank(column: SniffedColumn) -> tuple[int, bool, bool]:
        lower = column.name.lower()
        followers = sum(first == column.name for first, _ in found.gaps)
        return followers, bool(_ARRIVAL_NAME.search(lower)), not _EXPIRY_NAME.search(lower)

    return max(stamps, key=rank)


def _from_numbers(usable: Sequence[SniffedColumn]) -> _Times | None:
    for column in usable:
        if column.type not in _INTEGERS or column.low is None or column.high is None:
            continue
        for function, unit, low, high in _EPOCHS:
            if low <= column.low and column.high <= high:
                sql = f"{function}({_sql(column.name)})"
                times = _Times(sql, (column.name,), column.low * unit, last=column.high * unit)
                return _with_duration(times, usable)
    day = next((column for column in usable if column.type == "date"), None)
    if day is None:
        return None
    return _with_duration(_Times(f"CAST({_sql(day.name)} AS TIMESTAMP)", (day.name,), day.low, last=day.high), usable)


def _with_duration(times: _Times, usable: Sequence[SniffedColumn]) -> _Times:
    for column in usable:
        lower = column.name.lower()
        counts = column.type in _INTEGERS and column.name not in times.columns and (column.low or 0) >= 0
        if counts and column.high and _LIFETIME_NAME.search(lower):
            units = ((unit, size) for ending, unit, size in _UNITS if ending.search(lower))
            unit, size = next(units, ("SECOND", SECOND))
            sql = f"timestampadd({unit}, {_sql(column.name)}, ts)"
            used = (*times.columns, column.name)
            mean = None if column.mean is None else column.mean * size
            return _Times(times.arrival, used, times.first, sql, column.high * size, times.others, mean, times.last)
    return times


def _key(usable: Sequence[SniffedColumn], times: _Times) -> str:
    """Return the column that probes most likely look for."""
    keys = [column for column in usable if column.type and is_key_type(parse_type(column.type))]
    plain = [column for column in keys if column.name not in times.columns]

    def rank(column: SniffedColumn) -> tuple[bool, bool, int]:
        identifying = column.type == "string" or column.type in _INTEGERS
        return bool(_KEY_NAME.search(column.name.lower())) and identifying, column.type == "string", column.distinct

    return max(plain, key=rank).name if plain else keys[0].name


def _document(name: str, source: Path, found: Found, times: _Times, key: str) -> str:
    lifetime = _rounded_up(times.lifetime) if times.lifetime is not None else None
    finest = HOUR if lifetime is None else max(SECOND, lifetime // _PERIODS)
    interval = max(step for step in _STEPS if step <= finest)
    anchor = (times.first or 0) // DAY * DAY
    refused = [column for column in found.columns if not column.type]
    file = " ".join(source.name.split())
    lines = [
        f"# Proposed for {file}: what was guessed from names and values is marked with (?).",
        "# Check it, then run `stream-wh validate` and `stream-wh plan`. Plain `stream-wh init`, in another directory,",
        "# writes a file that shows every key.",
        "",
        "[warehouse]",
        _line('root = "data"', "where the tables are; landing directories lie elsewhere"),
        _line(f"anchor = {_text(format_instant(anchor))}", "windows move at anchor + k * update_interval"),
        _line(f"update_interval = {_text(format_duration(interval))}", "(?) fixed, like anchor, for the life of root"),
        _line('retain = "7d"', "wall-clock time for which earlier window states stay readable"),
        "",
        f"# {file} was copied to landing/{name}. Deliver further files of the same columns there, in",
        "# sub-directories if you like. Each is loaded once, so write it elsewhere and move it in when it is whole.",
        f"[streams.{name}]",
        f"landing = {_text('landing/' + name)}",
        f"files = {_text('*' + found.endings)}",
        f"format = {_text(found.format)}",
    ]
    if found.options:
        lines.append("options = { " + ", ".join(f"{option} = {_text(value)}" for option, value in found.options) + " }")
    lines += [
        _line('timezone = "UTC"', "of timestamps without an offset"),
        _line(f"search_key = {_text(key)}", "(?) what probes look for: a column, or a list"),
        _line(f"arrival = {_text(times.arrival)}", "(?)" + _others(times)),
        *_expiry_lines(times, lifetime),
    ]
    if refused:
        lines.append(_line('unknown_columns = "ignore"', "some columns cannot be declared, see below"))
    lines += ["", f"[streams.{name}.columns]"]
    lines += [_column_line(column) for column in found.columns]
    if lifetime is not None and times.mean is not None and times.first is not None and times.last is not None:
        span = times.last - times.first
        lines += layout_lines(name, rows=found.rows, span=span, interval=interval, longest=lifetime, mean=times.mean)
    return "\n".join(lines) + "\n"


def _expiry_lines(times: _Times, lifetime: int | None) -> list[str]:
    if times.expires is None or lifetime is None:
        return [
            "# No column looks like an expiration time, so rows never expire. If they do, give an expression:",
            '# expires = "ts + INTERVAL 1 DAY"',
            '# max_lifetime = "1d"',
        ]
    return [
        _line(f"expires = {_text(times.expires)}", "(?) left out: rows never expire"),
        _line(f"max_lifetime = {_text(format_duration(lifetime))}", "(?) the longest in a sample, rounded up"),
    ]


def _others(times: _Times) -> str:
    return f" other times: {_list(times.others)}" if times.others else ""


def _column_line(column: SniffedColumn) -> str:
    name = column.name if re.fullmatch(r"[A-Za-z0-9_-]+", column.name) else _text(column.name)
    if column.type is None:
        return " ".join(f"# {_text(column.name)}: ignored ({column.refused})".split())
    return f"{name} = {_text(column.type)}"


def _rounded_up(lifetime: int) -> int:
    return next((step for step in _STEPS if step >= lifetime), -(-lifetime // DAY) * DAY)


def _line(text: str, comment: str) -> str:
    return f"{text:<{_COMMENT_COLUMN - 1}} # {comment}"


def _text(value: str) -> str:
    # A JSON string is a TOML string.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _sql(name: str) -> str:
    """Return a column as an SQL identifier, in backticks if it is no plain word or also a word of SQL."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _WORDS_OF_SQL
    parses = plain and not list(expression_faults(name, {name: None}, ts=False))
    return name if parses else f"`{name}`"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
