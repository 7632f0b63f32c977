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

from tests.conftest import SMALL_AND_SHORT
from warehouse.storage.session import spark_session

from .grammar import random_query
from .house import DRIVER, SPARK, Difference, House
from .shrink import as_test, shrunk


def _say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _first_of_each(found: Sequence[Difference]) -> list[Difference]:
    return list({each.view: each for each in reversed(found)}.values())


def main() -> int:
    """Run it; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first query's seed; the others follow")
    parser.add_argument("--batch", type=int, default=50, help="views of one warehouse")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--shrink", type=int, default=0, help="how many differences of a batch are made smaller")
    parser.add_argument("--hours", type=int, default=4)
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    cores = str(given.cores)
    one = {"spark.master": f"local[{cores}]", "spark.sql.shuffle.partitions": cores, "spark.default.parallelism": cores}
    spark = spark_session(tuple({**dict(SMALL_AND_SHORT), **one}.items()))
    found, compared, failing, some = [], 0, 0, 0
    judges: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for first in range(given.seed, given.seed + given.queries, given.batch):
        began = time.monotonic()
        seeds = range(first, min(first + given.batch, given.seed + given.queries))
        queries = {f"v{seed}": random_query(random.Random(seed), given.depth) for seed in seeds}  # noqa: S311 - test data
        with tempfile.TemporaryDirectory() as directory:
            house = House(
                Path(directory) / "project", spark,
                {name: query.sql for name, query in queries.items()},
                {name: query.columns[0].name for name, query in queries.items()},
                seed=first,
            )  # fmt: skip
            engines = [(DRIVER, SPARK)[hour % 2] for hour in range(given.hours)]
            outcome = house.run(range(1, given.hours + 1), engines)
        for each in outcome.found:
            _say(each)
        for each in _first_of_each(outcome.found)[: given.shrink]:
            _say(as_test(shrunk(spark, each, house, engines[: each.epoch]), house))
        for reason in {name: reason for name, reason in outcome.refused.items() if name in house.refusals}.values():
            refused[re.sub(r"line \d+, column \d+|\b[a-z_]+\.[a-z_0-9.]+\b", "", reason.split(";")[0])[:70]] += 1
        found += outcome.found
        compared += outcome.compared
        some += outcome.not_empty
        judges += outcome.judges
        failing += outcome.failing["the query"]
        _say(
            f"-- seeds {seeds.start} to {seeds.stop - 1}: {time.monotonic() - began:.0f} s, served {dict(outcome.served)}, "
            f"failing {dict(outcome.failing)}, seconds {dict(outcome.seconds)}",
        )  # fmt: skip
    _say(f"{given.queries} queries, {compared} answers compared ({some} not empty), {failing} that Spark refuses")
    _say(f"{judges['both']} of them are DuckDB's answers too, {judges['Spark alone']} are judged by Spark alone")
    _say(f"{len(found)} differences")
    for reason, count in refused.most_common():
        _say(f"  refused {count}: {reason}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
