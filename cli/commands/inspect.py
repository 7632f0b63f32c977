"""What the warehouse knows of itself: ``status``, ``tables``, ``describe``, ``files``, ``history``, ...: one for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli import knowledge
from cli.options import command, complete_views, limit_option, project, rows_command, table_argument

if TYPE_CHECKING:
    from pathlib import Path

    from cli.outcome import Rows

__all__ = ["describe", "files", "history", "rejected", "restored", "status", "tables"]


@command("status", "Where every table stands.", "stream-wh status", "stream-wh status -v", "stream-wh status --check")
@click.option("-v", "--verbose", is_flag=True, help="One row for each sub-index and expiry block.")
@click.option("--check", is_flag=True, help="Exit code 4 when a table is stale, or dead rows lie for too long.")
@rows_command
@project
def status(directory: Path, *, verbose: bool, check: bool) -> Rows:
    """Print for each table: window time, live rows, files, bytes, lag, waiting, changed and unreadable files.

    A view has no landing files. With -v the tables in which operators of views keep their state are shown too.
    """
    return knowledge.status(directory, verbose=verbose, check=check)


@command("tables", "The names of the tables.", "stream-wh tables")
@rows_command
@project
def tables(directory: Path) -> Rows:
    """Print the names of the tables, and whether each is a stream, a relation or a view."""
    return knowledge.tables(directory)


@command("describe", "The columns and the layout of a table.", "stream-wh describe flights", "stream-wh describe weather_aloft")
@table_argument
@rows_command
@project
def describe(directory: Path, table: str) -> Rows:
    """Print the columns of TABLE, its search key and its layout; of a view its query, of a relation how it changes."""
    return knowledge.describe(directory, table)


@command("files", "The exact files any engine needs.", "stream-wh files flights", "stream-wh files flights -o json")
@table_argument
@rows_command
@project
def files(directory: Path, table: str) -> Rows:
    """Print the exact files of TABLE at the newest epoch, and the filter any other engine needs to read them."""
    return knowledge.files(directory, table)


@command("history", "One row for each epoch.", "stream-wh history --limit 10")
@limit_option
@rows_command
@project
def history(directory: Path, limit: int | None) -> Rows:
    """Print one row for each readable epoch, the newest first: window time, commit time, counts, seconds."""
    return knowledge.history(directory, limit)


@command("rejected", "Invalid rows, with reasons.", "stream-wh rejected flights --limit 10")
@table_argument
@limit_option
@rows_command
@project
def rejected(directory: Path, table: str, limit: int | None) -> Rows:
    """Print the invalid rows of TABLE with their file, record number and reason."""
    return knowledge.rejected(directory, table, limit)


@command("restored", "Short-lived results of a view.", "stream-wh restored with_weather --limit 10")
@click.argument("view", shell_complete=complete_views)
@limit_option
@rows_command
@project
def restored(directory: Path, view: str, limit: int | None) -> Rows:
    """Print the results of VIEW that began and ended between two updates, so that no window state showed them.

    They are kept for views declared with short_lived = "report". _ts and _exp tell when a result was in the answer,
    _epoch which update found it.
    """
    return knowledge.restored(directory, view, limit)
