"""Small updates, ``python -m benchmarks.small``: what a warm update of few rows costs, without views and with many.

Three streams of JSON lines get a third of the rows each; a process updates the warehouse again and again at the grid points of
a replayed clock. Beside seconds, which depend on what else the machine does, it counts what does not: Spark jobs, calls to the
JVM, and processor seconds of both processes. With ``--first`` each update is the first of a new warehouse. With ``--cold`` each
is a whole process, beside an empty Spark session.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from py4j.java_gateway import GatewayClient

from benchmarks.cold import EMPTY_SESSION, command, seconds_of
from benchmarks.field.page import markdown_table
from warehouse.catalog.load import load_catalog
from warehouse.operations.context import WriteContext
from warehouse.operations.update import UpdateOptions, update
from warehouse.storage.session import spark_session
from warehouse.time import MINUTE, format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["VIEWS", "Small", "main"]

_ANCHOR = parse_instant("2040-01-01T00:00:00Z")
"""Ahead of every real clock, so that no file is younger than the replayed one says."""
_PAST = parse_instant("2024-01-01T00:00:00Z")
"""For processes, whose clock is the real one."""
_STREAMS = ("orders", "payments", "visits")
_KEYS = 500
_LIFETIME = 12
_HEAD = """\
[warehouse]
root = "data"
anchor = "{anchor}"
update_interval = "1m"
retain = "10m"
"""
_STREAM = """
[streams.{name}]
landing = "landing/{name}"
format = "json"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "{lifetime}m"

[streams.{name}.columns]
k = "string"
at = "timestamp"
until = "timestamp"
v = "bigint"
w = "double"
"""
_VIEW = """
[views.{name}]
sql = "{sql}"
search_key = "{key}"
"""
VIEWS: dict[str, tuple[str, str]] = {
    "large": ("k", "SELECT k, v FROM orders WHERE v > 90"),
    "counted": ("k", "SELECT k, count(*) AS n, sum(v) AS total FROM orders GROUP BY k"),
    "paid": ("k", "SELECT o.k, o.v, p.v AS paid FROM orders o JOIN payments p ON o.k = p.k WHERE p.v > 50"),
    "keys": ("k", "SELECT DISTINCT k FROM visits"),
    "unpaid": ("k", "SELECT k, v FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.k = o.k)"),
    "either": ("k", "SELECT k, v FROM orders UNION ALL SELECT k, v FROM payments"),
    "scaled": ("k", "SELECT k, v * 2 AS twice, upper(k) AS name FROM visits WHERE v % 3 = 0"),
    "small": ("k", "SELECT k, v, w FROM payments WHERE v < 20"),
    "maybe": ("k", "SELECT o.k, o.v, p.v AS paid FROM orders o LEFT JOIN payments p ON o.k = p.k"),
    "three": (
        "k",
        "SELECT o.k, o.v, p.v AS paid, s.v AS seen FROM orders o JOIN payments p ON o.k = p.k JOIN visits s ON s.k = o.k",
    ),
    "grouped": ("k", "SELECT k, avg(v) AS mean, max(v) AS most FROM payments GROUP BY k"),
    "seen": ("k", "SELECT k, v FROM payments p WHERE EXISTS (SELECT 1 FROM visits s WHERE s.k = p.k)"),
    "few": ("k", "SELECT k, v FROM visits WHERE v IN (1, 2, 3, 5, 8)"),
    "visited": ("k", "SELECT k, count(*) AS n FROM visits WHERE v > 10 GROUP BY k"),
    "pairs": ("k", "SELECT DISTINCT k, v % 10 AS digit FROM orders"),
    "both": ("k", "SELECT o.k, o.v + s.v AS whole FROM orders o JOIN visits s ON o.k = s.k AND o.v = s.v"),
    "texts": ("k", "SELECT k, concat(k, '-', CAST(v AS string)) AS label FROM orders WHERE k LIKE 'k1%'"),
    "least": ("k", "SELECT k, min(v) AS least, sum(v) AS total FROM visits GROUP BY k"),
    "late": ("k", "SELECT k, v FROM visits s WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.k = s.k AND o.v > 50)"),
    "united": ("k", "SELECT k, v FROM visits WHERE v < 10 UNION ALL SELECT k, v FROM orders WHERE v < 10"),
}  # fmt: skip


@dataclass(frozen=True)
class Small:
    """A project of three streams and some views that is updated every minute of a replayed clock."""

    directory: Path
    rows: int
    views: int
    anchor: int = _ANCHOR

    def declare(self) -> None:
        """Write ``warehouse.toml`` and make the landing directories."""
        text = _HEAD.format(anchor=format_instant(self.anchor))
        text += "".join(_STREAM.format(name=name, lifetime=_LIFETIME) for name in _STREAMS)
        for name, (key, sql) in list(VIEWS.items())[: self.views]:
            text += _VIEW.format(name=name, sql=sql, key=key)
        for name in _STREAMS:
            (self.directory / "landing" / name).mkdir(parents=True, exist_ok=True)
        (self.directory / "warehouse.toml").write_text(text)

    def land(self, slot: int) -> None:
        """Let the rows of a minute arrive, a third in each stream; every call makes the same rows."""
        end = self.anchor + slot * MINUTE
        for number, name in enumerate(_STREAMS):
            drawn, lines = random.Random(slot * len(_STREAMS) + number), []  # noqa: S311 - rows, not secrets
            for _ in range(self.rows // len(_STREAMS)):
                at = end - drawn.randrange(MINUTE)
                until = at + 1 + drawn.randrange(_LIFETIME * MINUTE)
                row = {"k": f"k{drawn.randrange(_KEYS)}", "at": format_instant(at), "until": format_instant(until)}
                lines.append(json.dumps({**row, "v": drawn.randrange(100), "w": drawn.random()}))
            path = self.directory / "landing" / name / f"{slot:05d}.json"
            path.write_text("\n".join(lines) + "\n")
            os.utime(path, ns=(end * 1000, end * 1000))

    def update(self, slot: int) -> None:
        """Move the warehouse to a minute, as ``stream-wh run`` does."""
        catalog, clock = load_catalog(self.directory), self.anchor + slot * MINUTE + 1
        context = WriteContext(catalog, lambda _: spark_session(catalog.spark, small=True, root=catalog.root), lambda: clock)
        report = update(context, UpdateOptions())
        if report.failed_views or report.refused:
            raise click.ClickException(f"{report.failed_views} {report.refused}")


class Meter:
    """Counts calls to the JVM, Spark jobs, and processor seconds of this process and of the JVM."""

    def __init__(self) -> None:
        """Start to count."""
        self.calls = 0
        plain, meter = GatewayClient.send_command, self

        def counted(client: GatewayClient, command: str, *args: object, **named: object) -> object:
            if not command.startswith("m\nd\n"):  # an object that is let go of
                meter.calls += 1
            return plain(client, command, *args, **named)

        GatewayClient.send_command = counted

    def now(self) -> dict[str, float]:
        """Return the counts up to now."""
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it is there when the first update has run

        calls, spark = self.calls, SparkSession.getActiveSession()
        jobs = _jobs(spark) if spark else 0
        counts = {"seconds": time.perf_counter(), "Python CPU s": time.process_time(), "JVM CPU s": _jvm_seconds(), "jobs": jobs}
        return {**counts, "JVM calls": calls}


def _jobs(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001 - it has no public counter


def _jvm_seconds() -> float:
    """Return the processor seconds of the running processes that this process started."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(small: Small, updates: int, warm_up: int) -> Iterator[dict[str, float]]:
    """Yield the cost of each update after the warm-up; the first update builds the warehouse."""
    small.declare()
    yield from _costs(((small, slot) for slot in range(1, warm_up + updates + 1)), warm_up)


