"""Window aggregates, ``python -m benchmarks.windows``: what they cost an update, what an answer takes, and others doing the same.

Rows of a few groups arrive every hour of a replayed clock and live for a day. Each measurement compares what was done in turn
in one process, and prints ratios with the targets beside them:

* ``shared``: updates with twenty aggregates of three windows each, and without any;
* ``week``: an answer about seven days from its synopsis, and DuckDB over the rows that are kept for that purpose, at two sizes;
* ``latest``: the same group-by asked again after an update, and the first time;
* ``beside``: upkeep, answer and space beside ClickHouse's AggregatingMergeTree and a table of DuckDB aggregated on demand.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.field.page import markdown_table
from benchmarks.machine import machine
from warehouse import Warehouse
from warehouse.epochs.points import Point
from warehouse.storage.session import spark_session
from warehouse.time import HOUR, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment

__all__ = ["MEASURED", "Traffic", "main", "twenty"]

_ANCHOR = "2024-01-01T00:00:00Z"
_GROUPS = 1_000
_PIECE = 1_000_000
_WEEK = 168
_DAY = 24
_LOADED = 200
"""How many updates' rows are loaded at once: half of them are still there when an update is measured last."""
_SEALED = 6
"""Updates after which the runs of that load are sealed."""
_TOML = """\
[warehouse]
root = "data"
anchor = "{anchor}"
update_interval = "1h"

[streams.s]
landing = "landing"
format = "parquet"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "1d"

[streams.s.columns]
k = "string"
at = "timestamp"
until = "timestamp"
v = "bigint"
"""
_SELECTED = (
    '{ n = "count(*)", total = "sum(v)" }',
    '{ least = "min(v)", most = "max(v)" }',
    '{ mean = "avg(v)" }',
    '{ spread = "stddev(v)" }',
    '{ n = "count(*)", most = "max(v)" }',
)
_GROUPED = ('["k"]', "[]", '["v % 10 AS digit"]', '["k", "v % 10 AS digit"]')
_ANSWER = "SELECT k, count(*) AS n, sum(v) AS total, max(v) AS most FROM {table} GROUP BY k"
Line = list[str]


def twenty(windows: str = '["1h", "6h", "1d"]') -> dict[str, str]:
    """Return twenty aggregates by name, as their sections are written."""
    combinations = [(group, values) for group in _GROUPED for values in _SELECTED]
    return {f"a{number:02d}": _section(group, values, windows) for number, (group, values) in enumerate(combinations)}


def _section(group: str, values: str, windows: str) -> str:
    return f'from = "s"\ngroup_by = {group}\nselect = {values}\nwindows = {windows}\nkeep = "2d"\n'


@dataclass
class Traffic:
    """A project with aggregates, and a stream that gets a number of rows an hour."""

    directory: Path
    rows: int
    aggregates: Mapping[str, str]
    hour: int = 0
    lives: int = 24
    """Hours for which a row lives at most."""

    def declare(self) -> Traffic:
        """Write ``warehouse.toml``."""
        self.landing.mkdir(parents=True)
        text = _TOML.format(anchor=_ANCHOR)
        text += "".join(f"\n[aggregates.{name}]\n{section}" for name, section in self.aggregates.items())
        (self.directory / "warehouse.toml").write_text(text)
        return self

    @property
    def landing(self) -> Path:
        """Where files land."""
        return self.directory / "landing"

    def land(self, hour: int, rows: int | None = None) -> list[Path]:
        """Let the rows of an hour arrive and return their files; every call makes the same rows."""
        paths = []
        count = self.rows if rows is None else rows
        for number, begin in enumerate(range(0, count, _PIECE)):
            rng = np.random.default_rng([hour, number])
            size = min(_PIECE, count - begin)
            at = instant(hour) - rng.integers(0, HOUR, size)
            until = at + 1 + rng.integers(0, self.lives * HOUR, size)
            kind = pa.timestamp("us", "UTC")
            columns = {"at": pa.array(at, kind), "until": pa.array(until, kind), "v": rng.integers(0, 1_000, size)}
            keys = pa.array([f"g{group:04d}" for group in range(_GROUPS)]).take(pa.array(rng.integers(0, _GROUPS, size)))
            paths.append(self.landing / f"{hour:05d}-{number:03d}.parquet")
            pq.write_table(pa.table({"k": keys, **columns}), paths[-1])
            os.utime(paths[-1], ns=(instant(hour) * 1000, instant(hour) * 1000))
        return paths

    def update(self, spark: SparkSession, hour: int, of: str = "") -> tuple[float, float]:
        """Move to an hour; return the seconds of the update, and how many of them the steps of a table took."""
        own, last = 0.0, time.perf_counter()

        def observer(moment: Moment) -> None:
            nonlocal own, last
            now = time.perf_counter()
            if of and moment.point is Point.STEP_COMMITTED and of in moment.text:
                own += now - last
            if moment.point in (Point.STEP_STARTED, Point.STEP_COMMITTED):
                last = now

        begun = time.perf_counter()
        with Warehouse.open(self.directory) as warehouse:
            warehouse.update(at=instant(hour), observer=observer, spark=spark)
        self.hour = hour
        return time.perf_counter() - begun, own


