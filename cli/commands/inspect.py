"""``status``, ``tables``, ``describe``, ``files``, ``history``, ``rejected``: what the warehouse knows of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli import knowledge
from cli.options import command, limit_option, project, rows_command, table_argument

if TYPE_CHECKING:
    from pathlib import Path

    from cli.outcome import Rows

__all__ = ["describe", "files", "history", "rejected", "status", "tables"]


@command("status", "Where every table stands.", "stream-wh status", "stream-wh status -v")
@click.option("-v", "--verbose", is_flag=True, help="One row for each sub-index and expiry block.")
@rows_command
@project
def status(directory: Path, *, verbose: bool) -> Rows:
    """Print for each table: window time, live rows, files, bytes, lag, waiting, changed and unreadable files."""
    return knowledge.status(directory, verbose=verbose)


@command("tables", "The names of the tables.", "stream-wh tables")
@rows_command
@project
def tables(directory: Path) -> Rows:
    """Print the names of the tables."""
    return knowledge.tables(directory)


@command("describe", "The columns and the layout of a table.", "stream-wh describe flights")
@table_argument
@rows_command
@project
def describe(directory: Path, table: str) -> Rows:
    """Print the columns of TABLE, its search key and its layout."""
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
