"""A ``warehouse.toml`` proposed for a file: what could be the arrival time, the expiration time and the search key.

Names and values of a sample give candidates; the proposal says in comments what was guessed and what else there is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.load import FILE_NAME
from warehouse.catalog.proposed_key import ProposedKey, proposed_key
from warehouse.catalog.proposed_layout import layout_lines
from warehouse.catalog.sniff import Found, SniffedColumn, sniff
from warehouse.catalog.values import name_fault
from warehouse.catalog.wishes import NEVER, Wishes, column_called, expression_of
from warehouse.errors import UsageError
from warehouse.time import DAY, HOUR, MINUTE, SECOND, format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["propose"]

_ARRIVAL_NAME = re.compile(
    r"(^|_)(ts|time|timestamp|at|arriv\w*|start\w*|begin\w*|creat\w*|seen|event|from|depart\w*)(_|$)"
)
_EXPIRY_NAME = re.compile(
    r"(^|_)(exp\w*|end\w*|until|valid|to|stop\w*|finish\w*|due|deadline|leav\w*|land\w*|close\w*)(_|$)"
)
_LIFETIME_NAME = re.compile(
    r"(^|_)(ttls?|lifetimes?|life|duration|timeout|max_?age|validity|lease|hold|dauer|expires_in|remaining)(_|$)"
)
_UNITS = (
    (re.compile(r"_(ms|msec|millis\w*)$"), "MILLISECOND", 1000),
    (re.compile(r"_(us|usec|micros\w*)$"), "MICROSECOND", 1),
    (re.compile(r"_(min|mins|minutes?|minuten)$"), "MINUTE", MINUTE),
    (re.compile(r"_(h|hrs?|hours?|stunden)$"), "HOUR", HOUR),
    (re.compile(r"_(d|days?|tage)$"), "DAY", DAY),
)
_INTEGERS = frozenset({"int", "bigint"})
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
_MOST_PERIODS = 2000
_SEEN = 0.95
"""The share of rows that an update at the proposed interval must show."""
_WORDS_OF_SQL = frozenset({"date", "end", "from", "interval", "start", "timestamp", "to"})
_COMMENT_COLUMN = 36


@dataclass(frozen=True)
class _Times:
    """Guessed expressions; ``first`` and ``last`` are arrivals, ``lives`` quantiles of lives, in hundredths; all microseconds.

    ``unset`` is the share of rows that have no end.
    """

    arrival: str
    columns: tuple[str, ...]
    first: int | None
    expires: str | None = None
    lives: tuple[float, ...] = ()
    others: tuple[str, ...] = ()
    last: int | None = None
    unset: float = 0.0

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


def propose(source: Path, wishes: Wishes | None = None) -> dict[str, bytes | Path]:
    """Return the files of a project for ``source`` by path: ``warehouse.toml``, and the file itself to be copied.

    ``wishes`` are what the user says in place of what would be guessed.

    Raises
    ------
    UsageError
        When the file is not usable, no column can be an arrival time, or a wish names what the file does not have.

    """
    wishes = wishes or Wishes()
    found = _chosen(sniff(source), wishes)
    name = _stream_name(source)
    usable = [column for column in found.columns if column.type]
    times = _wished(found, usable, wishes)
    if times is None:
        raise UsageError(
            f"no column of {source} ({_list(column.name for column in found.columns)}) can be an arrival time; "
            f"add a timestamp column, or declare the stream by hand after a plain `stream-wh init`"
        )
    key = proposed_key(usable, times.columns, found.rows)
    if wishes.key:
        key = ProposedKey(tuple(column_called(each, usable, "--key").name for each in wishes.key))
    text = _document(name, source, found, times, key, wishes)
    # Landing files whose names begin with these are left alone.
    landed = source.name.lstrip("._").replace(":", "-")  # Hadoop takes what stands before a colon for a scheme
    return {FILE_NAME: text.encode(), f"landing/{name}/{landed}": source}


def _stream_name(source: Path) -> str:
    for word in (source.name.split(".", maxsplit=1)[0], source.absolute().parent.name):
        name = re.sub(r"[^a-z0-9_]+", "_", word.lower())[:63]
        if name_fault(name) is None:
            return name
    return "stream"


def _chosen(found: Found, wishes: Wishes) -> Found:
    """Return what was found with the wished columns only; the others are left out."""
    if not wishes.columns:
        return found
    kept = {column_called(each, found.columns, "--columns").name for each in wishes.columns}
    columns = tuple(each if each.name in kept else replace(each, type=None, refused="not wished") for each in found.columns)
    return replace(found, columns=columns)


def _wished(found: Found, usable: Sequence[SniffedColumn], wishes: Wishes) -> _Times | None:
    """Return the times as they are wished, or guessed where nothing is."""
    arrival = None if wishes.arrival is None else expression_of(wishes.arrival, usable, "--arrival", ts=False)
    if isinstance(arrival, SniffedColumn) and arrival.type not in ("timestamp", "date"):
        said = f'--arrival: the column "{arrival.name}" is {arrival.type}, no time'
        raise UsageError(f"{said}; name another, or give an expression")
    if isinstance(arrival, str):
        stamp = next((column for column in usable if column.type in ("timestamp", "date")), None)
        times: _Times | None = _Times(arrival, (), stamp.low if stamp else None, last=stamp.high if stamp else None)
    elif arrival is not None and arrival.type == "date":
        times = _from_numbers([arrival, *(column for column in usable if column != arrival)])
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
    if expires.type == "timestamp":
        lives = found.gaps.get((times.columns[0], expires.name), ()) if times.columns else ()
        return replace(bare, expires=_sql(expires.name), lives=lives, columns=(*bare.columns, expires.name))
    lasting = _of_duration(bare, expires)
    if lasting is None:
        said = f'--expires: the column "{expires.name}" is no time, and no amount of time from 0 on'
        raise UsageError(f"{said}; name another, or give an expression")
    return lasting


def _times(found: Found, usable: Sequence[SniffedColumn], wished: SniffedColumn | None = None) -> _Times | None:
    stamps = [column for column in usable if column.type == "timestamp"]
    arrival = wished or _arrival(found, stamps)
    if arrival is None:
        return _from_numbers(usable)
    others = tuple(column.name for column in stamps if column != arrival)
    later = [column for column in stamps if (arrival.name, column.name) in found.gaps]
    named = [column for column in later if _EXPIRY_NAME.search(column.name.lower())]
    if later:
        expiry = (named or later)[0]
        used = (arrival.name, expiry.name)
        unused = tuple(name for name in others if name != expiry.name)
        lives = found.gaps[arrival.name, expiry.name]
        return _Times(_sql(arrival.name), used, arrival.low, _sql(expiry.name), lives, unused, arrival.high)
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
    day = next((column for column in usable if column.type == "date"), None)
    if day is None:
        return None
    return _with_duration(_Times(f"CAST({_sql(day.name)} AS TIMESTAMP)", (day.name,), day.low, last=day.high), usable)


def _with_duration(times: _Times, usable: Sequence[SniffedColumn]) -> _Times:
    for column in usable:
        lower = column.name.lower()
        if column.name not in times.columns and _LIFETIME_NAME.search(lower) and (lasting := _of_duration(times, column)):
            return lasting
    return times


def _of_duration(times: _Times, column: SniffedColumn) -> _Times | None:
    """Return the times of rows that live as long as a column says, in the unit of its name; none if it says no such thing."""
    if not column.lives or column.lives[0] < 0 or column.lives[-1] <= 0:
        return None
    units = ((unit, size) for ending, unit, size in _UNITS if ending.search(column.name.lower()))
    unit, size = next(units, ("SECOND", SECOND))
    lives = tuple(life * size for life in column.lives)
    sql = _added(column, unit, size)
    return replace(times, columns=(*times.columns, column.name), expires=sql, lives=lives, unset=column.unset)


def _added(column: SniffedColumn, unit: str, size: int) -> str:
    """Return the end of a row whose life is a column: to the microsecond unless it is whole; of arrays the least."""
    kind = column.type or ""
    amount = f"array_min({_sql(column.name)})" if kind.startswith("array<") else _sql(column.name)
    if kind.removeprefix("array<").removesuffix(">") in _INTEGERS:
        return f"timestampadd({unit}, {amount}, ts)"
    return f"timestampadd(MICROSECOND, CAST(round({amount} * {size}) AS bigint), ts)"


def _document(name: str, source: Path, found: Found, times: _Times, key: ProposedKey, wishes: Wishes) -> str:
    lifetime = _rounded_up(times.lifetime) if times.lifetime is not None else None
    if lifetime is None and times.expires is not None:
        lifetime = DAY
    finest = HOUR if lifetime is None else max(SECOND, lifetime // _PERIODS)
    steps = (step for step in _STEPS if step <= finest and (step == SECOND or not times.lives or times.seen(step) >= _SEEN))
    interval = wishes.interval or max(steps)
    lifetime = None if lifetime is None else max(interval, min(lifetime, _MOST_PERIODS * interval))
    anchor = (times.first or 0) // DAY * DAY
    refused = [column for column in found.columns if not column.type]
    file = " ".join(source.name.split())
    lines = [
        f"# Proposed for {file}: what was guessed from names and values is marked with (?).",
        "# Check it, then run `stream-wh validate` and `stream-wh plan`. Plain `stream-wh init`, in another directory,",
        "# writes a file that shows every key.",
        "#",
        *(f"# {line}" for each in _summary(found, times, key, interval) for line in each.splitlines()),
        "",
        "[warehouse]",
        _line('root = "data"', "where the tables are; landing directories lie elsewhere"),
        _line(f"anchor = {_text(format_instant(anchor))}", "windows move at anchor + k * update_interval"),
        _line(f"update_interval = {_text(format_duration(interval))}", f"{'' if wishes.interval else '(?) '}fixed, like anchor"),
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
        guessed = f" # (?) {' and '.join(found.guessed)}: the sample does not tell" if found.guessed else ""
        lines.append("options = { " + ", ".join(f"{option} = {_text(value)}" for option, value in found.options) + " }" + guessed)
    lines += [
        *([] if found.format == "zeek" else [_line('timezone = "UTC"', "of timestamps without an offset")]),
        *_key_lines(key, wishes),
        _line(f"arrival = {_text(times.arrival)}", ("given" if wishes.arrival else "(?)") + _others(times)),
        *_expiry_lines(times, lifetime, wishes),
    ]
    if refused:
        lines.append(_line('unknown_columns = "ignore"', "some columns cannot be declared, see below"))
    lines += ["", f"[streams.{name}.columns]"]
    lines += [_column_line(column) for column in found.columns]
    if lifetime is not None and times.first is not None and times.last is not None:
        span = times.last - times.first
        lines += layout_lines(name, rows=found.rows, span=span, interval=interval, longest=lifetime, mean=times.mean)
    return "\n".join(lines) + "\n"


def _key_lines(key: ProposedKey, wishes: Wishes) -> Iterator[str]:
    others = f" others: {_list(key.others)}" if key.others else ""
    if key.unsure:
        yield f"# The sample does not tell the key: {key.unsure}."
    listed = key.columns[0] if len(key.columns) == 1 else list(key.columns)
    comment = "given" if wishes.key else f"(?) what probes look for: a column, or a list{';' if others else ''}{others}"
    yield _line(f"search_key = {_text(listed)}", comment)


def _summary(found: Found, times: _Times, key: ProposedKey, interval: int) -> Iterator[str]:
    """Yield what was seen, what is proposed and why, and what is left out, for the file and for the console."""
    yield f"Saw {found.rows} rows of {len(found.columns)} columns:"
    for column in found.columns:
        called = f" (in the file {_text(column.source)})" if column.source is not None else ""
        yield f"  {' '.join(column.name.split())}{called}: {column.type or 'not usable'}, about {column.distinct} values"
    of_key = next(column for column in found.columns if column.name == key.columns[0])
    each = f"{of_key.distinct} values, {found.rows / max(1, of_key.distinct):.1f} rows of each on average"
    yield f"Proposes the key {', '.join(key.columns)}: {each}."
    if key.unsure:
        likely = f" such as {_list(key.others)}" if key.others else ""
        yield f"The sample does not tell the key: {key.unsure}. Name it with --key, a column{likely}."
    yield f"Proposes that rows arrive at {times.arrival}."
    if times.lives:
        quarter, half, most = (format_duration(int(times.lives[place])) for place in (25, 50, 95))
        yield f"Proposes that rows end at {times.expires}:"
        yield f"  a quarter live less than {quarter}, half less than {half}, 95 % less than {most}."
        if times.unset:
            yield f'  {times.unset:.1%} have no end and are rejected; with null_expiry = "never" they would stay for ever.'
        share = times.seen(interval)
        yield f"Every {format_duration(interval)} an update would show {share:.0%} of the rows that live at all."
    left = [column.name for column in found.columns if column.type is None]
    if left:
        yield f"Leaves out {', '.join(' '.join(name.split()) for name in left)}: see below."


def _expiry_lines(times: _Times, lifetime: int | None, wishes: Wishes) -> list[str]:
    if wishes.expires == NEVER:
        return ["# Rows never expire."]
    if times.expires is None or lifetime is None:
        return [
            "# No column looks like an expiration time, so rows never expire. If they do, give an expression:",
            '# expires = "ts + INTERVAL 1 DAY"',
            '# max_lifetime = "1d"',
        ]
    if not times.lives:
        return [
            _line(f"expires = {_text(times.expires)}", "given"),
            _line(f"max_lifetime = {_text(format_duration(lifetime))}", "(?) how long nearly all rows live: not looked at"),
        ]
    return [
        _line(f"expires = {_text(times.expires)}", "given" if wishes.expires else "(?) left out: rows never expire"),
        _line(f"max_lifetime = {_text(format_duration(lifetime))}", "(?) 99 % of a sample end sooner; longer lives are accepted"),
    ]


def _others(times: _Times) -> str:
    return f" other times: {_list(times.others)}" if times.others else ""


def _column_line(column: SniffedColumn) -> str:
    name = column.name if re.fullmatch(r"[A-Za-z0-9_-]+", column.name) else _text(column.name)
    if column.type is None:
        return " ".join(f"# {_text(column.name)}: ignored ({column.refused})".split())
    if column.source is None and column.unit is None:
        return f"{name} = {_text(column.type)}"
    given = [f"type = {_text(column.type)}"]
    given += [f"from = {_text(column.source)}"] if column.source is not None else []
    given += [f"format = {_text(column.unit)}"] if column.unit is not None else []
    return f"{name} = {{ {', '.join(given)} }}"


def _rounded_up(lifetime: int) -> int:
    return next((step for step in _STEPS if step >= lifetime), -(-lifetime // DAY) * DAY)


def _line(text: str, comment: str) -> str:
    return f"{text:<{_COMMENT_COLUMN - 1}} # {comment}"


def _text(value: str | list[str]) -> str:
    # A JSON string is a TOML string.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _sql(name: str) -> str:
    """Return a column as an SQL identifier, in backticks if it is no plain word or also a word of SQL."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _WORDS_OF_SQL
    parses = plain and not list(expression_faults(name, {name: None}, ts=False))
    return name if parses else f"`{name}`"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
