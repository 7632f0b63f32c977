"""``init --from`` of a folder whose sub-folders give columns, as Hive, Spark and pandas write them."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse import Warehouse
from warehouse.catalog.initialise import write_files, write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposal import proposal
from warehouse.time import format_instant

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FIELDS = {"client": "string", "seen": "timestamp"}


def landed(folder: Path, ending: str, number: int) -> None:
    """Write a file of ten rows."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"client": f"c{number}{i}", "seen": f"2026-01-0{number}T0{i}:00:00Z"} for i in range(1, 10)]
    file = folder / f"{number}.{ending}"
    if ending == "parquet":
        times = pa.array([row["seen"] for row in rows]).cast(pa.timestamp("ns", "UTC"))
        pq.write_table(pa.table({"client": [row["client"] for row in rows], "seen": times}), file)
        return
    lines = [json.dumps(row) for row in rows]
    if ending != "jsonl":
        lines = ["client,seen", *(",".join(row.values()) for row in rows)]
    text = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_they_are_columns_that_an_update_fills(tmp_path: Path, spark: SparkSession, ending: str) -> None:
    """Days, whole numbers and texts; also nanoseconds with a zone, as pandas writes times."""
    for number in (1, 2, 3):
        landed(tmp_path / "rows" / f"day=2026-01-0{number}" / f"site={number + 6}" / f"host=web{number}", ending, number)
    proposed = proposal(tmp_path / "rows")
    write_files(tmp_path / "project", proposed.files)
    (stream,) = load_catalog(tmp_path / "project").streams
    assert stream.partitions == ("day", "site", "host")
    types = {column.name: column.type for column in stream.columns}
    assert types == {**FIELDS, "day": "date", "site": "bigint", "host": "string"}
    assert (stream.search_key, stream.arrival) == (("client",), "seen")
    assert proposed.first is not None
    with Warehouse.open(tmp_path / "project") as warehouse:
        (counts,) = warehouse.update(at=format_instant(proposed.first.at), spark=spark).epochs[-1].counts
        assert (counts.inserted, counts.rejected) == (27, 0)
        rows = warehouse.sql("SELECT client, CAST(day AS VARCHAR), site, host FROM rows WHERE client IN ('c11', 'c35')").all()
    assert sorted(map(tuple, rows)) == [("c11", "2026-01-01", 7, "web1"), ("c35", "2026-01-03", 9, "web3")]


def test_only_names_on_each_path_are_columns(tmp_path: Path) -> None:
    """A folder that some files lack, that no column can be called, or above the folder or a single file, is none."""
    rows = tmp_path / "zone=eu" / "rows"
    landed(rows / "day=2026-01-01" / "host=h" / "a b=1" / "ts=2", "csv", 1)
    landed(rows / "day=tomorrow" / "a b=1" / "ts=2", "csv", 2)
    write_project(tmp_path / "of_folder", source=rows)
    (stream,) = load_catalog(tmp_path / "of_folder").streams
    assert stream.partitions == ("day",)
    assert {column.name: column.type for column in stream.columns} == {**FIELDS, "day": "string"}
    write_project(tmp_path / "of_file", source=rows / "day=tomorrow" / "a b=1" / "ts=2" / "2.csv")
    (stream,) = load_catalog(tmp_path / "of_file").streams
    assert stream.partitions == ()
    assert {column.name: column.type for column in stream.columns} == FIELDS


def test_a_field_of_the_same_name_gives_way(tmp_path: Path) -> None:
    """As it does at an update: the folder's text is the value, null where Hive says so."""
    landed(tmp_path / "rows" / "CLIENT=__HIVE_DEFAULT_PARTITION__", "csv", 1)
    landed(tmp_path / "rows" / "CLIENT=8", "csv", 2)
    write_project(tmp_path / "project", source=tmp_path / "rows")
    (stream,) = load_catalog(tmp_path / "project").streams
    assert {column.name: column.type for column in stream.columns} == {"CLIENT": "bigint", "seen": "timestamp"}
