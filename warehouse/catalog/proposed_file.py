"""Writes the text of a proposed ``warehouse.toml``: its keys, and comments that name the guesses and the alternatives."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.init_options import NEVER, InitOptions
from warehouse.catalog.proposed_layout import layout_lines
from warehouse.time import SECOND, format_duration, format_instant, rough
from warehouse.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from warehouse.catalog.first_update import FirstUpdate
    from warehouse.catalog.proposed_key import ProposedKey
    from warehouse.catalog.proposed_times import ProposedTimes
    from warehouse.catalog.sample_folder import Folder
    from warehouse.catalog.sniffed_file import SniffedColumn, SniffedFile

__all__ = ["ProposalParts", "ProposedGrid", "listed_names", "proposed_file"]

_COMMENT_COLUMN = 36


@dataclass(frozen=True)
class ProposedGrid:
    """When windows move, and the longest life of rows (None: forever), in microseconds.

    ``max_ahead`` is how far ahead of the clock rows may arrive; None: its default, the longest life.
    """

    anchor: int
    interval: int
    lifetime: int | None
    max_ahead: int | None = None


@dataclass(frozen=True)
class ProposalParts:
    """The values from which a proposed file is written."""

    name: str
    source: Path
    found: SniffedFile
    times: ProposedTimes
    key: ProposedKey
    grid: ProposedGrid
    first: FirstUpdate | None
    folder: Folder | None


def proposed_file(parts: ProposalParts, choices: InitOptions) -> str:
    """Return the text of a proposed ``warehouse.toml``."""
    name, source, sniffed, times, key = parts.name, parts.source, parts.found, parts.times, parts.key
    anchor, interval, lifetime = parts.grid.anchor, parts.grid.interval, parts.grid.lifetime
    refused = [column for column in sniffed.columns if not column.type]
    file = " ".join(source.name.split())
    lines = [
        f"# Proposed for {file}: what was guessed from names and values is marked with (?).",
        "# Check it, then run `stream-wh validate` and `stream-wh plan`. Plain `stream-wh init`, in another directory,",
        "# writes a file that shows every key.",
        "#",
        *(f"# {line}" for text in _summary(parts) for line in text.splitlines()),
        "",
        "[warehouse]",
        _line('root = "data"', "where the tables are; landing directories lie elsewhere"),
        _line(f"anchor = {_text(format_instant(anchor))}", "windows move at anchor + k * update_interval"),
        _line(f"update_interval = {_text(format_duration(interval))}", f"{'' if choices.interval else '(?) '}fixed, like anchor"),
        _line('retain = "7d"', "wall-clock time for which earlier window states stay readable"),
        "",
        *_landing_lines(parts, file),
        f"files = {_text('*' + sniffed.endings)}",
        *_partition_lines(sniffed),
        f"format = {_text(sniffed.format)}",
    ]
    if sniffed.options:
        guessed = f" # (?) {' and '.join(sniffed.guessed)}: the sample does not decide" if sniffed.guessed else ""
        options = ", ".join(f"{option} = {_option(value)}" for option, value in sniffed.options)
        lines.append(f"options = {{ {options} }}{guessed}")
    lines += [
        *([] if sniffed.format == "zeek" else [_line('timezone = "UTC"', "of timestamps without an offset")]),
        *_key_lines(key, choices),
        _line(f"arrival = {_text(times.arrival)}", ("given" if choices.arrival else "(?)") + _others(times)),
        *_expiry_lines(times, lifetime, choices),
        *_ahead_lines(parts.grid.max_ahead),
    ]
    if refused:
        lines.append(_line('unknown_columns = "ignore"', "some columns cannot be declared, see below"))
    lines += ["", f"[streams.{name}.columns]"]
    lines += [_column_line(column) for column in sniffed.columns]
    if lifetime is not None and times.first is not None and times.last is not None:
        span = times.last - times.first
        lines += layout_lines(name, rows=sniffed.rows, span=span, interval=interval, longest=lifetime, mean=times.mean)
    return "\n".join(lines) + "\n"


def _landing_lines(parts: ProposalParts, file: str) -> Iterator[str]:
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


def _partition_lines(sniffed: SniffedFile) -> list[str]:
    declared = {column.name for column in sniffed.columns if column.type}
    names = [name for name in sniffed.partitions if name in declared]
    if not names:
        return []
    return [_line(f"partitions = {_text(names)}", "columns whose values are the names of folders, NAME=VALUE")]


def _key_lines(key: ProposedKey, choices: InitOptions) -> Iterator[str]:
    others = f" others: {listed_names(key.others)}" if key.others else ""
    if key.unsure:
        yield f"# The sample does not show the key: {key.unsure}."
    listed = key.columns[0] if len(key.columns) == 1 else list(key.columns)
    comment = "given" if choices.key else f"(?) what probes look for: a column, or a list{';' if others else ''}{others}"
    yield _line(f"search_key = {_text(listed)}", comment)


def _summary(parts: ProposalParts) -> Iterator[str]:
    """Yield lines about the sample, the proposal with its reasons, and omitted columns, for the file and for the console."""
    sniffed, times, key, interval = parts.found, parts.times, parts.key, parts.grid.interval
    if parts.folder is not None:
        yield parts.folder.in_words()
    yield f"Saw {sniffed.rows} rows of {len(sniffed.columns)} columns:"
    for column in sniffed.columns:
        called = f" (in the file {_text(column.source)})" if column.source is not None else ""
        yield f"  {' '.join(column.name.split())}{called}: {column.type or 'not usable'}, about {column.distinct} values"
    count, column_name, text = sniffed.unfit
    if count and not column_name and sniffed.format == "csv":
        fields = f"they do not have the {len(sniffed.columns)} fields of the others"
        yield f"{counted(count, 'other record')} would be rejected, for {fields}, such as {_text(text[:60])}."
    elif count and not column_name:
        expected = "the pattern" if sniffed.format == "text" else f"the format {sniffed.format}"
        yield f"{counted(count, 'line')} would be rejected, for they do not match {expected}, such as {_text(text[:60])}."
    elif count:
        yield f"{counted(count, 'other record')} would be rejected: {column_name} is no number there, but {_text(text[:40])}."
        yield "  If that stands for a missing value, declare it as nullValue in options; else declare the column as string."
    of_key = next(column for column in sniffed.columns if column.name == key.columns[0])
    frequency = f"{of_key.distinct} values, {sniffed.rows / max(1, of_key.distinct):.1f} rows of each on average"
    yield f"Proposes the key {', '.join(key.columns)}: {frequency}."
    if key.unsure:
        likely = f" such as {listed_names(key.others)}" if key.others else ""
        yield f"The sample does not show the key: {key.unsure}. Name it with --key, a column{likely}."
    yield f"Proposes that rows arrive at {times.arrival}."
    if times.unsure:
        yield f"The sample does not show when rows arrive: {times.unsure}. Say it with --arrival, a column or SQL."
    if times.lifetimes:
        quarter, half, most = (_life(times.lifetimes[percent]) for percent in (25, 50, 95))
        yield f"Proposes that rows end at {times.expires}:"
        yield f"  a quarter live less than {quarter}, half less than {half}, 95 % less than {most}."
        if times.endless:
            yield f"  {times.unset:.1%} have no end: these stay for ever."
        elif times.unset:
            yield f'  {times.unset:.1%} have no end and are rejected; with null_expiry = "never" they would stay for ever.'
        share = times.visible_share(interval)
        yield f"Every {format_duration(interval)} an update would show {share:.0%} of the rows that live at all."
    ignored = [column.name for column in sniffed.columns if column.type is None]
    if ignored:
        yield f"Leaves out {', '.join(' '.join(name.split()) for name in ignored)}: see below."
    if parts.first is not None:
        yield f"{parts.first.in_words()}."


def _life(duration: float) -> str:
    return rough(int(duration)) if duration >= SECOND else format_duration(int(duration))


def _expiry_lines(times: ProposedTimes, lifetime: int | None, choices: InitOptions) -> list[str]:
    if choices.expires == NEVER:
        return ["# Rows never expire."]
    if times.expires is None or lifetime is None:
        return [
            "# No column looks like an expiration time, so rows never expire. If they do, give an expression:",
            '# expires = "ts + INTERVAL 1 DAY"',
            '# max_lifetime = "1d"',
        ]
    if not times.lifetimes:
        return [
            _line(f"expires = {_text(times.expires)}", "given"),
            _line(f"max_lifetime = {_text(format_duration(lifetime))}", "(?) how long nearly all rows live: not looked at"),
        ]
    return [
        _line(f"expires = {_text(times.expires)}", "given" if choices.expires else "(?) left out: rows never expire"),
        *([_line('null_expiry = "never"', "(?) rows without an end stay; left out: they are rejected")] if times.endless else []),
        _line(f"max_lifetime = {_text(format_duration(lifetime))}", "(?) 99 % of a sample end sooner; longer lives are accepted"),
    ]


def _ahead_lines(max_ahead: int | None) -> Iterator[str]:
    if max_ahead is not None:
        comment = "(?) twice as far ahead of now as the sample's rows; later ones are rejected"
        yield _line(f"max_ahead = {_text(format_duration(max_ahead))}", comment)


def _others(times: ProposedTimes) -> str:
    return f" other times: {listed_names(times.others)}" if times.others else ""


def _column_line(column: SniffedColumn) -> str:
    name = column.name if re.fullmatch(r"[A-Za-z0-9_-]+", column.name) else _text(column.name)
    if column.type is None:
        return " ".join(f"# {_text(column.name)}: ignored ({column.refused})".split())
    if column.source is None and column.format is None:
        return f"{name} = {_text(column.type)}"
    settings = [f"type = {_text(column.type)}"]
    settings += [f"from = {_text(column.source)}"] if column.source is not None else []
    settings += [f"format = {_text(column.format)}"] if column.format is not None else []
    return f"{name} = {{ {', '.join(settings)} }}"


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


def listed_names(names: Iterable[str]) -> str:
    """Return names with commas between them; the word ``none`` for an empty list."""
    return ", ".join(names) or "none"
