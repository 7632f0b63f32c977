"""What a view under a budget delivers of a join in tables: ``python -m benchmarks.source.promising_tables``.

The streams of the promising-tuples sheet, 8.2: 75 keys, 30 batches of about 100 rows, windows of six batches. Each batch is an
update of a warehouse, and the join is a view whose epochs make at most ``pairs`` results, the most promising units first or in no
order. Results that are not made are lost, as in the sheet. The results are counted in the view's table. The work is counted as in
the sheet: for a key of a new batch, a look at each batch of the other stream that has the key, and the rows there. A unit that is
made in part has the same part of its work.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

import click
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.field.page import markdown_table
from benchmarks.source.promising_units import BATCHES, drawn_batches, units_of
from warehouse import Warehouse
from warehouse.storage.session import spark_session
from warehouse.time import SECOND, format_instant, parse_instant

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["Delivered", "delivered", "main"]

_ANCHOR = parse_instant("2024-01-01T00:00:00Z")
_INTERVAL = 10 * SECOND
_GUIDED, _FREE = (0.3, 0.35), (0.1, 0.3)
"""What an epoch may make of a mean batch's results, guided and in no order."""
_HEAD = """\
[warehouse]
root = "data"
anchor = "2024-01-01T00:00:00Z"
update_interval = "10s"
"""
_STREAM = """
[streams.{name}]
landing = "{name}"
format = "parquet"
search_key = "k"
arrival = "at"
expires = "at + INTERVAL 1 MINUTE"
max_lifetime = "1m"
columns = {{ k = "int", at = "timestamp", n = "int" }}
"""
_VIEW = """
[views.pairs]
search_key = "k"
sql = "SELECT a.k, a.n AS a, b.n AS b FROM a JOIN b ON a.k = b.k"
budget = {{ pairs = {pairs}, prefer = "{prefer}", complete = "never" }}
"""
_STREAMS = ("a", "b")


@dataclass(frozen=True)
class Delivered:
    """The share of a join's results that a view made, and the share of the work that these took, as the sheet counts it."""

    results: float
    work: float


def delivered(place: Path, spark: SparkSession, seed: int, share: float, *, guided: bool, batches: int = BATCHES) -> Delivered:
    """Load two drawn streams batch by batch, and return what the view delivers.

    An epoch may make a ``share`` of the results that a batch has on average.
    """
    drawn = drawn_batches(seed)[:batches]
    costs = [_by_key(drawn, now) for now in range(batches)]
    exact = [sum(pairs for pairs, _ in cost.values()) for cost in costs]
    random = Random(seed)  # noqa: S311 - an order, no secret
    results = work = 0.0
    for now in range(batches):
        prefer = "desc" if guided else f"pmod(xxhash64(k, {random.randrange(1 << 31)}), 1000003)"
        _declare(place, max(1, round(share * sum(exact) / batches)), prefer)
        _land(place, drawn, now)
        time = format_instant(_ANCHOR + (now + 1) * _INTERVAL)
        Warehouse.open(place).update(time, spark=spark)
        for key, count in _made(place, now).items():
            pairs, cost = costs[now][key]
            results += count
            work += cost * count / pairs
    whole = sum(unit.cost for now in range(batches) for unit in units_of(drawn, now))
    return Delivered(results / sum(exact), work / whole)


def _declare(directory: Path, pairs: int, prefer: str) -> None:
    """Write ``warehouse.toml``."""
    directory.mkdir(exist_ok=True)
    streams = "".join(_STREAM.format(name=name) for name in _STREAMS)
    (directory / "warehouse.toml").write_text(_HEAD + streams + _VIEW.format(pairs=pairs, prefer=prefer))


def _by_key(drawn: list[tuple[Counter[int], Counter[int]]], now: int) -> dict[int, tuple[int, int]]:
    """The number of results of each key of a batch, and their work."""
    sums: dict[int, tuple[int, int]] = {}
    for unit in (unit for unit in units_of(drawn, now) if unit.pairs):
        pairs, cost = sums.get(unit.key, (0, 0))
        sums[unit.key] = pairs + unit.pairs, cost + unit.cost
    return sums


def _land(directory: Path, drawn: list[tuple[Counter[int], Counter[int]]], now: int) -> None:
    """Let the rows of a batch arrive at its end."""
    arrived = _ANCHOR + (now + 1) * _INTERVAL
    for name, rows in zip(_STREAMS, drawn[now], strict=True):
        keys = sorted(rows.elements())
        times = pa.array([arrived] * len(keys), pa.timestamp("us", "UTC"))
        numbers = pa.array(range(now * 10_000, now * 10_000 + len(keys)), pa.int32())
        path = directory / name / f"{now:02d}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"k": pa.array(keys, pa.int32()), "at": times, "n": numbers}), path)
        os.utime(path, ns=(arrived * 1000, arrived * 1000))


def _made(directory: Path, now: int) -> dict[int, int]:
    """The number of results of each key that the newest epoch made; at least one row of each result is of its batch."""
    with Warehouse.open(directory) as warehouse:
        newest = f"a // 10000 = {now} OR b // 10000 = {now}"
        return dict(warehouse.sql(f"SELECT k, count(*) FROM pairs WHERE {newest} GROUP BY k").all())


def _rows(work: Path, spark: SparkSession, seeds: int) -> Iterator[list[str]]:
    yield ["results allowed of all", "order", "delivered", "of this work, as the sheet counts"]
    for guided, shares in ((True, _GUIDED), (False, _FREE)):
        for share in shares:
            outcomes = [delivered(work / f"{guided}-{share}-{seed}", spark, seed, share, guided=guided) for seed in range(seeds)]
            results, costs = fmean(outcome.results for outcome in outcomes), fmean(outcome.work for outcome in outcomes)
            yield [f"{share:.0%}", "most results first" if guided else "none", f"{results:.3f}", f"{costs:.3f}"]


@click.command(epilog="Example: python -m benchmarks.source.promising_tables --seeds 5")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Pairs of streams.")
@click.option("--work", type=click.Path(path_type=Path), help="Where the warehouses are made; a temporary directory by default.")
def main(seeds: int, work: Path | None) -> None:
    """Print what a view under a budget delivers, and what share of the whole join's work that takes."""
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        click.echo(markdown_table([*_rows(Path(scratch), spark_session(()), seeds)]))


if __name__ == "__main__":
    main()
