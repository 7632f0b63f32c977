"""Proposes a ``warehouse.toml`` for a file, with its arrival time, expiration time and search key.

Names and values of a sample give candidates; comments in the proposal list the guesses and the alternatives.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.duck_sql import is_sql_keyword
from warehouse.catalog.first_update import FirstUpdate, first_update, lifetimes
from warehouse.catalog.init_options import InitOptions, column_named
from warehouse.catalog.load import FILE_NAME
from warehouse.catalog.proposed_file import ProposalParts, ProposedGrid, listed_names, proposed_file
from warehouse.catalog.proposed_key import ProposedKey, proposed_key
from warehouse.catalog.proposed_times import ProposedTimes, column_sql, proposed_times
from warehouse.catalog.sample_folder import folder_of
from warehouse.catalog.sniff import sniff
from warehouse.catalog.time_names import SEVERAL_ZONES
from warehouse.catalog.values import LONGEST, name_fault
from warehouse.errors import UsageError
from warehouse.time import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.sniffed_file import SniffedFile

__all__ = ["Proposal", "proposal", "propose"]


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T| +)\d\d:\d\d:\d\d")
"""A time as logs have it: a name of a column that contains one is a line of a log."""
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
_LONGEST_LIFETIME = 36_500 * DAY
"""A longer lifetime ends at a time that means "no end", such as 9999-12-31."""
_PERIODS = 24
_MOST_PERIODS = 2000
_MOST_AHEAD = 5 * 366 * DAY
"""An arrival that is further ahead of the clock is a mistake."""
_VISIBLE_SHARE = 0.95
"""The share of rows that an update at the proposed interval must show."""


@dataclass(frozen=True)
class Proposal:
    """A project for a file, with the guesses that a person may want to change.

    ``files`` are the files of the project by path: ``warehouse.toml``, and the file itself as a copy. ``arrival`` and ``expires``
    are Spark SQL; ``expires`` is None if rows never expire. ``interval`` is in microseconds. ``first`` is None if only Spark can
    compute it.
    """

    files: dict[str, bytes | Path]
    stream: str
    key: ProposedKey
    arrival: str
    expires: str | None
    interval: int
    first: FirstUpdate | None


def propose(source: Path, choices: InitOptions | None = None) -> dict[str, bytes | Path]:
    """Return the files of the project that :func:`proposal` proposes."""
    return proposal(source, choices).files


def proposal(source: Path, choices: InitOptions | None = None, now: int | None = None) -> Proposal:
    """Return the project that is proposed for ``source``, a file or a folder of files.

    ``choices`` are the user's options, which replace guesses. If all rows arrive after ``now`` (microseconds), windows move from
    ``now`` on.

    Raises
    ------
    UsageError
        When the file is not usable, no column can be an arrival time, or an option names a column that does not exist.

    """
    choices = choices or InitOptions()
    folder = folder_of(source) if source.is_dir() else None
    name = _stream_name(source)
    source = source if folder is None else folder.sample
    sniffed = sniff(source, {} if folder is None else folder.columns)
    if choices.arrival is not None and choices.arrival.strip("`") != "ts":
        sniffed = sniffed.with_column_renamed("ts", "ts_value")  # ts is the arrival time
    sniffed = _chosen(sniffed, choices)
    usable = [column for column in sniffed.columns if column.type]
    times = proposed_times(sniffed, [*sniffed.combined, *usable], choices)
    if times is None:
        raise UsageError(_no_arrival(source, sniffed))
    if times.expires is not None and not times.lifetimes:
        times = replace(times, lifetimes=lifetimes(sniffed, times.arrival, times.expires))
    parts = [part for column in sniffed.combined for part in column.parts]
    of_rows = [column for column in usable if column.name not in sniffed.partitions]
    key = proposed_key(of_rows or usable, (*times.columns, *parts), sniffed.rows)
    if choices.key:
        key = ProposedKey(tuple(column_named(key_name, usable, "--key").name for key_name in choices.key))
    grid = _grid(times, choices, now)
    max_ahead = grid.max_ahead or grid.lifetime
    first = first_update(
        sniffed, times.arrival, times.expires, key.columns, anchor=grid.anchor, interval=grid.interval,
        now=now, max_ahead=max_ahead, endless=times.endless,
    )  # fmt: skip
    text = proposed_file(ProposalParts(name, source, sniffed, times, key, grid, first, folder), choices)
    if folder is not None:
        return Proposal({FILE_NAME: text.encode()}, name, key, times.arrival, times.expires, grid.interval, first)
    # Updates ignore landing files whose names begin with a dot or an underscore.
    landed = source.name.lstrip("._").replace(":", "-")  # Hadoop takes the text before a colon for a scheme
    files: dict[str, bytes | Path] = {FILE_NAME: text.encode(), f"landing/{name}/{landed}": source}
    return Proposal(files, name, key, times.arrival, times.expires, grid.interval, first)


def _no_arrival(source: Path, sniffed: SniffedFile) -> str:
    inner = next((column for column in sniffed.columns if (column.type or column.refused or "").startswith("array<struct")), None)
    if inner is not None and sniffed.rows == 1:
        name = inner.source or inner.name
        command = f"jq -c {shlex.quote('.' + name + '[]')} {shlex.quote(str(source))} > rows.jsonl"
        message = f'{source} is one object, whose rows seem to stand in "{name}"'
        return f"{message}; `{command}` makes a line of each, for --from rows.jsonl"
    if not sniffed.rows:
        return f"{source} has no rows, by which times are recognised; name a file with some"
    if (zoned := _named_zone(sniffed)) is not None:
        column, zone = zoned
        example = shlex.quote(f"to_timestamp(replace({column_sql(column)}, ' {zone}', '+01:00'))")
        return (
            f"the times of {column} end with {zone}, which several zones are called; say which offset is meant "
            f"(--arrival {example}), or declare the column by hand, with {zone} in quotes in its `format` and its `timezone`"
        )
    first = sniffed.columns[0].source or sniffed.columns[0].name
    if sniffed.format == "csv" and (moment := _MOMENT.search(first)):
        time = r"\S+" if moment[1] == "T" else r"\S+ \S+"
        return (
            f"{source} seems to be a log without a header, of no form that is known: its first line, {first[:60]!r}, has a time; "
            f'declare the stream by hand after a plain `stream-wh init`, with format = "text" and a pattern of its lines, '
            f"such as options = {{ pattern = '(?P<at>{time}) (?P<message>.*)' }}"
        )
    listed = listed_names(column.name for column in sniffed.columns)
    refused = "".join(f"; {column.name} cannot be declared: {column.refused}" for column in sniffed.columns if not column.type)
    texts = [column.name for column in sniffed.columns if column.type == "string"]
    example = shlex.quote(f"to_timestamp({column_sql(texts[0] if texts else 'day')}, 'dd.MM.yyyy HH:mm')")
    return (
        f"no column of {source} ({listed}) can be an arrival time{refused}; name one that Spark can make a time of "
        f"(--arrival {example}), or declare the stream by hand after a plain `stream-wh init`"
    )


def _named_zone(sniffed: SniffedFile) -> tuple[str, str] | None:
    """Return a column of times that all end with the same ambiguous zone name, and this name."""
    for column in sniffed.columns:
        texts = sniffed.sample[column.name].to_pylist() if column.type == "string" else []
        ends = [SEVERAL_ZONES.search(str(text)) for text in texts if text]
        if ends and all(ends) and len(names := {end[1] for end in ends if end}) == 1:
            return column.name, names.pop()
    return None


def _grid(times: ProposedTimes, choices: InitOptions, now: int | None) -> ProposedGrid:
    lifetime = _rounded_up(times.lifetime) if times.lifetime is not None else None
    if lifetime is None and times.expires is not None:
        lifetime = DAY
    finest = HOUR if lifetime is None or lifetime > _LONGEST_LIFETIME else max(SECOND, lifetime // _PERIODS)
    fine = (step for step in _STEPS if step <= finest)
    steps = (step for step in fine if step == SECOND or not times.lifetimes or times.visible_share(step) >= _VISIBLE_SHARE)
    interval = choices.interval or max(steps)
    lifetime = None if lifetime is None else max(interval, min(lifetime, _MOST_PERIODS * interval))
    begins = times.first or 0
    anchor = (begins if now is None else min(begins, now)) // DAY * DAY
    ahead = 0 if now is None or times.last is None else times.last - now
    needs_more = lifetime is not None and lifetime < ahead <= _MOST_AHEAD
    return ProposedGrid(anchor, interval, lifetime, _rounded_up(2 * ahead) if needs_more else None)


def _stream_name(source: Path) -> str:
    for word in (source.name.split(".", maxsplit=1)[0], source.absolute().parent.name):
        name = re.sub(r"[^a-z0-9_]+", "_", word.lower())[:63]
        if name_fault(name) is None:
            return f"{name[:58]}_rows" if is_sql_keyword(name) else name
    return "stream"


def _chosen(sniffed: SniffedFile, choices: InitOptions) -> SniffedFile:
    """Return the sniffed file with only the columns that the user chose."""
    if not choices.columns:
        return sniffed
    named = {column_named(name, sniffed.columns, "--columns").name for name in choices.columns}
    columns = tuple(
        column if column.name in named else replace(column, type=None, refused="not wished") for column in sniffed.columns
    )
    return replace(sniffed, columns=columns)


def _rounded_up(lifetime: int) -> int:
    return next((step for step in _STEPS if step >= lifetime), min(-(-lifetime // DAY) * DAY, LONGEST))


