"""``connect``: how another tool reads a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import reading
from warehouse.cli.options import command, complete_tables, project, report_command

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["TOOLS", "connect"]

TOOLS = ("duckdb", "dbt", "spark", "pandas", "polars", "metabase")


@command(
    "connect",
    "How another tool reads a table.",
    "stream-wh connect pandas flights",
    "stream-wh connect duckdb flights | duckdb",
)
@click.argument("tool", type=click.Choice(TOOLS))
@click.argument("table", shell_complete=complete_tables)
@report_command
@project
def connect(directory: Path, tool: str, table: str) -> Report:
    """Print a snippet with which TOOL reads exactly the live rows of TABLE.

    The snippet opens warehouse.duckdb under the root, which every update replaces: run it again to read the newest epoch.
    """
    return reading.connect(directory, tool, table)
