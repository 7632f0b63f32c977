"""``demo``: the whole path on real data, in one process, so that one Spark session serves all its updates."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warehouse.cli.options import command
from warehouse.cli.output.visible import styled
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["demo"]

_REPORT = "report.html"
_STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "A project: one warehouse.toml, a day of departures from New York and the weather there as hourly files",
        ("init", ".", "--example", "flights"),
    ),
    ("Declarations and queries of views are checked without Spark", ("validate",)),
    ("The first update: a flight is live from departure to landing", ("update", "--at", "2013-01-01T12:00:00Z")),
    ("One aircraft in the air", ("probe", "flights", "N14228", "--columns", "tailnum,origin,dest,departed_at")),
    (
        "Flights to San Francisco",
        ("scan", "flights", "--where", "dest = 'SFO'", "--columns", "tailnum,carrier,origin", "--limit", "5"),
    ),
    ("Any DuckDB query", ("sql", "select carrier, count(*) as aloft from flights group by 1 order by 2 desc limit 5")),
    ("What the next update would do", ("plan", "--at", "2013-01-01T18:00:00Z")),
    ("Departures come, landed flights go: one update for six hours", ("update", "--at", "2013-01-01T18:00:00Z")),
    ("The window as it was at noon", ("probe", "flights", "N14228", "--as-of", "2013-01-01T12:00:00Z", "-o", "jsonl")),
    ("A view is a query kept as a table: flights with the weather still valid at their origin", ("explain", "with_weather")),
    (
        "It is probed like any table; a result lives until the flight lands or the weather is old",
        ("probe", "with_weather", "JFK", "--columns", "tailnum,dest,temp,wind_speed,_exp", "--limit", "3"),
    ),
    ("Results that began and ended between two updates", ("restored", "with_weather", "--limit", "3")),
    ("A DISTINCT: the destinations of the flights in the air", ("explain", "destinations")),
    ("How many there are", ("sql", "select count(*) as destinations from destinations")),
    ("A NOT EXISTS: flights whose origin has no strong wind", ("explain", "without_strong_wind")),
    ("It blows at two of three", ("sql", "select origin, count(*) as calm from without_strong_wind group by 1")),
    ("A GROUP BY: only the carriers whose flights changed are touched", ("explain", "by_carrier")),
    ("Its rows", ("sql", "from by_carrier order by flights desc limit 3")),
    ("A relation, which changes slowly: each flight with the plane that was known at departure", ("explain", "with_plane")),
    (
        "One of its rows",
        ("scan", "with_plane", "--where", "dest = 'SFO'", "--columns", "tailnum,manufacturer,model,seats", "--limit", "3"),
    ),
    ("An aggregate: what departed in the last hour, six hours and day, landed or not", ("explain", "traffic")),
    (
        "One update gave the answers of all the hours that it passed",
        (
            "sql",
            "select window_end, flights from traffic where origin = 'EWR' and window_length = '6h' order by 1 desc limit 4",
        ),
    ),
    (
        "Frequent items: where more than a twentieth of a day's departures went",
        ("scan", "busy_routes", "--columns", "window_end,item,at_least,at_most", "--limit", "5"),
    ),
    ("A coalesced table: from when to when the wind came from one direction", ("explain", "wind")),
    (
        "When it did so for four hours",
        (
            "sql",
            "select origin, wind_dir, valid_from, valid_to from wind where duration(wind) >= interval 4 hours order by 3",
        ),
    ),
    (
        "At noon: since when it had done so",
        (
            "sql",
            "select origin, wind_dir, valid_from as since, duration(wind, 'hours') as hours from wind where open order by 1",
            "--as-of",
            "2013-01-01T12:00:00Z",
            "--open-until",
            "now",
        ),
    ),
    ("Rows that could not be used are kept with the reason", ("rejected", "flights", "--limit", "3")),
    ("Where everything stands", ("status", "-o", "table")),
    ("One line an update", ("history", "-o", "table")),
    ("All of it as one page", ("report", "--output-file", _REPORT)),
)


@command("demo", "Run the whole path on real flights.", "stream-wh demo", "stream-wh demo --keep demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Work in this new directory and leave it there.",
)
def demo(keep: Path | None) -> int:
    """Move the windows over a day of real flights, read them and their views, and print each command first."""
    from warehouse.cli.main import run  # noqa: PLC0415 - the group imports this module

    with _demo_directory(keep) as workspace, _working_in(workspace):
        for title, arguments in _STEPS:
            command_line = " ".join(["stream-wh", *map(_quoted, arguments)])
            click.echo(f"\n{styled('# ' + title, 'dim', sys.stdout)}\n{styled('$ ' + command_line, 'bold', sys.stdout)}")
            code = run(list(arguments))
            sys.stdout.flush()
            if code:
                return code
        page = workspace / _REPORT if keep else _moved_report(workspace / _REPORT)
    _print_next_steps(keep, page)
    return 0


def _moved_report(page: Path) -> Path:
    """Move the report out of a temporary directory, and return its new path."""
    return Path(shutil.move(page, tempfile.mkdtemp(prefix="stream-wh-report-")))


def _quoted(word: str) -> str:
    """Return a word as a person would type it: in double quotes where it holds single ones."""
    plain = "'" in word and not set(word) & set('"$`\\!')
    return f'"{word}"' if plain else shlex.quote(word)


def _print_next_steps(keep: Path | None, page: Path) -> None:
    where = f"cd {shlex.quote(str(keep))}" if keep else "stream-wh init w --example flights && cd w"
    click.echo(
        f"\nThe report that it made, for a browser: {page}\n"
        "\nWhere to go next:\n"
        f"  {where}\n"
        "  look into warehouse.toml, point `landing` at files of your own, then\n"
        "  stream-wh validate && stream-wh plan && stream-wh update\n"
        "  stream-wh --help lists every command, README.md and docs/ explain the rest"
    )


@contextmanager
def _demo_directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="stream-wh-demo-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f'"{keep}" exists and is not an empty directory; choose another one for --keep')
    keep.mkdir(parents=True, exist_ok=True)
    yield keep


@contextmanager
def _working_in(directory: Path) -> Iterator[None]:
    """Make a directory the current one and the project of all commands; ``$STREAM_WH_PROJECT`` is ignored meanwhile."""
    before, project = Path.cwd(), os.environ.pop("STREAM_WH_PROJECT", None)
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
        if project is not None:
            os.environ["STREAM_WH_PROJECT"] = project
