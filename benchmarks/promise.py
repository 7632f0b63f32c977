"""Key summaries and answers within a time, ``python -m benchmarks.promise``: what they save, what they cost, whether bounds hold.

Two warehouses load the same rows, 20 a key and each key in few files; one with key summaries, the other without. Readers are
opened in turn. Of one run it prints a line for each target: a reader's first probe, warm probes, updates, bytes, how far over
their time random queries were answered, how many bounds were wrong, and how many were worth nothing. What is true is counted
from the landed files, without the warehouse. With ten million rows and a thousand queries it takes about six minutes.
"""

from __future__ import annotations

import os
import tempfile
import time
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import fsum
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import click
import duckdb

from benchmarks.ratio import Ratio, Sample, ratio, value
from benchmarks.report import table
from benchmarks.turns import in_turn
from warehouse import Warehouse
from warehouse.catalog.load import load_catalog
from warehouse.limits import limited
from warehouse.storage.session import spark_session
from warehouse.time import HOUR, format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from warehouse.serving import Answer

__all__ = ["Query", "Summed", "Truth", "main"]

_ANCHOR = parse_instant("2024-01-01T00:00:00Z")
_ROWS_OF_A_KEY = 20
_LIFETIME = 1_000
_NAME = "promise"
_RANGE = 999
"""Between the least and the greatest ``v``."""
_UNFILTERED = 20
"""Sums without a condition that are asked besides the random queries."""
_TOML = f"""\
[warehouse]
root = "data"
anchor = "2024-01-01T00:00:00Z"
update_interval = "1h"

[streams.s]
landing = "landing"
format = "parquet"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "{_LIFETIME}h"
layout = {{ grid = [25, 4], seal = false }}

[streams.s.columns]
k = "string"
at = "timestamp"
until = "timestamp"
v = "bigint"
w = "double"
"""