def instant(hour: int) -> int:
    """Return the end of an hour in microseconds."""
    return parse_instant(_ANCHOR) + hour * HOUR


def timed(ask: Callable[[], object], times: int = 3) -> float:
    """Return the median seconds of a question."""
    times_taken = []
    for _ in range(times):
        begun = time.perf_counter()
        ask()
        times_taken.append(time.perf_counter() - begun)
    return statistics.median(times_taken)


def shared(work: Path, spark: SparkSession, rows: int, updates: int) -> Iterator[Line]:
    """Updates with twenty aggregates of three windows and without any, in turn: one pass over the arrived rows serves all."""
    aggregates = twenty()
    pair = Traffic(work / "none", rows, {}).declare(), Traffic(work / "twenty", rows, aggregates).declare()
    seconds: list[tuple[float, float]] = []
    for hour in range(1, updates + 4):
        for traffic in pair:
            traffic.land(hour)
        seconds.append((pair[0].update(spark, hour)[0], pair[1].update(spark, hour)[0]))
    plain, many = (statistics.median(seconds_of_project) for seconds_of_project in zip(*seconds[3:], strict=True))
    due = 3 * len(aggregates)
    most = 1.3 * plain + 0.05 * due
    evidence = f"{many:.2f} s and {plain:.2f} s; {due} answers are due, so {most:.2f} s are allowed"
    yield ["shared: update with twenty aggregates / without", f"{many / plain:.2f}", evidence, _verdict(many <= most)]


