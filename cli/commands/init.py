"""``init``: a project directory to start from."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warehouse.cli.first_project import from_example, from_file
from warehouse.cli.options import ColumnNames, command, report_command
from warehouse.time import parse_duration

if TYPE_CHECKING:
    from warehouse.cli.outcome import Report

__all__ = ["init"]


@command(
    "init",
    "Write a project to start from.",
    "stream-wh init w --example flights",
    "stream-wh init w --from measurements.csv",
    "stream-wh init w --from log.jsonl --key host --expires ttl --interval 10m",
)
@click.argument("directory", required=False, default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--example", metavar="NAME", help="Copy an example: flights, dns, sessions, or answers.")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE|DIR",
    help="Look at a csv, json, parquet, orc or avro file, a log, or a folder of them; propose columns, key, times, interval.",
)
@click.option("--key", metavar="COLUMNS", type=ColumnNames(), help="Column or columns to probe by, in place of a guess.")
@click.option("--arrival", metavar="COLUMN|SQL", help="Column or expression of the time at which a row arrives.")
@click.option("--expires", metavar="COLUMN|SQL", help="Column or expression of its end, or a duration's column; never: none.")
@click.option("--interval", metavar="DURATION", help="Time between two updates, such as 10m.")
@click.option("--columns", metavar="COLUMNS", type=ColumnNames(), help="Declare these columns only.")
@report_command
def init(directory: Path, *, example: str | None, source: Path | None, **options: Any) -> Report:  # noqa: ANN401 - options of --from
    """Write a commented warehouse.toml, and sample landing files, into DIRECTORY; nothing is ever overwritten.

    With --from on a terminal it asks for the values that no option gives, and offers its proposals as answers.
    """
    from warehouse.catalog.init_options import InitOptions  # noqa: PLC0415 - help does without

    file_options = {name: value for name, value in options.items() if value}
    if file_options and source is None:
        raise click.UsageError(f"--{next(iter(file_options))} is about the file of --from; give both")
    if example and source:
        raise click.UsageError("--example and --from are two ways to start; give one")
    base = click.get_current_context().find_root().params.get("directory")
    if "interval" in file_options:
        try:
            file_options["interval"] = parse_duration(file_options["interval"])
        except ValueError as error:
            raise click.UsageError(f"--interval: {error}") from error
    target = base / directory if base else directory
    if source is None:
        return from_example(target, example)
    if source.is_dir() and target.absolute().resolve().is_relative_to(source.resolve()):
        raise click.UsageError(f"the project would lie in {source}, among the files to load; name another DIRECTORY for it")
    choices = InitOptions(**file_options)
    if sys.stdin.isatty():
        from warehouse.cli.questions import ask  # noqa: PLC0415 - only a terminal is asked

        choices = ask(source, choices)
    return from_file(target, source, choices, time.time_ns() // 1000)
