"""A one-minute warehouse over many updates, ``python -m benchmarks.minutes``: what an update, a reader and a disk see of its age.

A clock is replayed: at every minute a small file lands (with ``--apart`` at some minutes), and the warehouse is updated. It has a
stream whose files are moved away once they are loaded for good, a view that is kept, and live tables, so whatever could grow with
the number of updates is there: records, ledgers, logs, checkpoints, landing files, live versions. Each update appends a line to
``curves.jsonl``; a run that is stopped, or asked for more updates, goes on.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.field.page import markdown_table
from warehouse import Warehouse
from warehouse.catalog.load import load_catalog
from warehouse.checking.check import check
from warehouse.epochs.journal import newest_epoch
from warehouse.operations.context import WriteContext
from warehouse.operations.update import UpdateOptions, update
from warehouse.storage.session import spark_session
from warehouse.time import MINUTE, format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment

__all__ = ["main"]

_ANCHOR = parse_instant("2040-01-01T00:00:00Z")
"""Ahead of every real clock, so that no file is younger than the replayed one says."""
_LATE = 5_000_000
"""Microseconds after the full minute at which an update begins."""
_KEYS = 1000
_TENTHS = 10
_RESULTS = Path(__file__).parent / "results" / "minutes"
_TOML = """\
[warehouse]
root = "data"
anchor = "2040-01-01T00:00:00Z"
update_interval = "1m"
retain = "{retain}"
publish = "delta"

[streams.events]
landing = "landing/events"
after_load = "move"
move_to = "loaded"
format = "csv"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "{lifetime}m"

[streams.events.columns]
k = "string"
at = "timestamp"
until = "timestamp"
v = "bigint"

