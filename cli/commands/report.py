"""``report``: the warehouse as one page."""

from __future__ import annotations

from pathlib import Path

import click

from warehouse.cli import reading
from warehouse.cli.logs import write_message
from warehouse.cli.options import command, project
from warehouse.cli.output.emit import require_ending

__all__ = ["report"]


@command("report", "The warehouse as one page.", "stream-wh report", "stream-wh report --output-file /srv/www/flights.html")
@click.option(
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    metavar="FILE",
    help="Write there, whole or not at all [report.html].",
)
@project
def report(directory: Path, *, output_file: Path) -> int:
    """Write an HTML page that needs no network: grids with live and dead bytes, updates by step, lag, sizes, lifetimes, views.

    It reads times of all live rows and probes each table a few times; it needs no Spark.
    """
    require_ending(output_file, (".html", ".htm"))
    reading.write_report(directory, output_file)
    write_message(f"wrote {output_file}")
    return 0
