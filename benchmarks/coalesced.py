"""Coalesced tables: an update beside the load of its points, reads beside gaps-and-islands, a temporal join beside its query.

Points of a sensor kind, ``(g, seen, v)``: each update brings points to drawn groups, and a value repeats the previous value
in its group with a probability. Two warehouses load the same landing files in turn, one with the coalesced table and one without.
The query that is written by hand reads the same stored points, in DuckDB and in Spark. The join is of two tables whose window
has no edge yet, so that only arrivals change them.
"""

from __future__ import annotations

import random
import shutil
import statistics
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.plain import measured
from benchmarks.project import moved
from benchmarks.ratio import Ratio, Sample, ratio
from benchmarks.source.coalescing import islands_query
from benchmarks.turns import in_turn, timed
from benchmarks.views import step_seconds
from warehouse import Warehouse
from warehouse.time import HOUR, at_slot, format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.bench import Bench
    from warehouse.epochs.records import Epoch

__all__ = ["Drawn", "measure"]

_NAME = "coalesced"
_WINDOW = 100
"""Update intervals of the window: one brings 1 % of its members."""
_MEMBERS = 5
"""Members for each of the rows that a run is asked for: 10 million by default."""
_EACH = 100
"""Members of a group."""
_UPDATES = 15
_WARM_UP = 4
_REPEAT_SPARK = 3
_ANCHOR = parse_instant("2024-01-01T00:00:00Z")
_UPDATE, _ROWS, _PROBE, _JOIN = 1.5, 50, 1.3, 5
"""The targets."""
_HEAD = '[warehouse]\nanchor = "2024-01-01T00:00:00Z"\nupdate_interval = "1h"\nretain = "0s"\n'
_STREAM = """
[streams.{name}]
landing = "landing/{name}"
format = "parquet"
search_key = "g"
arrival = "seen"
expires = "ts + INTERVAL {lives} HOURS"
max_lifetime = "{lives}h"
columns = {{ g = "bigint", seen = "timestamp", v = "int" }}
"""
_COALESCED = """
[coalesced.{name}]
from = "{stream}"
group_by = ["g"]
values = ["v"]
window = "{window}h"
how = "eager"
"""
_JOINED = (
    "SELECT a.g, a.v, interval_intersect(a, b).valid_from AS since, interval_intersect(a, b).valid_to AS until "
    "FROM a JOIN b ON a.g = b.g AND a.v = b.v AND interval_overlaps(a, b) "
    "AND duration(interval_intersect(a, b)) >= INTERVAL 4 MINUTES"
)
_JOINED_BY_HAND = """
SELECT a.g, a.v, greatest(a.valid_from, b.valid_from) AS since, least(a.valid_to, b.valid_to) AS until
FROM a JOIN b ON a.g = b.g AND a.v = b.v AND a.valid_from < b.valid_to AND b.valid_from < a.valid_to
  AND a.valid_from < a.valid_to AND b.valid_from < b.valid_to
  AND least(a.valid_to, b.valid_to) - greatest(a.valid_from, b.valid_from) >= INTERVAL 4 MINUTES
"""