[views.totals]
sql = "SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k"
search_key = "k"
"""
_COUNTED = ("files", "bytes", "data_files", "log_entries", "checkpoint_bytes", "record_files", "record_bytes")
_CURVES = ("seconds", "open_ms", "probe_ms", "view_ms", "files", "bytes", "log_entries", "record_files", "landing_files")


@dataclass(frozen=True)
class Minutes:
    """A project that is updated every minute of a replayed clock; ``rows`` arrive in each ``apart``-th."""

    directory: Path
    rows: int
    lifetime: int
    apart: int = 1

    @property
    def root(self) -> Path:
        """Where the tables are."""
        return self.directory / "data"

    def declare(self, retain: str) -> None:
        """Write ``warehouse.toml``, unless it is there with the same content."""
        file, text = self.directory / "warehouse.toml", _TOML.format(retain=retain, lifetime=self.lifetime)
        if file.exists() and file.read_text() != text:
            raise click.UsageError(f"{self.directory} has a run with other options; name another directory")
        (self.directory / "landing" / "events").mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def slot(self) -> int:
        """Return the number of the last update; 0 before the first."""
        newest = newest_epoch(self.root)
        return 0 if newest is None else newest.slot

    def land(self, slot: int) -> None:
        """Let the rows of a minute arrive, if it has some; every call makes the same rows."""
        if slot % self.apart != 1 % self.apart:
            return
        drawn, end = random.Random(slot), _ANCHOR + slot * MINUTE  # noqa: S311 - rows, not secrets
        lines = ["k,at,until,v"]
        for _ in range(self.rows):
            at = end - drawn.randrange(MINUTE)
            until = at + 1 + drawn.randrange(self.lifetime * MINUTE)
            lines.append(f"k{drawn.randrange(_KEYS)},{format_instant(at)},{format_instant(until)},{drawn.randrange(100)}")
        path = self.directory / "landing" / "events" / f"{slot:07d}.csv"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, ns=(end * 1000, end * 1000))

    def update(self, slot: int) -> dict[str, Any]:
        """Land the rows of a minute, update, read; return the seconds that each part took."""
        self.land(slot)
        catalog, points = load_catalog(self.directory), dict[str, float]()
        start = last = time.perf_counter()

        def observer(moment: Moment) -> None:
            nonlocal last
            now = time.perf_counter()
            points[moment.point.value] = points.get(moment.point.value, 0.0) + now - last
            last = now

        clock = _ANCHOR + slot * MINUTE + _LATE

        def spark(_: int) -> SparkSession:
            return spark_session(catalog.spark, small=True, root=catalog.root)

        context = WriteContext(catalog, spark, lambda: clock, observer)
        report = update(context, UpdateOptions())
        seconds = time.perf_counter() - start
        freed = {"epochs": report.vacuum.epochs, "files": report.vacuum.files, "landing": report.vacuum.landing}
        return {"update": slot, "seconds": round(seconds, 4), **self._read(slot), "points": _rounded(points), "freed": freed}

    def _read(self, slot: int) -> dict[str, float]:
        key, times = f"k{slot % _KEYS}", [time.perf_counter()]
        with Warehouse.open(self.directory) as warehouse, warehouse.reader() as reader:
            times.append(time.perf_counter())
            for table in ("events", "totals"):
                reader.probe(table, [key]).arrow()
                times.append(time.perf_counter())
        spent = [1000 * (after - before) for before, after in pairwise(times)]
        return dict(zip(("open_ms", "probe_ms", "view_ms"), (round(milliseconds, 2) for milliseconds in spent), strict=True))

    def weigh(self) -> dict[str, int]:
        """Count the files and bytes under the root and in the landing directories."""
        counts = dict.fromkeys(_COUNTED, 0)
        for path, size in _walk(self.root):
            counts["files"] += 1
            counts["bytes"] += size
            parts = path.relative_to(self.root).parts
            if "_delta_log" in parts:
                counts["log_entries"] += path.suffix == ".json"
                counts["checkpoint_bytes"] += size if ".checkpoint." in path.name else 0
            elif parts[0] in ("epochs", "ledger"):
                counts["record_files"] += 1
                counts["record_bytes"] += size
            else:
                counts["data_files"] += path.suffix == ".parquet"
        return {**counts, "landing_files": sum(1 for _ in _walk(self.directory / "landing"))}


def _walk(directory: Path) -> Iterator[tuple[Path, int]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield path, path.stat().st_size


def _rounded(points: dict[str, float]) -> dict[str, float]:
    return {name: round(seconds, 4) for name, seconds in points.items()}


def curves(lines: Sequence[dict[str, Any]]) -> str:
    """Return the medians of the tenths of a run, as Markdown; counts are taken from the lines that have them."""
    edges = [round(number * len(lines) / _TENTHS) for number in range(_TENTHS + 1)]
    shown = (0, 1, _TENTHS // 2, _TENTHS - 1)
    rows = [["medians", *(f"updates {edges[tenth] + 1} to {edges[tenth + 1]}" for tenth in shown), "last / second"]]
    for name in _CURVES:
        values = [[line[name] for line in lines[low:high] if name in line] for low, high in pairwise(edges)]
        tenths = [statistics.median(values_of_tenth) if values_of_tenth else None for values_of_tenth in values]
        first, last = tenths[1], tenths[-1]
        ratio = f"{last / first:.2f}" if first and last is not None else ""
        rows.append([name, *("" if tenths[tenth] is None else f"{tenths[tenth]:.4g}" for tenth in shown), ratio])
    return markdown_table(rows)


@click.command(epilog="Example: python -m benchmarks.minutes --updates 10000 --retain 1d")
@click.option("--updates", type=click.IntRange(1), default=50, show_default=True, help="Updates in all; more of them go on.")
@click.option("--rows", type=click.IntRange(1), default=20, show_default=True, help="Rows of each update.")
@click.option("--apart", type=click.IntRange(1), default=1, show_default=True, help="Minutes between two files.")
@click.option("--lifetime", type=click.IntRange(2), default=30, show_default=True, help="The longest lifetime, in minutes.")
@click.option("--retain", default="1h", show_default=True, help="For how long an epoch stays readable.")
@click.option("--every", type=click.IntRange(1), default=10, show_default=True, help="Files are counted every so many updates.")
@click.option("--work", type=click.Path(path_type=Path), default=_RESULTS, help="Where the warehouse and `curves.jsonl` lie.")
def main(*, updates: int, rows: int, apart: int, lifetime: int, retain: str, every: int, work: Path) -> None:
    """Update a one-minute warehouse many times, and keep the curves of what an update, a probe and the disk see."""
    minutes = Minutes(work.absolute(), rows, lifetime, apart)
    minutes.directory.mkdir(parents=True, exist_ok=True)
    minutes.declare(retain)
    curves_file = work / "curves.jsonl"
    for slot in range(minutes.slot() + 1, updates + 1):
        line = minutes.update(slot)
        if slot % every == 0 or slot == updates:
            line |= minutes.weigh()
        with curves_file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        times = f"{line['seconds']:.2f} s, open {line['open_ms']} ms, probe {line['probe_ms']} ms"
        click.echo(f"... update {slot}: {times}", err=True)
    lines = [json.loads(line) for line in curves_file.read_text().splitlines()]
    few = f"{len(lines)} updates; their tenths are shown from {2 * _TENTHS} on"
    click.echo(few if len(lines) < 2 * _TENTHS else curves(lines))
    faults = check(minutes.root, published={"events", "totals"}).faults
    if faults:
        raise click.ClickException(f"{len(faults)} fault(s), first {faults[0].subject}: {faults[0].message}")


if __name__ == "__main__":
    main()
