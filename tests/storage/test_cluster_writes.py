"""Writing as on a cluster: whole tasks write into a directory of the write; :mod:`tests.cluster` tests a cluster itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.epochs.records import ColumnRecord
from warehouse.errors import NotSharedError
from warehouse.storage import cluster
from warehouse.storage.cluster import on_cluster, write_shared
from warehouse.storage.commit import CommitFacts, commit
from warehouse.storage.definition_commits import create_table
from warehouse.storage.entries import entry_at
from warehouse.storage.local_disk import STAGED
from warehouse.storage.tables import rows_schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession) -> DataFrame:
    """Return 200 rows of two partitions in no order."""
    return spark.range(200).selectExpr("id * 37 % 200 AS k", "CAST(id % 2 AS int) AS sub_index", "0L AS exp_block")


def test_a_local_session_is_no_cluster(spark: SparkSession) -> None:
    """Its executor is the driver, and it writes as before."""
    assert not on_cluster(spark)


def test_rows_are_staged_sorted(spark: SparkSession, tmp_path: Path) -> None:
    """Files lie in their partitions below ``staged``, in the requested order, and nothing else of the write remains."""
    write_shared(rows(spark).coalesce(1), tmp_path, ("sub_index", "exp_block"), {}, ("sub_index", "exp_block", "k"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["sub_index=0", "sub_index=1"]
    written_keys = []
    for file in sorted(tmp_path.rglob("*.parquet")):
        keys = pq.read_table(file, partitioning=None)["k"].to_pylist()
        assert keys == sorted(keys)
        written_keys += keys
    assert sorted(written_keys) == list(range(200))


def test_no_rows_are_no_files_or_empty_ones(spark: SparkSession, tmp_path: Path) -> None:
    """Also if Spark knows beforehand that there are no rows, and then does not count."""
    for none in (rows(spark).where("k < 0"), rows(spark).where("false"), spark.sql("SELECT 1 AS k WHERE false")):
        write_shared(none, tmp_path / "staged", (), {}, ("k",))
    assert sum(pq.read_metadata(file).num_rows for file in (tmp_path / "staged").rglob("*.parquet")) == 0


def test_rows_that_are_not_found_are_an_error(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the files are not listed, as if one of two executors had written to its own disk."""
    monkeypatch.setattr(cluster, "is_data", lambda path: path.parts[0] != "sub_index=1")
    with pytest.raises(NotSharedError, match=r"executors wrote 200 rows below .*, of which 100 are there for the driver"):
        write_shared(rows(spark), tmp_path, ("sub_index", "exp_block"), {}, ())


def test_what_a_lost_task_leaves_is_not_committed(tmp_path: Path) -> None:
    """A lost task that continues writes to a directory that no commit reads: of this write, or of an earlier write."""
    from tests.storage.test_commit import FACTS, PLACE, _added, stage_keys  # noqa: PLC0415 - the table of that module

    table = tmp_path / "t"
    create_table(
        table, table_id="5f0c9a0e-0000-4000-8000-000000000002", schema=rows_schema([ColumnRecord("k", "string")]),
        partition_columns=["sub_index", "exp_block"], properties={}, metadata={}, created_at=0,
    )  # fmt: skip
    stage_keys(table, "good.parquet", "x")
    for path in (f"_temporary/0/_temporary/attempt_1/{PLACE}", f".5f0c9a0e/_temporary/0/task_1/{PLACE}", f".5f0c9a0e/{PLACE}"):
        (table / STAGED / path).mkdir(parents=True)
        pq.write_table(pa.table({"k": ["late"]}), table / STAGED / path / "late.parquet")
    commit(table, entry_at(table, 0), statistics=("k",), leaving=None, facts=CommitFacts(FACTS.metadata))
    assert _added(table, 1) == [f"{PLACE}/good.parquet"]
    assert not (table / STAGED).exists()
