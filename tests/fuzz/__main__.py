"""Fuzz views outside CI: ``python -m tests.fuzz --queries 1000`` says what was compared and prints each difference found."""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("STREAM_WH_READ_LOG", "off")
os.environ.setdefault("PYSPARK_PYTHON", "no-python-on-executors")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

from tests.conftest import SMALL_AND_SHORT
from warehouse.storage.session import spark_session

from .grammar import random_query
from .house import DRIVER, SPARK, Difference, House
from .plans import Compared, compare_plans
from .shrink import as_test, shrunk


def _say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _first_of_each(differences: Sequence[Difference]) -> list[Difference]:
    return list({difference.view: difference for difference in reversed(differences)}.values())


def _house(directory: Path, spark: SparkSession, seeds: range, depth: int) -> House:
    """A warehouse whose views are the queries of some seeds."""
    queries = {f"v{seed}": random_query(random.Random(seed), depth) for seed in seeds}  # noqa: S311 - test data
    keys = {name: query.columns[0].name for name, query in queries.items()}
    return House(directory, spark, {name: query.sql for name, query in queries.items()}, keys, seed=seeds.start)


def _compare_plans(spark: SparkSession, options: argparse.Namespace) -> int:
    """Compare plans with texts; return 1 if a difference was found."""
    total, last = Compared(), options.seed + options.queries
    for first in range(options.seed, last, options.batch):
        seeds = range(first, min(first + options.batch, last))
        with tempfile.TemporaryDirectory() as directory:
            seen = compare_plans(_house(Path(directory) / "project", spark, seeds, options.depth))
        for difference in seen.found:
            _say(difference)
        total.add(seen)
        _say(f"-- up to seed {seeds.stop - 1}: {total.same} the same, {len(total.found)} differences")
    _say(f"{options.queries} queries, {total.same} answers are the same ({total.not_empty} not empty), {total.failing} failing")
    _say(f"{total.untold} whose names are not compared, {total.refused.total()} that are refused, {len(total.found)} differences")
    for reason, count in total.refused.most_common():
        _say(f"  refused {count}: {reason}")
    return bool(total.found)


def main() -> int:
    """Run the fuzzer; return 1 if a difference was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first query's seed; the others follow")
    parser.add_argument("--batch", type=int, default=50, help="views of one warehouse")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--shrink", type=int, default=0, help="how many differences of a batch are made smaller")
    parser.add_argument("--hours", type=int, default=4)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--plans", action="store_true", help="compare plans with their texts, and keep no table: far faster")
    options = parser.parse_args()
    cores = str(options.cores)
    settings = {"spark.master": f"local[{cores}]", "spark.sql.shuffle.partitions": cores, "spark.default.parallelism": cores}
    spark = spark_session(tuple({**dict(SMALL_AND_SHORT), **settings}.items()))
    if options.plans:
        return _compare_plans(spark, options)
    differences, compared, failing, nonempty = [], 0, 0, 0
    judges: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for first in range(options.seed, options.seed + options.queries, options.batch):
        began = time.monotonic()
        seeds = range(first, min(first + options.batch, options.seed + options.queries))
        with tempfile.TemporaryDirectory() as directory:
            house = _house(Path(directory) / "project", spark, seeds, options.depth)
            engines = [(DRIVER, SPARK)[hour % 2] for hour in range(options.hours)]
            outcome = house.run(range(1, options.hours + 1), engines)
        for difference in outcome.found:
            _say(difference)
        for difference in _first_of_each(outcome.found)[: options.shrink]:
            _say(as_test(shrunk(spark, difference, house, engines[: difference.epoch]), house))
        for reason in {name: reason for name, reason in outcome.refused.items() if name in house.refusals}.values():
            refused[re.sub(r"line \d+, column \d+|\b[a-z_]+\.[a-z_0-9.]+\b", "", reason.split(";")[0])[:70]] += 1
        differences += outcome.found
        compared += outcome.compared
        nonempty += outcome.not_empty
        judges += outcome.judges
        failing += outcome.failing["the query"]
        _say(
            f"-- seeds {seeds.start} to {seeds.stop - 1}: {time.monotonic() - began:.0f} s, served {dict(outcome.served)}, "
            f"failing {dict(outcome.failing)}, seconds {dict(outcome.seconds)}",
        )  # fmt: skip
    _say(f"{options.queries} queries, {compared} answers compared ({nonempty} not empty), {failing} that Spark refuses")
    _say(f"{judges['both']} of them are DuckDB's answers too, {judges['Spark alone']} are judged by Spark alone")
    _say(f"{len(differences)} differences")
    for reason, count in refused.most_common():
        _say(f"  refused {count}: {reason}")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
