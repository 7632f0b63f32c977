"""The results of commands, rows or a report, and how they are rendered."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from warehouse.cli.logs import in_json, write_message
from warehouse.cli.output import emit
from warehouse.cli.output.sink import open_sink
from warehouse.cli.output.values import encode_json
from warehouse.cli.output.visible import is_terminal, lines_visible, terminal_width, wrapped
from warehouse.errors import WarehouseError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from warehouse.cli.output import Destination
    from warehouse.cli.output.records import Result

__all__ = ["AnswerTime", "Report", "Rows", "render_report", "render_rows", "render_turn"]


@dataclass(frozen=True)
class AnswerTime:
    """The epoch and window time of an answer, and the later instant ``now`` of its live rows; times are microseconds."""

    epoch: int
    window_time: int
    now: int | None = None
    committed_at: int | None = None

    def __str__(self) -> str:
        """Return the line that accompanies every answer."""
        later = f", live at {format_instant(self.now)}" if self.now is not None else ""
        return f"as of window time {format_instant(self.window_time)} (epoch {self.epoch}){later}"

    @property
    def facts(self) -> dict[str, str]:
        """The metadata for output files that have metadata."""
        committed = {} if self.committed_at is None else {"stream_wh.committed": format_instant(self.committed_at)}
        return {"stream_wh.epoch": str(self.epoch), "stream_wh.window_time": format_instant(self.window_time), **committed}


@dataclass(frozen=True)
class Rows:
    """A result, its window state, the explanation that ``--explain`` adds once the rows are read, and ``notes``.

    A table for people shows ``brief`` instead of the result. The lines of ``headline`` are above such a table, and then replace
    warnings and notes; with other formats the first line, warnings and notes go to standard error. ``why_empty`` is called if
    there was no row.
    """

    result: Result
    answer_time: AnswerTime | None = None
    explain: Callable[[], Mapping[str, object]] | None = None
    warnings: tuple[str, ...] = ()
    exit_code: int = 0
    notes: tuple[str, ...] = ()
    headline: tuple[str, ...] = ()
    why_empty: Callable[[], str | None] | None = None
    brief: Result | None = None


@dataclass(frozen=True)
class Report:
    """The result of a verb: a record for machines, lines for people; with ``data`` the lines go to standard output."""

    record: Mapping[str, object]
    lines: tuple[str, ...]
    data: bool = False
    exit_code: int = 0
    warnings: tuple[str, ...] = field(default=())


def render_rows(rows: Rows, destination: Destination) -> int:
    """Write the rows to their destination, then the messages about them to standard error."""
    chosen = destination.chosen()
    above = rows.headline and chosen == "table"
    if not above:
        for line in rows.headline[:1]:
            write_message(lines_visible(line))
        _warn(rows.warnings)
    answer_time = rows.answer_time
    metadata = answer_time.facts if answer_time else {}
    top = (*rows.headline, "") if above else ()
    result = rows.brief if rows.brief is not None and chosen == "table" else rows.result
    count = emit(result, destination, metadata, top)
    if answer_time:
        write_message(f"{count} {'row' if count == 1 else 'rows'}, {answer_time}")
    if not count and rows.why_empty is not None and (chosen == "table" or sys.stderr.isatty()):  # for people: it is slow
        with suppress(WarehouseError):  # the answer is written; its files may be deleted now
            if why := rows.why_empty():
                write_message(lines_visible(why))
    for note in () if above else rows.notes:
        write_message(lines_visible(note))
    if rows.explain:
        for name, value in rows.explain().items():
            write_message(f"{name.replace('_', ' ')}: {lines_visible(str(value))}")
    return rows.exit_code


def render_report(report: Report, *, as_json: bool) -> int:
    """Write a report and return the command's exit code."""
    if as_json:
        record = {**report.record, "warnings": list(report.warnings)} if report.warnings else report.record
        with open_sink(None) as sink:
            sink.write(encode_json(record) + b"\n")
        return report.exit_code
    _warn(report.warnings)
    if in_json() and not report.data:
        write_message("; ".join(line.strip() for line in report.lines), fields={"report": report.record})
        return report.exit_code
    stream = sys.stdout if report.data else sys.stderr
    for line in report.lines:
        shown = lines_visible(line)
        click.echo(wrapped(shown, terminal_width()) if is_terminal(stream) else shown, file=stream)
    return report.exit_code


def render_turn(report: Report) -> None:
    """Write the result of one of many updates as one line of a log, and its warnings."""
    line = "; ".join(lines_visible(line.strip()) for line in report.lines)
    write_message(line, logging.ERROR if report.exit_code else logging.INFO, {"report": report.record})
    _warn(report.warnings)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        write_message(lines_visible(warning) if in_json() else f"warning: {lines_visible(warning)}", logging.WARNING)
