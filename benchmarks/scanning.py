"""Scan: a full scan to Arrow beside a bare `read_parquet` over the same files and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from benchmarks.data import SELECTED
from benchmarks.project import TABLE
from benchmarks.ratio import Ratio, Sample, ratio
from benchmarks.turns import in_turn, timed

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ["measure"]

_NAME = "scan"
TARGET = 0.9


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of speeds: the bare read also gives the rows that are dead."""
    bench.say("scans")
    project = bench.project
    paths = ", ".join(f"'{path}'" for path in project.files())
    query = f"SELECT {SELECTED} FROM read_parquet([{paths}])"
    with project.opened() as warehouse, duckdb.connect() as default, duckdb.connect() as tuned:
        settings = "SET TimeZone = 'UTC'; SET parquet_metadata_cache = true"
        default.execute(settings)
        tuned.execute(f"{settings}; SET preserve_insertion_order = false")
        api, bare, alike = in_turn(
            [
                timed(lambda: warehouse.scan(TABLE).arrow()),
                timed(lambda: default.sql(query).to_arrow_table()),
                timed(lambda: tuned.sql(query).to_arrow_table()),
            ],
            bench.settings.repeat,
        )
        live, read = warehouse.scan(TABLE).arrow().num_rows, default.sql(query).to_arrow_table().num_rows
    bench.details["scan"] = {"live rows": live, "rows of the files": read}
    ours = Sample("scan", "s", api)
    return [
        _speed("scan / bare read_parquet, DuckDB's defaults", ours, Sample("read_parquet", "s", bare)),
        _speed("scan / bare read_parquet, order not kept", ours, Sample("read_parquet", "s", alike)),
    ]


def _speed(text: str, ours: Sample, bare: Sample) -> Ratio:
    return ratio(_NAME, f"speed of a {text}", bare, ours, target=TARGET, at_least=True)