def first(small: Small, updates: int, warm_up: int) -> Iterator[dict[str, float]]:
    """Yield the cost of the first update of each new warehouse, after the warm-up."""
    new = [replace(small, directory=small.directory / str(number)) for number in range(warm_up + updates)]
    for project in new:
        project.declare()
    yield from _costs(((declared, 1) for declared in new), warm_up)


def _costs(turns: Iterable[tuple[Small, int]], warm_up: int) -> Iterator[dict[str, float]]:
    meter = Meter()
    for number, (small, slot) in enumerate(turns):
        small.land(slot)
        before = meter.now()
        small.update(slot)
        after = meter.now()
        if number >= warm_up:
            yield {name: round(after[name] - before[name], 4) for name in after}


def cold(small: Small, updates: int) -> Iterator[dict[str, float]]:
    """Yield the seconds of processes in turn: an update, and the start and stop of an empty Spark session."""
    small.declare()
    for slot in range(1, updates + 3):
        small.land(slot)
        at = format_instant(small.anchor + slot * MINUTE)
        update = seconds_of([*command(), "-C", str(small.directory), "update", "--at", at])
        session = seconds_of([sys.executable, "-c", EMPTY_SESSION])
        if slot > 2:  # the first one builds the tables, the second one finds everything warm
            yield {"update, s": update, "empty session, s": session, "ratio": update / session}


@click.command(epilog="Example: python -m benchmarks.small --views 20 --updates 10")
@click.option("--rows", type=click.IntRange(3), default=1000, show_default=True, help="Rows of an update, in three streams.")
@click.option("--views", type=click.IntRange(0, len(VIEWS)), default=0, show_default=True, help="How many views.")
@click.option("--updates", type=click.IntRange(1), default=10, show_default=True, help="Updates that are measured.")
@click.option("--warm-up", type=click.IntRange(1), default=8, show_default=True, help="Updates before these.")
@click.option("--first", "firsts", is_flag=True, help="Each update is the first of a new warehouse.")
@click.option("--cold", "processes", is_flag=True, help="Each update is a whole process, beside an empty Spark session.")
@click.option("--work", type=click.Path(path_type=Path), required=True, help="An empty directory for the warehouse.")
def main(*, rows: int, views: int, updates: int, warm_up: int, firsts: bool, processes: bool, work: Path) -> None:
    """Update a warehouse of three JSON streams again and again in one process, and print the median cost of an update."""
    load = os.getloadavg()[0]
    if processes:
        lines = list(cold(Small(work.absolute(), rows, views, _PAST), updates))
    else:
        lines = list((first if firsts else measured)(Small(work.absolute(), rows, views), updates, warm_up))
    heads = list(lines[0])
    medians = [f"{statistics.median(line[name] for line in lines):.4g}" for name in heads]
    click.echo(markdown_table([["views", *heads, "load"], [str(views), *medians, f"{load:.1f} to {os.getloadavg()[0]:.1f}"]]))


if __name__ == "__main__":
    main()
