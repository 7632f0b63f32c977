"""``init``: a project directory to start from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warehouse.cli import library
from warehouse.cli.options import command, report_command

if TYPE_CHECKING:
    from warehouse.cli.outcome import Report

__all__ = ["init"]


@command(
    "init",
    "Write a project to start from.",
    "stream-wh init w --example flights",
    "stream-wh init w --from measurements.csv",
)
@click.argument("directory", required=False, default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--example", metavar="NAME", help="Copy an example with real data: flights.")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Infer columns from a csv, json, parquet or Zeek file and propose key, arrival, expiry and interval.",
)
@report_command
def init(directory: Path, *, example: str | None, source: Path | None) -> Report:
    """Write a commented warehouse.toml, and sample landing files, into DIRECTORY; nothing is ever overwritten."""
    if example and source:
        raise click.UsageError("--example and --from are two ways to start; give one")
    base = click.get_current_context().find_root().params.get("directory")
    return library.initialised(base / directory if base else directory, example, source)