@dataclass
class Drawn:
    """Points of groups; each repeats the previous value of its group with the probability ``cp``."""

    groups: int
    cp: float
    seed: int
    last: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with one value."""
        self.last = np.zeros(self.groups, np.int64)

    def points(self, slot: int, count: int, span: int = 1) -> pa.Table:
        """Return points of the ``span`` slots that end with ``slot``. Later calls return later points."""
        rng = np.random.default_rng([self.seed, slot])
        until = at_slot(slot, _ANCHOR, HOUR)
        groups, at = rng.integers(0, self.groups, count), until - rng.integers(0, span * HOUR, count)
        order = np.lexsort((at, groups))
        groups, at = groups[order], at[order]
        turned = np.cumsum(np.where(rng.random(count) < self.cp, 0, rng.integers(1, 10, count)))
        first = np.searchsorted(groups, groups)
        before = np.concatenate(([0], turned))[first]
        values = (self.last[groups] + turned - before) % 10
        self.last[groups] = values
        shuffled = rng.permutation(count)
        columns = {"g": groups, "seen": pa.array(at, pa.timestamp("us", "UTC")), "v": pa.array(values, pa.int32())}
        return pa.table(columns).take(shuffled)


@dataclass
class _Watched:
    """A warehouse of streams of points that live for some update intervals, with what is declared over them."""

    directory: Path
    streams: Sequence[str]
    declared: str
    lives: int = _WINDOW + 1
    slot: int = _WINDOW

    def __post_init__(self) -> None:
        (self.directory / "landing").mkdir(parents=True)
        streams = [_STREAM.format(name=name, lives=self.lives) for name in self.streams]
        (self.directory / "warehouse.toml").write_text("".join([_HEAD, *streams, self.declared]))

    def land(self, stream: str, slot: int, points: pa.Table) -> None:
        """Let points arrive."""
        data.write(points, self.directory / "landing" / stream, f"{slot:06d}", files=4)

    def update(self, spark: SparkSession) -> Epoch:
        """Move the windows to the next slot."""
        self.slot += 1
        return moved(self.directory, at_slot(self.slot - 1, _ANCHOR, HOUR), spark)

    @property
    def now(self) -> int:
        """The window time in microseconds."""
        return at_slot(self.slot - 1, _ANCHOR, HOUR)

    def files(self, table: str) -> list[str]:
        """Return the files of a table."""
        with Warehouse.open(self.directory) as warehouse:
            rows = warehouse.sql(f"SELECT path FROM _files WHERE table_name = '{table}' ORDER BY path").all()
        return [str(self.directory / "data" / path) for (path,) in rows]


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of an update, of reads and of a join that is kept."""
    members = _MEMBERS * bench.settings.rows
    drawn = Drawn(members // _EACH, 0.9, bench.settings.seed)
    whole = _Watched(bench.scratch / "whole", ["p"], _COALESCED.format(name="c", stream="p", window=_WINDOW))
    alone = _Watched(bench.scratch / "alone", ["p"], "")
    bench.say(f"building two warehouses of {members:,} points in {drawn.groups:,} groups, one with a coalesced table")
    for slot in range(1, _WINDOW + 1):
        points = drawn.points(slot, members // _WINDOW)
        for watched in (whole, alone):
            watched.land("p", slot, points)
    for watched in (alone, whole):
        watched.update(bench.spark)
    lines = _updates(bench, drawn, whole, alone)
    shutil.rmtree(alone.directory)
    lines += _Reads(bench, whole).ratios()
    shutil.rmtree(whole.directory)
    return [*lines, _join(bench)]


def _updates(bench: Bench, drawn: Drawn, whole: _Watched, alone: _Watched) -> list[Ratio]:
    """Both warehouses load the same points, in turn."""
    count = min(bench.settings.updates, _UPDATES)
    bench.say(f"{count} updates of {bench.settings.batch:,} points in each")
    seconds: dict[str, list[float]] = {"whole": [], "alone": [], "step": []}
    written: list[int] = []
    for number in range(count + _WARM_UP):
        points = drawn.points(whole.slot, bench.settings.batch)
        for watched in (whole, alone):
            watched.land("p", watched.slot, points)
        done: list[Epoch] = []
        works = {
            "whole": lambda: done.append(whole.update(bench.spark)),  # noqa: B023 - called at once
            "alone": lambda: alone.update(bench.spark),
        }
        took = {name: timed(works[name])() for name in (sorted(works) if number % 2 else sorted(works, reverse=True))}
        if number >= _WARM_UP:
            for name, each_took in took.items():
                seconds[name].append(each_took)
            seconds["step"].append(step_seconds(done[0], "c"))
            written.append(sum(counts.inserted for counts in done[0].counts if counts.stream == "c"))
    load = Sample("update that only loads", "s", tuple(seconds["alone"]))
    bench.details["rows that an update of the coalesced table wrote"] = written
    return [
        ratio(
            _NAME, f"update of {bench.settings.batch:,} points / load of the points alone",
            Sample("update", "s", tuple(seconds["whole"])), load, target=_UPDATE,
        ),
        ratio(_NAME, "the table's own step / load of the points alone", Sample("step", "s", tuple(seconds["step"])), load),
    ]  # fmt: skip


@dataclass
class _Reads:
    """Reads of the coalesced table, and the query over the stored points."""

    bench: Bench
    watched: _Watched

    @cached_property
    def _bare(self) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'; SET parquet_metadata_cache = true")
        return connection

    def _listed(self, table: str) -> str:
        return ", ".join(f"'{path}'" for path in self.watched.files(table))

    @property
    def _edge(self) -> str:
        return format_instant(self.watched.now - _WINDOW * HOUR)

    def ratios(self) -> list[Ratio]:
        """Return the ratios of all rows, then the ratios of a probe."""
        self.bench.say("all rows of the window, beside gaps-and-islands over its points")
        with Warehouse.open(self.watched.directory) as warehouse:
            return [*self._all(warehouse), self._probe(warehouse)]

    def _all(self, warehouse: Warehouse) -> list[Ratio]:
        inside = f"seen >= TIMESTAMP '{self._edge}'"
        by_hand = islands_query(f"(SELECT g, seen AS ts, v FROM read_parquet([{self._listed('p')}]) WHERE {inside})")
        points = self.bench.spark.read.parquet(*self.watched.files("p")).where(inside).selectExpr("g", "seen AS ts", "v")
        points.createOrReplaceTempView("watched_points")
        in_spark = islands_query("watched_points")
        rows = warehouse.scan("c").arrow().num_rows
        counted = self.bench.spark.sql(in_spark).count(), len(self._bare.sql(by_hand).to_arrow_table())
        if counted != (rows, rows):
            message = f"the table has {rows} rows, the queries over its points {counted}"
            raise ValueError(message)
        works = [timed(lambda: warehouse.scan("c").arrow()), timed(lambda: self._bare.sql(by_hand).to_arrow_table())]
        ours, theirs = in_turn(works, self.bench.settings.repeat)
        spark = [
            measured(self.bench.spark, lambda: self.bench.spark.sql(in_spark).write.format("noop").mode("overwrite").save()).wall
            for _ in range(_REPEAT_SPARK)
        ]
        scan = Sample("scan of all rows", "s", ours)
        text = f"over the points / scan of all {rows:,} rows"
        return [
            ratio(_NAME, f"gaps-and-islands in DuckDB {text}", Sample("DuckDB", "s", theirs), scan, target=_ROWS, at_least=True),
            ratio(_NAME, f"gaps-and-islands in Spark {text}", Sample("Spark", "s", tuple(spark)), scan),
        ]

    def _probe(self, warehouse: Warehouse) -> Ratio:
        groups = self._bare.sql(f"SELECT DISTINCT g FROM read_parquet([{self._listed('c')}]) ORDER BY g").fetchall()
        rng = random.Random(self.bench.settings.seed)  # noqa: S311 - which groups to ask for
        api: list[float] = []
        bare: list[float] = []
        for (group,) in rng.sample(groups, min(len(groups), self.bench.settings.keys)):
            query = self._query(group)
            if sorted(warehouse.probe("c", [group]).all()) != sorted(self._bare.sql(query).fetchall()):
                message = f"a probe of {group} and the bare query differ"
                raise ValueError(message)
            works = [timed(partial(_asked, warehouse, group)), timed(partial(self._asked_bare, query))]
            for seconds, times in zip((api, bare), in_turn(works, self.bench.settings.repeat), strict=True):
                seconds.append(statistics.median(times))
        return ratio(
            _NAME, "probe of a group / bare DuckDB over the files that hold it",
            Sample("probe", "s", tuple(api)), Sample("bare query", "s", tuple(bare)), target=_PROBE,
        )  # fmt: skip

    def _query(self, group: int) -> str:
        live = f"g = {group} AND _exp > TIMESTAMP '{format_instant(self.watched.now)}'"
        holding = f"SELECT DISTINCT filename FROM read_parquet([{self._listed('c')}], filename = true) WHERE {live}"
        paths = ", ".join(f"'{path}'" for (path,) in self._bare.sql(holding).fetchall())
        shown = "g, v, valid_from, valid_to, members, open"
        return f"SELECT {shown} FROM read_parquet([{paths}]) WHERE {live} ORDER BY g, _exp, _ts"

    def _asked_bare(self, query: str) -> list[tuple[object, ...]]:
        return self._bare.sql(query).fetchall()


def _asked(warehouse: Warehouse, group: int) -> list[tuple[object, ...]]:
    return warehouse.probe("c", [group]).all()


def _join(bench: Bench) -> Ratio:
    """A join of two tables of about half as many rows as asked for, kept, and computed again in Spark from their live rows."""
    points = bench.settings.rows
    tables = {"a": "l", "b": "r"}
    declared = "".join(_COALESCED.format(name=name, stream=tables[name], window=9 * _WINDOW) for name in tables)
    view = f'\n[views.joined]\nsearch_key = "g"\nsql = """{_JOINED}"""\n'
    watched = _Watched(bench.scratch / "joined", [*tables.values()], declared + view, 10 * _WINDOW)
    drawn = {name: Drawn(points // 20, 0.5, bench.settings.seed + position) for position, name in enumerate(watched.streams)}
    bench.say(f"building a temporal join of two tables of about {points // 2:,} rows")
    for name, stream in drawn.items():
        watched.land(name, _WINDOW, stream.points(_WINDOW, points, _WINDOW))
    watched.update(bench.spark)
    maintained, recomputed = [], []
    for number in range(min(bench.settings.updates, _UPDATES) + _WARM_UP):
        for name, stream in drawn.items():
            watched.land(name, watched.slot, stream.points(watched.slot, points // 200))
        epoch = watched.update(bench.spark)
        took = _again(bench, watched)
        if number >= _WARM_UP:
            maintained.append(step_seconds(epoch, "joined"))
            recomputed.append(took)
    with Warehouse.open(watched.directory) as warehouse:
        rows = {name: warehouse.sql(f"SELECT count(*) FROM {name}").all()[0][0] for name in ("a", "b", "joined")}
    computed = _computed(bench, watched).count()
    if computed != rows["joined"]:
        message = f"the view has {rows['joined']} rows, its query {computed}"
        raise ValueError(message)
    bench.details["rows of a temporal join and of its tables"] = rows
    shutil.rmtree(watched.directory)
    return ratio(
        _NAME, f"computing a temporal join of {rows['a']:,} and {rows['b']:,} rows again / keeping it",
        Sample("computing again", "s", tuple(recomputed)), Sample("keeping", "s", tuple(maintained)), target=_JOIN, at_least=True,
    )  # fmt: skip


def _computed(bench: Bench, watched: _Watched) -> DataFrame:
    session = bench.spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for name in ("a", "b"):
        live = f"unix_micros(_exp) > {watched.now}"
        session.read.parquet(*watched.files(name)).where(live).createOrReplaceTempView(name)
    return session.sql(_JOINED_BY_HAND)


def _again(bench: Bench, watched: _Watched) -> float:
    out = watched.directory / "again"
    cost = measured(bench.spark, lambda: _computed(bench, watched).write.parquet(str(out)))
    shutil.rmtree(out)
    return cost.wall