@dataclass(frozen=True)
class Summed:
    """A warehouse whose updates bring new keys; with a ``share`` of 0 it writes no key summary."""

    directory: Path
    rows: int
    share: float

    def declare(self) -> None:
        """Write ``warehouse.toml`` and make the landing directory."""
        (self.directory / "landing").mkdir(parents=True)
        (self.directory / "warehouse.toml").write_text(_TOML)

    def land(self, slot: int) -> None:
        """Let the rows of an hour arrive; every call makes the same rows."""
        end = _ANCHOR + slot * HOUR
        path = self.directory / "landing" / f"{slot:05d}.parquet"
        query = f"""
            SELECT {_key("n", slot)} AS k, make_timestamptz({end} - 1 - n * 7919 % {HOUR}) AS at,
                make_timestamptz({end} + {_LIFETIME // 2} * {HOUR}) AS until,
                (n * 7919 + {slot}) % 1000 AS v, (n * 104729 + {slot}) % 100000 / 100000 AS w
            FROM range({self.rows}) t(n)
        """
        with duckdb.connect() as engine:
            engine.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        os.utime(path, ns=(end * 1000, end * 1000))

    def update(self, slot: int, spark: SparkSession) -> float:
        """Move the window to an hour, and return the seconds."""
        begin = time.perf_counter()
        with self.in_force():
            Warehouse.open(self.directory).update(format_instant(_ANCHOR + slot * HOUR), spark=spark)
        return time.perf_counter() - begin

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Write summaries as this warehouse does."""
        with limited(summary_share=self.share):
            yield

    def bytes(self) -> int:
        """The bytes of its data files and of their summaries."""
        return sum(file.stat().st_size for pattern in ("*.parquet", ".*.keys") for file in self.tables.rglob(pattern))

    @property
    def tables(self) -> Path:
        """Where its table is."""
        return self.directory / "data" / "tables" / "s"


def _key(number: str, slot: int) -> str:
    """A key of an hour, in SQL: hashed, so that keys of all hours lie in the bounds of all files."""
    return f"substr(md5('{slot}-' || {number} // {_ROWS_OF_A_KEY}), 1, 16)"


def _probes(project: Summed, keys: list[str], *, first: bool) -> float:
    """Seconds of probes: each the first probe of its reader, or all of them warm probes of one reader."""
    times = []
    with Warehouse.open(project.directory) as warm:
        for key in keys if first else [*keys, *keys]:
            with Warehouse.open(project.directory) as fresh:
                reader = fresh if first else warm
                begin = time.perf_counter()
                rows = reader.probe("s", [key]).all()
                times.append(time.perf_counter() - begin)
            if len(rows) != _ROWS_OF_A_KEY:
                raise click.ClickException(f"{key}: {len(rows)} rows")
    return sum(times[-len(keys) :])


def _compared(summed: Summed, plain: Summed, keys: list[str], repeat: int) -> Iterator[Ratio]:
    for first, text, target in ((True, "a reader's first probe", 0.5), (False, "a warm probe", 1.0)):
        with_summaries, without = in_turn([partial(_probes, project, keys, first=first) for project in (summed, plain)], repeat)
        of = f"{text} with summaries / without, keys in few of {len(list(plain.tables.rglob('*.parquet')))} files"
        yield ratio(_NAME, of, Sample("with", "s", with_summaries), Sample("without", "s", without), target=target)
    size = [Sample(name, "bytes", (float(project.bytes()),)) for name, project in (("with", summed), ("without", plain))]
    yield ratio(_NAME, "bytes with summaries / without", *size, target=1.03)


@dataclass(frozen=True)
class Query:
    """An aggregate of the table, over the rows of a condition on values below a bound, or on keys above a digit."""

    what: tuple[str, ...]
    below: int | None = None
    above: int | None = None

    @classmethod
    def drawn(cls, random: Random) -> Query:
        """Return a random query."""
        select = random.choice([("count(*)",), ("sum(v)",), ("avg(w)",), ("median(v)",), ("count(*)", "sum(w)")])
        return random.choice([cls(select), cls(select, below=random.randrange(1000)), cls(select, above=random.randrange(10))])

    @property
    def text(self) -> str:
        """The query in SQL."""
        below = "" if self.below is None else f" WHERE v < {self.below}"
        above = "" if self.above is None else f" WHERE k > '{self.above}'"
        return f"SELECT {', '.join(self.what)} FROM s{below}{above}"


class Truth:
    """The exact answers, from the landed files: rows and sums by value and by the first digit of the key."""

    def __init__(self, landing: Path) -> None:
        query = f"SELECT v, left(k, 1), count(*), sum(w) FROM '{landing}/*.parquet' GROUP BY ALL ORDER BY v"
        with duckdb.connect() as engine:
            self.groups = engine.execute(query).fetchall()

    def of(self, query: Query) -> tuple[float | None, ...]:
        """Return the values of a query's aggregates."""
        chosen = [
            (value, rows, weight)
            for value, digit, rows, weight in self.groups
            if (query.below is None or value < query.below) and (query.above is None or digit >= str(query.above))
        ]
        return tuple(self._aggregate(name, chosen) for name in query.what)

    @staticmethod
    def _aggregate(name: str, groups: list[tuple[int, int, float]]) -> float | None:
        rows = sum(number for _, number, _ in groups)
        if name == "count(*)" or not rows:
            return rows if name == "count(*)" else None
        if name == "sum(v)":
            return sum(value * number for value, number, _ in groups)
        if name != "median(v)":
            weight = fsum(weight_of_group for *_, weight_of_group in groups)
            return weight / rows if name == "avg(w)" else weight
        ends = list(accumulate(number for _, number, _ in groups))
        middle = [groups[bisect_right(ends, position)][0] for position in ((rows - 1) // 2, rows // 2)]
        return sum(middle) / 2


@dataclass
class Answered:
    """What became of the queries: how long each took of its time, and which bounds were wrong, wide or met."""

    taken: list[float] = field(default_factory=list)
    latest: tuple[float, str] = (0.0, "")
    wrong: int = 0
    exact: int = 0
    sums: int = 0
    wide: int = 0

    def add(self, query: Query, truth: Truth, answer: Answer, taken: float) -> None:
        """Count an answer, and the share of the allowed time that it took."""
        (row,) = answer.all()
        within = answer.within
        self.taken.append(taken)
        self.latest = max(self.latest, (taken, query.text))
        self.wrong += not _holds(row, truth.of(query))
        if within is None or within.exact:
            self.exact += 1
        elif query.what == ("sum(v)",) and query.below is query.above is None:
            self.sums += 1
            _, low, high = row
            self.wide += low is None or high is None or high - low > (within.rows - within.rows_read) * _RANGE


def _within(project: Summed, queries: int, milliseconds: int) -> Iterator[Ratio]:
    """How long answers within a time took, whether the truth is within their bounds, and whether these are narrow."""
    random, done, truth = Random(7), Answered(), Truth(project.directory / "landing")  # noqa: S311 - queries, not secrets
    drawn = [Query.drawn(random) for _ in range(queries)]
    with Warehouse.open(project.directory) as warehouse:
        for query in (*drawn, *[Query(("sum(v)",))] * _UNFILTERED):
            begin = time.perf_counter()
            answer = warehouse.sql(query.text, within=milliseconds * 1000)
            answer.all()
            done.add(query, truth, answer, (time.perf_counter() - begin) * 1000 / milliseconds)
    last = quantiles(done.taken, n=100)[98] if len(done.taken) > 1 else done.taken[0]
    count_text = f"{len(done.taken)} queries"
    yield value(_NAME, f"99th percentile of {count_text} / the time they were given ({milliseconds} ms)", [last], target=1.1)
    yield value(_NAME, f"the latest of them / its time: {done.latest[1]}", [done.latest[0]])
    yield value(_NAME, f"{count_text} whose bounds are wrong ({done.exact} were exact)", [float(done.wrong)], target=0.0)
    text = f"of {done.sums} sums without a condition that were not exact, those wider than the unread rows x the column's range"
    yield value(_NAME, text, [float(done.wide)], target=0.0)


def _holds(answer: tuple[Any, ...], truth: tuple[float | None, ...]) -> bool:
    """Whether values lie within their bounds; the value of no rows is None, and any bounds allow it."""
    for true, low, high in zip(truth, answer[1::3], answer[2::3], strict=True):
        if true is None:
            continue
        rounding = abs(true) * 1e-9  # of the sums of doubles here
        if (low is not None and low > true + rounding) or (high is not None and true > high + rounding):
            return False
    return True


@click.command()
@click.option("--rows", type=int, default=1_000_000, help="Live rows in all.")
@click.option("--updates", type=int, default=100, help="Updates that bring them: at least as many files.")
@click.option("--keys", type=int, default=20, help="Keys that are probed.")
@click.option("--repeat", type=int, default=7, help="Turns of probes.")
@click.option("--queries", type=int, default=1_000, help="Queries within a time.")
@click.option("--milliseconds", type=int, default=200, help="The time they are given.")
@click.option("--work", type=click.Path(path_type=Path), help="Where the warehouses are made; a temporary directory by default.")
def main(rows: int, updates: int, keys: int, repeat: int, queries: int, milliseconds: int, work: Path | None) -> None:
    """Print the ratios of one run."""
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        click.echo(table(_measured(Path(scratch), rows // updates, updates, keys, repeat, queries, milliseconds)))


def _measured(
    scratch: Path, rows: int, updates: int, keys: int, repeat: int, queries: int, milliseconds: int
) -> list[Ratio]:
    summed, plain = Summed(scratch / "summed", rows, 0.03), Summed(scratch / "plain", rows, 0.0)
    for project in (summed, plain):
        project.declare()
    session = spark_session(load_catalog(summed.directory).spark)
    pairs = []
    for slot in range(1, updates + 1):
        for project in (summed, plain):
            project.land(slot)
        order = (summed, plain) if slot % 2 else (plain, summed)
        done = {project.share: project.update(slot, session) for project in order}
        pairs.append((done[summed.share], done[plain.share]))
    with_summaries, without = zip(*pairs[len(pairs) // 10 :], strict=True)
    text = "update with summaries / without"
    ratios = [ratio(_NAME, text, Sample("with", "s", with_summaries), Sample("without", "s", without), target=1.05)]
    random = Random(3)  # noqa: S311 - keys, not secrets
    with duckdb.connect() as engine:
        chosen = [(random.randrange(rows), random.randrange(1, updates + 1)) for _ in range(keys)]
        names = [str(engine.execute(f"SELECT {_key(str(number), slot)}").fetchall()[0][0]) for number, slot in chosen]
    return [*ratios, *_compared(summed, plain, names, repeat), *_within(summed, queries, milliseconds)]


if __name__ == "__main__":
    main()
