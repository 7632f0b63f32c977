"""``explain``: how a view is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import reading
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
    """Draw the plan of VIEW: its operators, how the rows of each leave, and the tables that keep them.

    Rows never expire, or after one constant time, or at their own time; or they can leave early, when later rows say so,
    as in a GROUP BY. The share of short-lived results, the join orders that the cost model expects to be cheap for the
    live rows, and equal plans that pay follow the plan. It needs no Spark. Of an aggregate: the counts that it
    reads, which others share them, and when each window is due.
    """
    return reading.explain(directory, view)
