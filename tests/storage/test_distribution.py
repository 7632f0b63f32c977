"""Large runs are written as files of disjoint ranges of keys."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from warehouse.storage.commit import stage
from warehouse.storage.local_disk import STAGED
from warehouse.storage.writer import place

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ORDER = ("sub_index", "exp_block", "k", "_exp")


def test_ranges_of_keys_are_files_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    """In a run no two files share a key, each is sorted, and no row is lost; a small run beside it stays one file."""
    rows = spark.range(8000).selectExpr(
        "CAST(lpad(id * 7919 % 1000, 4, '0') AS string) AS k",
        "timestamp_micros(id * 31 % 977) AS _exp",
        "CAST(IF(id < 7900, 1, 2) AS int) AS sub_index",
        "CAST(0 AS bigint) AS exp_block",
    )
    sizes = {(1, 0): 7900, (2, 0): 100}
    stage(place(rows, ["k"], sizes, 2400), tmp_path, ("sub_index", "exp_block"), 10_000, ORDER)
    run_files, keys = {}, []
    for number in sizes:
        files = sorted((tmp_path / STAGED).glob(f"sub_index={number[0]}/*/*.parquet"))
        run_files[number] = [pq.read_table(file, partitioning=None).to_pylist() for file in files]
    for parts in run_files.values():
        for part in parts:
            sort_keys = [(row["k"], row["_exp"]) for row in part]
            assert sort_keys == sorted(sort_keys)
            keys += [key for key, _ in sort_keys]
        bounds = sorted((part[0]["k"], part[-1]["k"]) for part in parts)
        assert all(earlier[1] < later[0] for earlier, later in pairwise(bounds)), bounds
    assert len(run_files[1, 0]) >= 3
    assert sorted(keys) == sorted(f"{number * 7919 % 1000:04d}" for number in range(8000))
