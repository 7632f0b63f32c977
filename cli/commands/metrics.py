"""``metrics``: the warehouse for a monitoring system."""

from __future__ import annotations

from pathlib import Path

import click

from warehouse.cli import verification
from warehouse.cli.options import command, project
from warehouse.cli.output.emit import require_ending

__all__ = ["metrics"]


@command(
    "metrics",
    "Metrics in the text format of Prometheus.",
    "stream-wh metrics",
    "stream-wh metrics --output-file /var/lib/node_exporter/stream_wh.prom",
)
@click.option(
    "--output-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write there, whole or not at all: the textfile collector never reads half of it.",
)
@project
def metrics(directory: Path, *, output_file: Path | None) -> int:
    """Print gauges of the newest epoch, its update, every table and the landing directories.

    Run it after each update. It needs no Spark.
    """
    if output_file is not None:
        require_ending(output_file, (".prom", ".txt"))
    return verification.write_metrics(directory, output_file)
