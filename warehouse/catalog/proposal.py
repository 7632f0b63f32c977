"""Proposes a ``warehouse.toml`` for a file, with its arrival time, expiration time and search key.

Names and values of a sample give candidates; comments in the proposal list the guesses and the alternatives.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import is_compressed
from warehouse.catalog.duck_sql import is_word_of_sql
from warehouse.catalog.first_update import FirstUpdate, first_update, lives
from warehouse.catalog.load import FILE_NAME
from warehouse.catalog.patterns import split_landing
from warehouse.catalog.proposed_key import ProposedKey, proposed_key
from warehouse.catalog.proposed_layout import layout_lines
from warehouse.catalog.proposed_times import ProposedTimes, column_sql, proposed_times
from warehouse.catalog.sniff import sniff
from warehouse.catalog.time_names import SEVERAL_ZONES
from warehouse.catalog.values import LONGEST, name_fault
from warehouse.catalog.wishes import NEVER, Wishes, column_called
from warehouse.errors import UsageError
from warehouse.time import DAY, HOUR, MINUTE, SECOND, format_duration, format_instant, rough
from warehouse.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warehouse.catalog.sniffed import Found, SniffedColumn

__all__ = ["Folder", "Proposal", "folder_of", "proposal", "propose"]


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
_AGE = 36_500 * DAY
"""A longer life has an end that stands for none, such as 9999-12-31."""
_PERIODS = 24
_MOST_PERIODS = 2000
_SEEN = 0.95
"""The share of rows that an update at the proposed interval must show."""
_COMMENT_COLUMN = 36


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


def propose(source: Path, wishes: Wishes | None = None) -> dict[str, bytes | Path]:
    """Return the files of the project that :func:`proposal` proposes."""
    return proposal(source, wishes).files


def proposal(source: Path, wishes: Wishes | None = None) -> Proposal:
    """Return the project that is proposed for ``source``, a file or a folder of files.

    ``wishes`` are values of the user that replace guesses.

    Raises
    ------
    UsageError
        When the file is not usable, no column can be an arrival time, or a wish names a column that does not exist.

    """
    wishes = wishes or Wishes()
    folder = folder_of(source) if source.is_dir() else None
    name = _stream_name(source)
    source = source if folder is None else folder.sample
    found = _chosen(sniff(source), wishes)
    usable = [column for column in found.columns if column.type]
    times = proposed_times(found, [*found.made, *usable], wishes)
    if times is None:
        raise UsageError(_no_arrival(source, found))
    if times.expires is not None and not times.lives:
        times = replace(times, lives=lives(found, times.arrival, times.expires))
    parts = [part for column in found.made for part in column.parts]
    key = proposed_key(usable, (*times.columns, *parts), found.rows)
    if wishes.key:
        key = ProposedKey(tuple(column_called(each, usable, "--key").name for each in wishes.key))
    grid = _grid(times, wishes)
    when = {"anchor": grid.anchor, "interval": grid.interval}
    first = first_update(found, times.arrival, times.expires, key.columns, **when, endless=times.endless)
    text = _document(_Parts(name, source, found, times, key, grid, first, folder), wishes)
    if folder is not None:
        return Proposal({FILE_NAME: text.encode()}, name, key, times.arrival, times.expires, grid.interval, first)
    # Landing files whose names begin with these are left alone.
    landed = source.name.lstrip("._").replace(":", "-")  # Hadoop takes the text before a colon for a scheme
    files: dict[str, bytes | Path] = {FILE_NAME: text.encode(), f"landing/{name}/{landed}": source}
    return Proposal(files, name, key, times.arrival, times.expires, grid.interval, first)


def _no_arrival(source: Path, found: Found) -> str:
    inner = next((column for column in found.columns if (column.type or column.refused or "").startswith("array<struct")), None)
    if inner is not None and found.rows == 1:
        name = inner.source or inner.name
        command = f"jq -c {shlex.quote('.' + name + '[]')} {shlex.quote(str(source))} > rows.jsonl"
        said = f'{source} is one object, whose rows seem to stand in "{name}"'
        return f"{said}; `{command}` makes a line of each, for --from rows.jsonl"
    if not found.rows:
        return f"{source} has no rows, by which times are recognised; name a file with some"
    if (zoned := _named_zone(found)) is not None:
        column, zone = zoned
        example = shlex.quote(f"to_timestamp(replace({column_sql(column)}, ' {zone}', '+01:00'))")
        return (
            f"the times of {column} end with {zone}, which several zones are called; say which offset is meant "
            f"(--arrival {example}), or declare the column by hand, with {zone} in quotes in its `format` and its `timezone`"
        )
    first = found.columns[0].source or found.columns[0].name
    if found.format == "csv" and (moment := _MOMENT.search(first)):
        time = r"\S+" if moment[1] == "T" else r"\S+ \S+"
        return (
            f"{source} seems to be a log without a header, of no form that is known: its first line, {first[:60]!r}, has a time; "
            f'declare the stream by hand after a plain `stream-wh init`, with format = "text" and a pattern of its lines, '
            f"such as options = {{ pattern = '(?P<at>{time}) (?P<message>.*)' }}"
        )
    listed = _list(column.name for column in found.columns)
    refused = "".join(f"; {column.name} cannot be declared: {column.refused}" for column in found.columns if not column.type)
    texts = [column.name for column in found.columns if column.type == "string"]
    example = shlex.quote(f"to_timestamp({column_sql(texts[0] if texts else 'day')}, 'dd.MM.yyyy HH:mm')")
    return (
        f"no column of {source} ({listed}) can be an arrival time{refused}; name one that Spark can make a time of "
        f"(--arrival {example}), or declare the stream by hand after a plain `stream-wh init`"
    )


def _named_zone(found: Found) -> tuple[str, str] | None:
    """Return a column of times that all end with the same ambiguous zone name, and this name."""
    for column in found.columns:
        texts = found.sample[column.name].to_pylist() if column.type == "string" else []
        ends = [SEVERAL_ZONES.search(str(text)) for text in texts if text]
        if ends and all(ends) and len(names := {end[1] for end in ends if end}) == 1:
            return column.name, names.pop()
    return None


@dataclass(frozen=True)
class _Grid:
    """When windows move, and the longest life of rows (None: forever), in microseconds."""

    anchor: int
    interval: int
    lifetime: int | None


@dataclass(frozen=True)
class _Parts:
    """The values from which a proposed file is written."""

    name: str
    source: Path
    found: Found
    times: ProposedTimes
    key: ProposedKey
    grid: _Grid
    first: FirstUpdate | None
    folder: Folder | None


def _grid(times: ProposedTimes, wishes: Wishes) -> _Grid:
    lifetime = _rounded_up(times.lifetime) if times.lifetime is not None else None
    if lifetime is None and times.expires is not None:
        lifetime = DAY
    finest = HOUR if lifetime is None or lifetime > _AGE else max(SECOND, lifetime // _PERIODS)
    steps = (step for step in _STEPS if step <= finest and (step == SECOND or not times.lives or times.seen(step) >= _SEEN))
    interval = wishes.interval or max(steps)
    lifetime = None if lifetime is None else max(interval, min(lifetime, _MOST_PERIODS * interval))
    return _Grid((times.first or 0) // DAY * DAY, interval, lifetime)


def _stream_name(source: Path) -> str:
    for word in (source.name.split(".", maxsplit=1)[0], source.absolute().parent.name):
        name = re.sub(r"[^a-z0-9_]+", "_", word.lower())[:63]
        if name_fault(name) is None:
            return f"{name[:58]}_rows" if is_word_of_sql(name) else name
    return "stream"


def _chosen(found: Found, wishes: Wishes) -> Found:
    """Return the sniffed file with only the columns that the user wishes."""
    if not wishes.columns:
        return found
    kept = {column_called(each, found.columns, "--columns").name for each in wishes.columns}
    columns = tuple(each if each.name in kept else replace(each, type=None, refused="not wished") for each in found.columns)
    return replace(found, columns=columns)


def _document(parts: _Parts, wishes: Wishes) -> str:
    name, source, found, times, key = parts.name, parts.source, parts.found, parts.times, parts.key
    anchor, interval, lifetime = parts.grid.anchor, parts.grid.interval, parts.grid.lifetime
    refused = [column for column in found.columns if not column.type]
    file = " ".join(source.name.split())
    lines = [
        f"# Proposed for {file}: what was guessed from names and values is marked with (?).",
        "# Check it, then run `stream-wh validate` and `stream-wh plan`. Plain `stream-wh init`, in another directory,",
        "# writes a file that shows every key.",
        "#",
        *(f"# {line}" for each in _summary(parts) for line in each.splitlines()),
        "",
        "[warehouse]",
        _line('root = "data"', "where the tables are; landing directories lie elsewhere"),
        _line(f"anchor = {_text(format_instant(anchor))}", "windows move at anchor + k * update_interval"),
        _line(f"update_interval = {_text(format_duration(interval))}", f"{'' if wishes.interval else '(?) '}fixed, like anchor"),
        _line('retain = "7d"', "wall-clock time for which earlier window states stay readable"),
        "",
        *_landing_lines(parts, file),
        f"files = {_text('*' + found.endings)}",
        f"format = {_text(found.format)}",
    ]
    if found.options:
        guessed = f" # (?) {' and '.join(found.guessed)}: the sample does not decide" if found.guessed else ""
        options = ", ".join(f"{option} = {_option(value)}" for option, value in found.options)
        lines.append(f"options = {{ {options} }}{guessed}")
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


def _landing_lines(parts: _Parts, file: str) -> Iterator[str]:
    landing = f"landing/{parts.name}"
    if parts.folder is None:
        yield f"# {file} was copied to {landing}. Deliver further files of the same columns there, in"
        yield "# sub-directories if you like. Each is loaded once, so write it elsewhere and move it in when it is whole."
    else:
        landing = str(parts.folder.path)
        yield "# Files are loaded from where they are, those in sub-directories too, and stay there. Each is loaded once, so"
        yield "# write it elsewhere and move it in when it is whole."
    yield f"[streams.{parts.name}]"
    yield f"landing = {_text(landing)}"


def _key_lines(key: ProposedKey, wishes: Wishes) -> Iterator[str]:
    others = f" others: {_list(key.others)}" if key.others else ""
    if key.unsure:
        yield f"# The sample does not show the key: {key.unsure}."
    listed = key.columns[0] if len(key.columns) == 1 else list(key.columns)
    comment = "given" if wishes.key else f"(?) what probes look for: a column, or a list{';' if others else ''}{others}"
    yield _line(f"search_key = {_text(listed)}", comment)


def _summary(parts: _Parts) -> Iterator[str]:
    """Yield lines about the sample, the proposal with its reasons, and omitted columns, for the file and for the console."""
    found, times, key, interval = parts.found, parts.times, parts.key, parts.grid.interval
    if parts.folder is not None:
        yield parts.folder.in_words()
    yield f"Saw {found.rows} rows of {len(found.columns)} columns:"
    for column in found.columns:
        called = f" (in the file {_text(column.source)})" if column.source is not None else ""
        yield f"  {' '.join(column.name.split())}{called}: {column.type or 'not usable'}, about {column.distinct} values"
    count, column_name, text = found.unfit
    if count and not column_name and found.format == "csv":
        fields = f"they do not have the {len(found.columns)} fields of the others"
        yield f"{counted(count, 'other record')} would be rejected, for {fields}, such as {_text(text[:60])}."
    elif count and not column_name:
        what = "the pattern" if found.format == "text" else f"the format {found.format}"
        yield f"{counted(count, 'line')} would be rejected, for they do not match {what}, such as {_text(text[:60])}."
    elif count:
        yield f"{counted(count, 'other record')} would be rejected: {column_name} is no number there, but {_text(text[:40])}."
        yield "  If that stands for a missing value, declare it as nullValue in options; else declare the column as string."
    of_key = next(column for column in found.columns if column.name == key.columns[0])
    each = f"{of_key.distinct} values, {found.rows / max(1, of_key.distinct):.1f} rows of each on average"
    yield f"Proposes the key {', '.join(key.columns)}: {each}."
    if key.unsure:
        likely = f" such as {_list(key.others)}" if key.others else ""
        yield f"The sample does not show the key: {key.unsure}. Name it with --key, a column{likely}."
    yield f"Proposes that rows arrive at {times.arrival}."
    if times.unsure:
        yield f"The sample does not show when rows arrive: {times.unsure}. Say it with --arrival, a column or SQL."
    if times.lives:
        quarter, half, most = (_life(times.lives[place]) for place in (25, 50, 95))
        yield f"Proposes that rows end at {times.expires}:"
        yield f"  a quarter live less than {quarter}, half less than {half}, 95 % less than {most}."
        if times.endless:
            yield f"  {times.unset:.1%} have no end: these stay for ever."
        elif times.unset:
            yield f'  {times.unset:.1%} have no end and are rejected; with null_expiry = "never" they would stay for ever.'
        share = times.seen(interval)
        yield f"Every {format_duration(interval)} an update would show {share:.0%} of the rows that live at all."
    left = [column.name for column in found.columns if column.type is None]
    if left:
        yield f"Leaves out {', '.join(' '.join(name.split()) for name in left)}: see below."
    if parts.first is not None:
        yield f"{parts.first.in_words()}."


def _life(duration: float) -> str:
    return rough(int(duration)) if duration >= SECOND else format_duration(int(duration))


def _expiry_lines(times: ProposedTimes, lifetime: int | None, wishes: Wishes) -> list[str]:
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
        *([_line('null_expiry = "never"', "(?) rows without an end stay; left out: they are rejected")] if times.endless else []),
        _line(f"max_lifetime = {_text(format_duration(lifetime))}", "(?) 99 % of a sample end sooner; longer lives are accepted"),
    ]


def _others(times: ProposedTimes) -> str:
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
    return next((step for step in _STEPS if step >= lifetime), min(-(-lifetime // DAY) * DAY, LONGEST))


def _line(text: str, comment: str) -> str:
    return f"{text:<{_COMMENT_COLUMN - 1}} # {comment}"


def _text(value: str | list[str]) -> str:
    # A JSON string is a TOML string.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _option(value: str) -> str:
    if value in ("true", "false"):
        return value
    literal = "\\" in value and "'" not in value and value.isprintable()  # a pattern is easier to read so
    return f"'{value}'" if literal else _text(value)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


# --- A folder of files for ``init --from``: which files are alike, and which one is the sample ---

_MOST = 100_000


@dataclass(frozen=True)
class Folder:
    """Files in a folder and below: the newest file with the most common ending, the number of these, and of the others."""

    path: Path
    sample: Path
    alike: int
    others: int

    def in_words(self) -> str:
        """Return a sentence about the files that were looked at."""
        others = f"; {self.others} with other endings are left alone" if self.others else ""
        name = self.sample.relative_to(self.path).as_posix()
        return f"Looked at {name}, the newest of {self.alike} files that end alike in {self.path}{others}."


def folder_of(path: Path) -> Folder:
    """Return the files of a folder.

    Raises
    ------
    UsageError
        When it has no file with rows, or its name is a pattern.

    """
    groups: dict[str, list[Path]] = {}
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in names:
            file = Path(place, name)
            if not name.startswith((".", "_")) and not name.endswith(".tmp") and file.is_file() and file.stat().st_size:
                groups.setdefault("".join(file.suffixes[-2:] if is_compressed(name) else file.suffixes[-1:]), []).append(file)
        if sum(map(len, groups.values())) > _MOST:
            break
    if not groups:
        raise UsageError(f"{path} holds no file with rows; name a file, or the folder in which files land")
    if split_landing(str(path.absolute()))[1]:
        raise UsageError(f"{path.absolute()} has * or ? in its name, which `landing` takes for a pattern; rename the folder")
    largest = max(groups.values(), key=len)
    sample = max(largest, key=lambda file: (file.stat().st_mtime_ns, str(file)))
    return Folder(path.absolute(), sample.absolute(), len(largest), sum(map(len, groups.values())) - len(largest))
