"""``explain``: how a view is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import library
from warehouse.cli.options import command, complete_views, project, report_command

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["explain"]


@command("explain", "How a view is kept up to date.", "stream-wh explain with_weather", "stream-wh explain with_weather -o json")
@click.argument("view", shell_complete=complete_views)
@report_command
@project
def explain(directory: Path, view: str) -> Report:
    """Draw the plan of VIEW: operators with their update patterns, and the tables that keep their rows.

    MON rows never leave, WKS ones after one constant lifetime, WK ones at an end that is known when they come, STR ones
    when later rows say so; two labels differ where internal windows end no result. Below the plan stand the share of
    short-lived results, join orders by what the cost model expects of the live rows, and equal plans where they pay.
    It needs no Spark. Of an aggregate: the synopses that it reads, which others share them, and when each window is due.
    """
    return library.explained(directory, view)
