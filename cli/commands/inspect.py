"""Facts about the warehouse: ``status``, ``tables``, ``describe``, ``files``, ``history``, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import inspection
from warehouse.cli import status as status_output
from warehouse.cli.accuracy import AccuracyOptions, accuracy_options
from warehouse.cli.options import command, complete_views, limit_option, project, report_command, rows_command, table_argument

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report, Rows

__all__ = ["describe", "files", "health", "history", "rejected", "restored", "status", "tables"]


@command("status", "The verdict; where each table stands.", "stream-wh status", "stream-wh status -v", "stream-wh status --check")
@click.option("-v", "--verbose", is_flag=True, help="What ends next; as csv, json, ...: each sub-index and expiry block.")
@click.option("-x", "--expanded", is_flag=True, help="Every fact on a terminal too, not a line a table.")
@click.option("--check", is_flag=True, help="Exit code 4 when something needs a person.")
@accuracy_options
@rows_command
@project
def status(
    directory: Path, *, verbose: bool, expanded: bool, check: bool, at_least: int | None, minimum_accuracy: float | None
) -> Rows:
    """Print the verdict, each thing that needs a person with what helps, and a line for each table.

    csv, json and the other formats for programs have every fact of each table: window time, live rows, files, bytes, lag,
    waiting, changed and unreadable files. A view has no landing files. With -v these formats have a row for each sub-index,
    and the tables in which operators of views keep their state.
    """
    accuracy = AccuracyOptions(at_least, minimum_accuracy)
    return status_output.status(directory, verbose=verbose, expanded=expanded, check=check, accuracy=accuracy)


@command("health", "The verdict alone, and what helps.", "stream-wh health", "stream-wh health -o json")
@report_command
@project
def health(directory: Path) -> Report:
    """Print whether the warehouse is ok, needs attention or is broken, and each reason with the command that helps.

    The exit code is 0 for ok, else 4. The thresholds are in [health] of warehouse.toml.
    """
    return status_output.health(directory)


@command("tables", "The names of the tables.", "stream-wh tables")
@rows_command
@project
def tables(directory: Path) -> Rows:
    """Print the names of the tables and their kinds: stream, relation, view, aggregate, coalesced table."""
    return inspection.tables(directory)


@command("describe", "The columns and the layout of a table.", "stream-wh describe flights", "stream-wh describe weather_aloft")
@table_argument
@rows_command
@project
def describe(directory: Path, table: str) -> Rows:
    """Print the columns of TABLE, its search key and its layout; of a view its query, of a relation how it changes."""
    return inspection.describe(directory, table)


@command("files", "The exact files any engine needs.", "stream-wh files flights", "stream-wh files flights -o json")
@table_argument
@rows_command
@project
def files(directory: Path, table: str) -> Rows:
    """Print the exact files of TABLE at the newest epoch, and the filter any other engine needs to read them."""
    return inspection.files(directory, table)


@command("history", "One row for each epoch.", "stream-wh history --limit 10")
@limit_option
@rows_command
@project
def history(directory: Path, limit: int | None) -> Rows:
    """Print one row for each readable epoch, the newest first: window time, commit time, counts, seconds."""
    return inspection.history(directory, limit)


@command("rejected", "Invalid rows, with reasons.", "stream-wh rejected flights --limit 10")
@table_argument
@limit_option
@rows_command
@project
def rejected(directory: Path, table: str, limit: int | None) -> Rows:
    """Print the invalid rows of TABLE with their file, record number and reason.

    They stay for as long as `keep` says, 90 days by default.
    """
    return inspection.rejected(directory, table, limit)


@command("restored", "Short-lived results of a view.", "stream-wh restored with_weather --limit 10")
@click.argument("view", shell_complete=complete_views)
@limit_option
@rows_command
@project
def restored(directory: Path, view: str, limit: int | None) -> Rows:
    """Print the results of VIEW that began and ended between two updates, so that no window state showed them.

    They are kept for views declared with short_lived = "report", as long as `keep` says. _ts and _exp say when a result
    was in the answer, _epoch which update found it.
    """
    return inspection.restored(directory, view, limit)