def week(work: Path, spark: SparkSession, rows: int, updates: int) -> Iterator[Line]:
    """An answer about seven days by group from its synopsis, its step whole with the commit, and DuckDB over the rows.

    Rows live for an hour at most, and are loaded a day at a time: so many rows (``--rows 1600000``: 270 million) can be compared
    that DuckDB takes seconds.
    """
    refreshes = {}
    for size in (rows, max(rows // 10, 1)):
        section = _section('["k"]', '{ n = "count(*)", total = "sum(v)", most = "max(v)" }', '["7d"]')
        traffic = Traffic(work / f"week{size}", size, {"week": section}, lives=1).declare()
        for hour in range(1, _WEEK + 1):
            traffic.land(hour)
            if hour % _DAY == 0:
                traffic.update(spark, hour)
        refresh_seconds = []
        for hour in range(_WEEK + 1, _WEEK + updates + 1):
            traffic.land(hour)
            refresh_seconds.append(traffic.update(spark, hour, "week")[1])
        refreshes[size] = statistics.median(refresh_seconds)
        files = f"read_parquet('{traffic.landing}/*.parquet')"
        low, high = instant(traffic.hour - _WEEK), instant(traffic.hour)
        query = _ANSWER.format(table=f'(FROM {files} WHERE epoch_us("at") > {low} AND epoch_us("at") <= {high})')
        expected = sorted(_asked(query))
        with Warehouse.open(traffic.directory) as warehouse:
            stored = warehouse.sql(f"SELECT k, n, total, most FROM week WHERE epoch_us(window_end) = {high}", now=high).all()
        if sorted(tuple(row) for row in stored) != expected:
            raise click.ClickException("the answer is not that of the query over the rows")
        alone, own = timed(partial(_asked, query)), refreshes[size]
        evidence = f"{alone:.3f} s over {size * _WEEK:,} rows, {own:.3f} s for the step with its commit"
        yield ["week: DuckDB over the rows / the refresh", f"{alone / own:.1f}", evidence, _verdict(alone >= 50 * own)]
    flat = refreshes[rows] / refreshes[max(rows // 10, 1)]
    yield ["week: refresh at ten times the rows", f"{flat:.2f}", "flat is about 1", _verdict(flat <= 1.5)]


def _asked(query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def latest(work: Path, spark: SparkSession, rows: int, updates: int) -> Iterator[Line]:
    """A group-by over a hundred times the rows of an update, asked again after it, and for the first time over the same rows.

    Most rows were loaded by one update. Later ones seal its runs, one each, and so bring files of a quarter of the rows: what is
    measured begins when these are sealed.
    """
    traffic = Traffic(work / "latest", rows, {}).declare()
    traffic.land(1, _LOADED * rows)
    traffic.update(spark, 1)
    for hour in range(2, _SEALED + 2):
        traffic.land(hour)
        traffic.update(spark, hour)
    query, repeated, first, put, live = _ANSWER.format(table="s"), [], [], None, 0
    with Warehouse.open(traffic.directory) as warehouse:
        warehouse.sql(query, now=instant(traffic.hour), isolation="latest").all()
        for hour in range(_SEALED + 2, _SEALED + updates + 2):
            traffic.land(hour)
            traffic.update(spark, hour)
            rows_of_answer, seconds, put = _asked_latest(warehouse, query, hour)
            repeated.append(seconds)
            with Warehouse.open(traffic.directory) as other:
                expected, seconds, _ = _asked_latest(other, query, hour)
                first.append(seconds)
                live = sum(row[1] for row in expected)
                pinned = other.sql(query, now=instant(hour)).all()
            if not sorted(rows_of_answer) == sorted(expected) == sorted(pinned):
                raise click.ClickException("the answer is not that of the rows")
    ratio = statistics.median(repeated) / statistics.median(first)
    read = f"{put[1]} of {put[0]} files were read" if put else "all files were read"
    evidence = f"{statistics.median(repeated):.3f} s and {statistics.median(first):.3f} s over {live:,} rows; {read}"
    yield ["latest: asked again after an update / the first time", f"{ratio:.2f}", evidence, _verdict(ratio <= 0.2)]


def _asked_latest(warehouse: Warehouse, query: str, hour: int) -> tuple[list[Any], float, tuple[int, int] | None]:
    """Return the newest answer, its seconds, and the number of its files and of the files that were read for it."""
    begun = time.perf_counter()
    answer = warehouse.sql(query, now=instant(hour), isolation="latest")
    rows = answer.all()
    return rows, time.perf_counter() - begun, answer.put


def beside(work: Path, spark: SparkSession, rows: int, updates: int) -> Iterator[Line]:
    """The last day by group, kept up to date hour by hour: seconds of an hour's upkeep and of an answer, and bytes on disk."""
    section = _section('["k"]', '{ n = "count(*)", total = "sum(v)", most = "max(v)" }', '["1d"]')
    traffic = Traffic(work / "beside", rows, {"day": section}).declare()
    ours: list[float] = []
    files: dict[int, list[Path]] = {}
    for hour in range(1, _DAY + updates + 1):
        files[hour] = traffic.land(hour)
        ours.append(traffic.update(spark, hour)[0])
    end = instant(traffic.hour)
    with Warehouse.open(traffic.directory) as warehouse:
        query = f"SELECT k, n, total, most FROM day WHERE epoch_us(window_end) = {end}"
        answer = timed(lambda: warehouse.sql(query, now=end).all())
        expected = sorted(tuple(row) for row in warehouse.sql(query, now=end).all())
    yield ["beside: stream-wh", *_figures(ours[_DAY:], answer, _bytes(traffic.directory / "data"))]
    for name, contender in (("DuckDB table", _duckdb), ("ClickHouse AggregatingMergeTree", _clickhouse)):
        try:
            upkeep, answered, seconds, size = contender(work / name.split()[0].lower(), files, traffic.hour)
        except ImportError as error:
            yield [f"beside: {name}", "-", f"{error.name} is not installed: pip install -e '.[bench]'", "-"]
            continue
        if sorted(answered) != expected:
            raise click.ClickException(f"{name} has another answer")
        yield [f"beside: {name}", *_figures(upkeep[_DAY:], seconds, size)]


Found = tuple[list[float], list[tuple[Any, ...]], float, int]


def _duckdb(directory: Path, files: Mapping[int, list[Path]], last: int) -> Found:
    """A table that gets every row, aggregated when it is asked."""
    directory.mkdir()
    connection, upkeep = duckdb.connect(str(directory / "rows.duckdb")), []
    connection.execute('CREATE TABLE s (k VARCHAR, "at" TIMESTAMPTZ, until TIMESTAMPTZ, v BIGINT)')
    for paths in files.values():
        begun = time.perf_counter()
        connection.execute(f'INSERT INTO s SELECT k, "at", until, v FROM read_parquet({[str(path) for path in paths]})')
        upkeep.append(time.perf_counter() - begun)
    low, high = instant(last - _DAY), instant(last)
    query = _ANSWER.format(table=f'(FROM s WHERE epoch_us("at") > {low} AND epoch_us("at") <= {high})')
    answer, seconds = connection.execute(query).fetchall(), timed(lambda: connection.execute(query).fetchall())
    connection.close()
    return upkeep, answer, seconds, _bytes(directory)


def _clickhouse(directory: Path, files: Mapping[int, list[Path]], last: int) -> Found:
    """A table of the rows, and a materialized view that keeps the states of each hour and group."""
    from chdb.session import Session  # noqa: PLC0415 - the extra `bench` has it

    directory.mkdir()
    session, upkeep = Session(str(directory)), []
    columns = "k String, at DateTime64(6, 'UTC'), until DateTime64(6, 'UTC'), v Int64"
    states = "n AggregateFunction(count), total AggregateFunction(sum, Int64), most AggregateFunction(max, Int64)"
    states_of_rows = "countState() AS n, sumState(v) AS total, maxState(v) AS most"
    hour = f"intDiv(toUnixTimestamp64Micro(at) - {instant(0)} + {HOUR - 1}, {HOUR})"
    for statement in (
        "CREATE DATABASE w ENGINE = Atomic",
        f"CREATE TABLE w.s ({columns}) ENGINE = MergeTree ORDER BY k",
        f"CREATE TABLE w.a (hour Int64, k String, {states}) ENGINE = AggregatingMergeTree ORDER BY (hour, k)",
        f"CREATE MATERIALIZED VIEW w.m TO w.a AS SELECT {hour} AS hour, k, {states_of_rows} FROM w.s GROUP BY hour, k",
    ):
        session.query(statement)
    for paths in files.values():
        begun = time.perf_counter()
        for path in paths:
            session.query(f"INSERT INTO w.s SELECT k, at, until, v FROM file('{path}', Parquet)")
        upkeep.append(time.perf_counter() - begun)
    merged = "SELECT k, toInt64(countMerge(n)) AS n, sumMerge(total) AS total, maxMerge(most) AS most"
    query = f"{merged} FROM w.a WHERE hour > {last - _DAY} AND hour <= {last} GROUP BY k"

    def ask() -> list[tuple[Any, ...]]:
        table = pa.ipc.open_file(pa.py_buffer(session.query(query, "Arrow").bytes())).read_all()
        keys = [key.decode() if isinstance(key, bytes) else key for key in table["k"].to_pylist()]
        return list(zip(keys, *(table[name].to_pylist() for name in ("n", "total", "most")), strict=True))

    answer, seconds = ask(), timed(ask)
    session.close()
    return upkeep, answer, seconds, _bytes(directory)


def _figures(upkeep: list[float], answer: float, size: int) -> Line:
    evidence = f"upkeep {statistics.median(upkeep):.3f} s an hour, answer {answer:.4f} s, {size:,} bytes with the rows"
    return [f"{statistics.median(upkeep):.3f}", evidence, "-"]


def _bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _verdict(reached: bool) -> str:
    return "holds" if reached else "does not hold"


MEASURED: dict[str, Callable[[Path, SparkSession, int, int], Iterator[Line]]] = {
    "shared": shared, "week": week, "latest": latest, "beside": beside,
}  # fmt: skip


@click.command(epilog="Example: python -m benchmarks.windows --only week --rows 10000 --work DIR")
@click.option("--rows", type=click.IntRange(1), default=100_000, show_default=True, help="Rows of an update.")
@click.option("--updates", type=click.IntRange(1), default=6, show_default=True, help="Updates that are measured.")
@click.option("--only", type=click.Choice(list(MEASURED)), multiple=True, help="These measurements only.")
@click.option("--work", type=click.Path(path_type=Path), required=True, help="An empty directory for the warehouses.")
@click.option("--results", type=click.Path(path_type=Path), help="A file that gets what was measured as JSON.")
def main(*, rows: int, updates: int, only: tuple[str, ...], work: Path, results: Path | None) -> None:
    """Measure window aggregates, and print ratios of one run with the targets beside them."""
    load, lines = os.getloadavg()[0], [["what", "ratio or seconds", "from", "target"]]
    with spark_session({}, root=work.absolute()) as spark:
        for name in only or MEASURED:
            directory = work.absolute() / name
            directory.mkdir(parents=True)
            lines += MEASURED[name](directory, spark, rows, updates)
            shutil.rmtree(directory)
    click.echo(markdown_table(lines))
    computer, loads = machine(), [round(load, 1), round(os.getloadavg()[0], 1)]
    processor = f"{computer['processor']}, {computer['cores']} cores"
    click.echo(f"\n{rows:,} rows an update; load {loads[0]} to {loads[1]}; {processor}.")
    if results is not None:
        measured = [dict(zip(("what", "ratio", "from", "target"), line, strict=True)) for line in lines[1:]]
        record = {"rows": rows, "updates": updates, "load": loads, "machine": computer, "measured": measured}
        results.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
